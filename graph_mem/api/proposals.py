"""Proposals and rehearsals as the API shows them."""

from collections.abc import Sequence
from datetime import datetime

import strawberry
from strawberry.dataloader import DataLoader
from strawberry.scalars import JSON

from graph_mem.api.entities import Entity
from graph_mem.api.nodes import Node
from graph_mem.api.records import Record, by_id, record_type
from graph_mem.api.session import Context, Info
from graph_mem.core import proposals
from graph_mem.core.model import RecordId, is_id
from graph_mem.core.proposals import Decision, ProposalKind, ProposalState
from graph_mem.services import records, review
from graph_mem.services.review import Trusted
from graph_mem.store.rehearsals import Enrolled

strawberry.enum(ProposalKind, description="What a proposal would do.")
strawberry.enum(ProposalState, description="AUTO_KEPT: kept unasked, by the trust that people's decisions earned.")
strawberry.enum(Decision, description="KEEP applies the change; REVERT declines it, or takes it back exactly.")


@strawberry.type(description="A change that waits for a person, or one that somebody kept or reverted.")
class Proposal(Node):
    proposal: strawberry.Private[proposals.Proposal]
    kind: ProposalKind = strawberry.field(description="What it would do.")
    state: ProposalState = strawberry.field(description="Where it stands.")
    signals: JSON = strawberry.field(description="The numbers it was made on: each signal, 0..1, and the counts.")
    score: float = strawberry.field(description="The blended score, 0..1; the starting strength of what is promoted.")
    gate: str = strawberry.field(description="The rule that let it through, with its numbers.")
    reason: str = strawberry.field(description="Why, in one sentence.")
    proposed_at: datetime = strawberry.field(description="When it was filed.")
    decided_at: datetime | None = strawberry.field(description="The last decision; null if nobody decided yet.")
    decided_by: strawberry.ID | None = strawberry.field(description="Who decided; null if nobody, or nobody human.")
    shape: str = strawberry.field(description="The sort of change within its kind: what trust is counted by.")
    change: JSON = strawberry.field(description="The values it would set, where the kind does not say it all.")
    version: int = strawberry.field(description="Counts the decisions, from 1.")

    @classmethod
    def of(cls, one: proposals.Proposal) -> "Proposal":
        return cls(
            id=strawberry.ID(one.id),
            proposal=one,
            kind=one.kind,
            state=one.state,
            signals=JSON(dict(one.signals)),
            score=one.score,
            gate=one.gate,
            reason=one.reason,
            proposed_at=one.proposed_at,
            decided_at=one.decided_at,
            decided_by=_person(one.decided_by),
            shape=one.shape,
            change=JSON(dict(one.change)),
            version=one.version,
        )

    @strawberry.field(description="What would change; what was erased since is left out.")
    async def subjects(self, info: Info) -> list[Node]:
        return await _nodes(info, self.proposal.subject_ids)

    @strawberry.field(description="What speaks for it; what was erased since is left out.")
    async def evidence(self, info: Info) -> list[Node]:
        return await _nodes(info, self.proposal.evidence_ids)

    @strawberry.field(description="The searches that its counts come from, newest first: the last 20 you may see.")
    async def retrieval_ids(self, info: Info) -> list[strawberry.ID]:
        return list(map(strawberry.ID, await info.context.once(_retrievals).load(self.proposal)))


def _retrievals(context: Context) -> DataLoader[proposals.Proposal, list[str]]:
    """For `Context.once`: one look at the traces for all proposals of a page."""

    async def load(wanted: list[proposals.Proposal]) -> list[list[str]]:
        return await review.retrievals(context.deps, context.principal, wanted)

    return DataLoader(load, cache_key_fn=lambda one: one.id)


def _person(id: str | None) -> strawberry.ID | None:
    return None if id is None or id == proposals.AUTOMATIC else strawberry.ID(id)


async def _nodes(info: Info, ids: Sequence[str]) -> list[Node]:
    """The records and entities among `ids` that the caller may see, in their order."""
    context = info.context
    found: list[Node] = []
    for id in ids:
        if is_id(id, "mem", "fact"):
            record = await context.once(by_id).load(RecordId(id))
            found += [record_type(record)] if record else []
        elif is_id(id, "ent"):
            entity = await records.entity(context.deps, context.principal, id)
            found += [Entity.of(entity)] if entity else []
    return found


@strawberry.type(description="What people decided about one shape of change; automatic decisions are not counted.")
class TrustStat:
    kind: ProposalKind = strawberry.field(description="The kind of change.")
    shape: str = strawberry.field(description="The sort of change within its kind.")
    kept: int = strawberry.field(description="How many people kept.")
    reverted: int = strawberry.field(description="How many people reverted, those that were kept unasked included.")
    auto_keep: bool = strawberry.field(description="Whether the next of this shape is kept unasked.")

    @classmethod
    def of(cls, one: Trusted) -> "TrustStat":
        return cls(
            kind=one.count.kind,
            shape=one.count.shape,
            kept=one.count.kept,
            reverted=one.count.reverted,
            auto_keep=one.auto_keep,
        )


@strawberry.type(description="A record that is looked at again at growing distances while it holds.")
class Rehearsal:
    enrolled: strawberry.Private[Enrolled]
    shown: strawberry.Private[Record]
    box: int = strawberry.field(description="Its box, from 1; the higher, the longer the distance.")
    due_at: datetime = strawberry.field(description="When it is due.")

    @strawberry.field(description="The record.")
    def record(self) -> Record:
        return self.shown


async def rehearsals_of(info: Info, found: Sequence[Enrolled]) -> list[tuple[Enrolled, Rehearsal]]:
    """Each of `found` as the API shows it; what was erased since is left out."""
    loaded = await info.context.once(by_id).load_many([one.record_id for one in found])
    return [
        (
            one,
            Rehearsal(enrolled=one, shown=record_type(record), box=one.rehearsal.box, due_at=one.rehearsal.due_at),
        )
        for one, record in zip(found, loaded, strict=True)
        if record is not None
    ]
