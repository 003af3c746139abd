"""What a person does to single records, and the organization's rules for keeping and forgetting."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, cast

import strawberry
from strawberry.scalars import JSON

from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.records import Record, record_type
from graph_mem.api.session import Info
from graph_mem.core import lifecycle as core
from graph_mem.core import model
from graph_mem.core.lifecycle import ArchiveMode, GateRule, ReingestPolicy
from graph_mem.services import erasure, lifecycle, settings
from graph_mem.services.erasure import Erased

strawberry.enum(GateRule, description="How a candidate passes the gate: by its blended score, or k signals of n.")
strawberry.enum(ArchiveMode, description="What becomes of weak records: nothing, a proposal, or the archive at once.")
strawberry.enum(ReingestPolicy, description="Whether what was erased may be saved again, under a new id.")


@strawberry.type(description="The organization's rules for keeping and forgetting.")
class LifecycleConfig:
    version: int = strawberry.field(description="Counts its changes; give it as `expectedVersion`.")
    gate: GateRule = strawberry.field(description="The rule of the consolidation gate.")
    threshold: float = strawberry.field(description="BLENDED: the least score, 0..1.")
    k: int = strawberry.field(description="K_OF_N: how many signals must reach their bars.")
    bars: JSON = strawberry.field(description="K_OF_N: the bar of each signal, 0..1.")
    weights: JSON = strawberry.field(description="BLENDED: the weight of each signal.")
    archive: ArchiveMode = strawberry.field(description="What becomes of records that are too weak.")
    archive_below: float = strawberry.field(description="The strength under which a record counts as too weak.")
    auto_keep: bool = strawberry.field(description="Whether trusted, low-risk changes are kept unasked.")
    trust_minimum: int = strawberry.field(description="How many kept of as many suffice for trust.")
    rehearsal_days: list[int] = strawberry.field(description="The distance of each box, in days.")
    after_erase: ReingestPolicy = strawberry.field(description="Whether what is erased from now on may come again.")
    write_gate: JSON = strawberry.field(description="The scope levels in which each role's facts land active.")
    promote_to: str = strawberry.field(description="The label that findings which pass the gate are proposed for.")
    updated_at: datetime = strawberry.field(
        description="When it was last changed; at first, when the organization was made."
    )
    updated_by: strawberry.ID | None = strawberry.field(description="Who changed it last.")

    @classmethod
    def of(cls, config: core.LifecycleConfig) -> "LifecycleConfig":
        return cls(
            version=config.version,
            gate=config.gate,
            threshold=config.threshold,
            k=config.k,
            bars=JSON(dict(config.bars)),
            weights=JSON(dict(config.weights)),
            archive=config.archive,
            archive_below=config.archive_below,
            auto_keep=config.auto_keep,
            trust_minimum=config.trust_minimum,
            rehearsal_days=list(config.rehearsal_days),
            after_erase=config.after_erase,
            write_gate=JSON({role.value: sorted(levels) for role, levels in config.write_gate.items()}),
            promote_to=config.promote_to,
            updated_at=cast("datetime", config.updated_at),  # settings that were read always have it
            updated_by=strawberry.ID(config.updated_by) if config.updated_by else None,
        )


@strawberry.input(description="Left out: unchanged.")
class UpdateLifecycleConfigInput:
    expected_version: int = strawberry.field(description="The version that this change was made on.")
    gate: GateRule | None = strawberry.field(default=None, description="The rule of the consolidation gate.")
    threshold: float | None = strawberry.field(default=None, description="0..1.")
    k: int | None = strawberry.field(default=None, description="1 to the number of signals.")
    bars: JSON | None = strawberry.field(default=None, description="Some signals with their bars, 0..1.")
    weights: JSON | None = strawberry.field(default=None, description="Some signals with their weights, 0..100.")
    archive: ArchiveMode | None = strawberry.field(default=None, description="What becomes of weak records.")
    archive_below: float | None = strawberry.field(default=None, description="0..1.")
    auto_keep: bool | None = strawberry.field(default=None, description="Keep trusted, low-risk changes unasked.")
    trust_minimum: int | None = strawberry.field(default=None, description="1 to 1000.")
    rehearsal_days: list[int] | None = strawberry.field(default=None, description="Growing numbers of days.")
    after_erase: ReingestPolicy | None = strawberry.field(default=None, description="For what is erased from now on.")
    write_gate: JSON | None = strawberry.field(default=None, description="Some roles, each with its scope levels.")
    promote_to: str | None = strawberry.field(default=None, description="A label of the vocabulary.")

    def changes(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in core.OVERRIDABLE}
        return {name: value for name, value in given.items() if value is not None}


@strawberry.type(description="What became of a change of the rules.")
class LifecycleConfigPayload:
    config: LifecycleConfig | None = strawberry.field(description="The rules now; null exactly when there are errors.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.input(description="A record, and why something is done to it.")
class RecordActionInput:
    id: strawberry.ID = strawberry.field(description="The record.")
    reason: str | None = strawberry.field(default=None, description="Why, for whoever reads the history.")
    expected_version: int | None = strawberry.field(default=None, description="Refuse if the record has another.")


@strawberry.input(description="Whether a record still holds.")
class ValidateInput:
    id: strawberry.ID = strawberry.field(description="The record.")
    holds: bool = strawberry.field(description="False sends it to the review queue.")
    reason: str | None = strawberry.field(default=None, description="Why, for whoever reads the history.")


@strawberry.input(description="What to erase for good.")
class EraseInput:
    id: strawberry.ID = strawberry.field(description="The record.")
    confirm_id: strawberry.ID = strawberry.field(description="Repeat the id.")
    reason: str = strawberry.field(description="Why, for the history; not what the record said.")
    strict: bool = strawberry.field(default=False, description="Take the title as well.")
    dry_run: bool = strawberry.field(default=False, description="Only count what would go.")


@strawberry.type(description="What became of a record.")
class RecordPayload:
    record: Record | None = strawberry.field(description="The record now; null exactly when there are errors.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.type(description="A place where the words of an erased record stand because somebody wrote them there.")
class Elsewhere:
    kind: str = strawberry.field(description="What holds them, such as Policy, Variable, Memory or Version.")
    id: strawberry.ID = strawberry.field(description="Its id.")
    property: str = strawberry.field(description="Which of its values holds them.")


@strawberry.type(description="What was erased, or with `dryRun` would be.")
class ErasePayload:
    erased_ids: list[strawberry.ID] = strawberry.field(
        description="The record, its exact copies, and the facts that nothing else attests."
    )
    counts: JSON = strawberry.field(
        description="How many nodes of each kind it touches; as `elsewhere`, how many places it leaves."
    )
    elsewhere: list[Elsewhere] = strawberry.field(
        description="Of those places that you may read the first 100. Erasing leaves them to whoever wrote them."
    )
    dry_run: bool = strawberry.field(description="True if nothing was changed.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


def payload(done: tuple[model.Record | None, list[MutationError]]) -> RecordPayload:
    """The payload for a record that was changed, or the reasons why not."""
    record, errors = done
    return RecordPayload(record=record_type(record) if record else None, errors=errors)


@strawberry.type
class HousekeepingQuery:
    @strawberry.field(description="The organization's rules for keeping and forgetting.")
    async def lifecycle_config(self, info: Info) -> LifecycleConfig | None:
        config = await info.context.deps.settings.lifecycle(info.context.principal.org_id)
        return LifecycleConfig.of(config)


@strawberry.type
class HousekeepingMutation:
    @strawberry.mutation(description="Says of a record that it still holds, or that it does not.")
    async def validate(self, info: Info, input: ValidateInput) -> RecordPayload:
        context = info.context
        done = lifecycle.validate(context.deps, context.principal, input.id, holds=input.holds, reason=input.reason)
        return payload(await attempt(done))

    @strawberry.mutation(description="Takes a current record out of everyday recall.")
    async def archive(self, info: Info, input: RecordActionInput) -> RecordPayload:
        return await _changed(lifecycle.archive, info, input)

    @strawberry.mutation(description="Brings an archived record back as if it had never left.")
    async def restore(self, info: Info, input: RecordActionInput) -> RecordPayload:
        return await _changed(lifecycle.restore, info, input)

    @strawberry.mutation(description="Takes a record's words out of everything, for good; that it existed stays.")
    async def erase(self, info: Info, input: EraseInput) -> ErasePayload:
        context = info.context
        done, errors = await attempt(
            erasure.erase(
                context.deps,
                context.principal,
                input.id,
                confirm_id=input.confirm_id,
                reason=input.reason,
                strict=input.strict,
                dry_run=input.dry_run,
            )
        )
        return _erased(done, errors, input)

    @strawberry.mutation(description="Changes the rules for keeping and forgetting; owner and admin only.")
    async def update_lifecycle_config(self, info: Info, input: UpdateLifecycleConfigInput) -> LifecycleConfigPayload:
        context = info.context

        async def work() -> core.LifecycleConfig:
            expected, changes = input.expected_version, input.changes()
            return await settings.update_lifecycle(
                context.deps, context.principal, expected_version=expected, changes=changes
            )

        config, errors = await attempt(work())
        return LifecycleConfigPayload(config=LifecycleConfig.of(config) if config else None, errors=errors)


async def _changed(
    change: Callable[..., Awaitable[model.Record]], info: Info, input: RecordActionInput
) -> RecordPayload:
    context, version = info.context, input.expected_version
    done = change(context.deps, context.principal, input.id, reason=input.reason, expected_version=version)
    return payload(await attempt(done))


def _erased(done: Erased | None, errors: list[MutationError], input: EraseInput) -> ErasePayload:
    found = done.elsewhere if done else ()
    return ErasePayload(
        erased_ids=[strawberry.ID(id) for id in done.ids] if done else [],
        counts=JSON(done.counts if done else {}),
        elsewhere=[Elsewhere(kind=one.what, id=strawberry.ID(one.id), property=one.property) for one in found],
        dry_run=input.dry_run,
        errors=errors,
    )
