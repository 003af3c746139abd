"""How an organization searches, and changing it."""

from dataclasses import fields
from datetime import datetime
from typing import Any

import strawberry
from strawberry.scalars import JSON

from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.session import Info
from graph_mem.core import retrieval as core
from graph_mem.core.model import UserId
from graph_mem.core.retrieval import Fusion, RankingProfile
from graph_mem.services import settings

strawberry.enum(Fusion, description="How the two legs become one score.")
strawberry.enum(RankingProfile, description="What the fused score is ranked with.")


@strawberry.type(description="How one organization searches. Weights and thresholds are 0..1.")
class RetrievalConfig:
    version: int = strawberry.field(description="Counts its changes; give it as `expectedVersion`.")
    fusion: Fusion = strawberry.field(description="WEIGHTED shares, or reciprocal ranks (RRF).")
    profile: RankingProfile = strawberry.field(
        description="STRENGTH: fused times strength. BLEND: fused, importance and age, added up."
    )
    lexical_weight: float = strawberry.field(description="The share of words; at first the embedding model's best.")
    vector_weight: float = strawberry.field(description="The share of meaning.")
    lexical_only_cap: float = strawberry.field(description="The most a match by words alone may score.")
    fused_floor: float = strawberry.field(description="Below this a match is not returned.")
    vector_threshold: float = strawberry.field(description="Below this, matches in meaning are dropped before fusion.")
    tier_high: float = strawberry.field(description="From this fused score on a result is HIGH.")
    tier_standard: float = strawberry.field(description="From this fused score on it is STANDARD, below it LOW.")
    mmr_lambda: float = strawberry.field(description="1: by score alone; less: look-alikes of a better result wait.")
    fusion_weight: float = strawberry.field(description="BLEND: the weight of the fused score.")
    importance_weight: float = strawberry.field(description="BLEND: the weight of importance.")
    fresh_weight: float = strawberry.field(description="BLEND: the most that age can cost.")
    memories_fade: bool = strawberry.field(description="BLEND: whether age costs anything.")
    neighbour_weight: float = strawberry.field(
        description="What a passage gains of the fused score of the better one next to it in its source."
    )
    participant_weight: float = strawberry.field(
        description="What a record gains, of its own score, whose participant the query names, if it names only one."
    )
    strength_influence: float = strawberry.field(
        description="STRENGTH: the most that strength can take from a score; nothing that is better by more is passed."
    )
    source_share: float = strawberry.field(
        description="Of a page, the share at its end where a source that is not on it yet goes before a near equal."
    )
    strength_weights: JSON = strawberry.field(description="The weight of each signal in strength.")
    updated_at: datetime = strawberry.field(
        description="When it was last changed; at first, when the organization was made."
    )
    updated_by: strawberry.ID | None = strawberry.field(description="Who changed it last.")

    @classmethod
    def of(cls, config: core.RetrievalConfig) -> "RetrievalConfig":
        values: dict[str, Any] = {one.name: getattr(config, one.name) for one in fields(config)}
        values["strength_weights"] = JSON(dict(config.strength_weights))
        values["updated_by"] = _id(config.updated_by)
        return cls(**values)


def _id(user: UserId | None) -> strawberry.ID | None:
    return strawberry.ID(user) if user else None


@strawberry.input(description="Left out: unchanged.")
class UpdateRetrievalConfigInput:
    expected_version: int = strawberry.field(description="The version this change was made from.")
    fusion: Fusion | None = strawberry.field(default=None, description="How the legs become one score.")
    profile: RankingProfile | None = strawberry.field(default=None, description="What the fused score is ranked with.")
    lexical_weight: float | None = strawberry.field(default=None, description="0..1.")
    vector_weight: float | None = strawberry.field(default=None, description="0..1.")
    lexical_only_cap: float | None = strawberry.field(default=None, description="0..1.")
    fused_floor: float | None = strawberry.field(default=None, description="0..1.")
    vector_threshold: float | None = strawberry.field(default=None, description="0..1.")
    tier_high: float | None = strawberry.field(default=None, description="0..1, at least tierStandard.")
    tier_standard: float | None = strawberry.field(default=None, description="0..1.")
    mmr_lambda: float | None = strawberry.field(default=None, description="0..1.")
    fusion_weight: float | None = strawberry.field(default=None, description="0..1.")
    importance_weight: float | None = strawberry.field(default=None, description="0..1.")
    fresh_weight: float | None = strawberry.field(default=None, description="0..1.")
    memories_fade: bool | None = strawberry.field(default=None, description="Whether age costs anything.")
    neighbour_weight: float | None = strawberry.field(default=None, description="0..1.")
    participant_weight: float | None = strawberry.field(default=None, description="0..1.")
    strength_influence: float | None = strawberry.field(default=None, description="0..1.")
    source_share: float | None = strawberry.field(default=None, description="0..1.")
    strength_weights: JSON | None = strawberry.field(default=None, description="A weight for each signal, 0..100.")


@strawberry.type(description="What became of a change of the retrieval configuration.")
class RetrievalConfigPayload:
    config: RetrievalConfig | None = strawberry.field(
        description="The configuration; null exactly when there are errors."
    )
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.type
class RetrievalQuery:
    @strawberry.field(description="How your organization searches.")
    async def retrieval_config(self, info: Info) -> RetrievalConfig | None:
        context = info.context
        return RetrievalConfig.of(await context.deps.settings.retrieval(context.principal.org_id))


@strawberry.type
class RetrievalMutation:
    @strawberry.mutation(description="Change how your organization searches; in force everywhere within 5 seconds.")
    async def update_retrieval_config(self, info: Info, input: UpdateRetrievalConfigInput) -> RetrievalConfigPayload:
        named = {one: getattr(input, one) for one in sorted(core.OVERRIDABLE)}
        changes = {name: value for name, value in named.items() if value is not None}
        config, errors = await attempt(
            settings.update_retrieval(
                info.context.deps, info.context.principal, expected_version=input.expected_version, changes=changes
            )
        )
        return RetrievalConfigPayload(config=RetrievalConfig.of(config) if config else None, errors=errors)
