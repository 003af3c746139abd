"""Carrying out a proposal and taking it back, each within the transaction of whoever decides.

Everything a proposal may touch is locked, its image taken, the change made and the difference remembered: undoing
knows each property and each link that was different before, and nothing else.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graph_mem.core import changes
from graph_mem.core.changes import Change, Kept
from graph_mem.core.model import EntityId, Event, Memory, Principal, Record, RecordId, Standing, UserId, is_id
from graph_mem.core.proposals import Proposal, ProposalKind
from graph_mem.errors import Conflict
from graph_mem.services import Deps, promoting, rehearsing
from graph_mem.services.standards import Standards
from graph_mem.store import audit, images, lifecycle, reviews, standing
from graph_mem.store.db import Tx
from graph_mem.store.lifecycle import Class

_DONE = {
    ProposalKind.PROMOTE_FACT: "promoted",
    ProposalKind.PROMOTE_MEMORY: "promoted",
    ProposalKind.DEMOTE: "demoted",
    ProposalKind.ARCHIVE: "archived",
    ProposalKind.MERGE_ENTITIES: "merged",
    ProposalKind.REVALIDATE: "validated",
}


@dataclass(frozen=True, slots=True)
class Decider:
    """Whose decision it is: the principal that reaches the records, who history says it was, and by which rules."""

    principal: Principal
    by: UserId
    standards: Standards


async def apply(tx: Tx, deps: Deps, who: Decider, proposal: Proposal) -> None:
    """Carry out a locked proposal and remember what that changed.

    Errors: Conflict if a subject is no longer as it was when this was proposed.
    """
    ids = await _reach(tx, who.principal, proposal)
    locked = await _lock(tx, who.principal, ids)
    ids = await images.around(tx, who.principal, ids)
    before = await images.image(tx, who.principal, ids)
    await _change(tx, deps, who, proposal, locked=locked)
    after = await images.image(tx, who.principal, ids)
    await reviews.remember(tx, proposal.place, proposal.id, changes.difference(before, after))
    await note(tx, deps, who, proposal, _DONE[proposal.kind], at=locked.at)


async def undo(tx: Tx, deps: Deps, who: Decider, proposal: Proposal) -> None:
    """Restore exactly what a locked, kept proposal had changed.

    Errors: Conflict if something of it has changed since by other means than a decision; nothing is changed then.
    """
    first, _ = await _remembered(tx, who.principal, proposal)
    ids = {ref.id for ref in changes.merged([first])}
    locked = await _lock(tx, who.principal, ids)
    change, later = await _remembered(tx, who.principal, proposal)
    now = await images.image(tx, who.principal, ids)
    plan = changes.undo(change, now=now, later=later)
    _refuse([*plan.obstacles, *(f"the place of {id} is taken" for id in await images.taken(tx, plan.set))])
    await images.restore(tx, who.principal, plan)
    _refuse([f"{id} was superseded meanwhile" for id in await images.retired(tx, who.principal, plan.set)])
    await reviews.rewrite(tx, who.principal, plan.rewritten)
    await reviews.forget(tx, who.principal, proposal.id)
    if proposal.kind is ProposalKind.PROMOTE_FACT:
        await promoting.refuse(tx, who.principal, RecordId(proposal.subject_ids[0]), at=locked.at)
    await note(tx, deps, who, proposal, "reverted", at=locked.at)


def _refuse(obstacles: Sequence[str]) -> None:
    if obstacles:
        raise Conflict(f"It cannot be restored exactly: {'; '.join(obstacles[:5])}. Undo that first.")


async def _remembered(tx: Tx, principal: Principal, proposal: Proposal) -> tuple[Change, tuple[Kept, ...]]:
    """What keeping it changed, and what decisions after it did; read again once all of that is locked."""
    found = await reviews.recall(tx, principal, proposal.id)
    if found is None:
        raise Conflict(f"What {proposal.id} changed is not known any more: a subject was erased.")
    return found


async def _reach(tx: Tx, principal: Principal, proposal: Proposal) -> set[str]:
    """The ids of everything that carrying out `proposal` may touch."""
    ids = set(proposal.subject_ids)
    match proposal.kind:
        case ProposalKind.MERGE_ENTITIES:
            for id in proposal.subject_ids:
                ids |= set(await lifecycle.linked(tx, principal, id))
            ids |= set(await lifecycle.merged_before(tx, principal, proposal.subject_ids))
        case ProposalKind.PROMOTE_FACT:
            ids |= set(await promoting.reach(tx, principal, RecordId(proposal.subject_ids[0])))
        case _:
            pass
    return ids


async def _lock(tx: Tx, principal: Principal, ids: Collection[str]) -> standing.Locked:
    locked = await standing.lock(tx, principal, [RecordId(id) for id in ids if is_id(id, "mem", "fact")])
    await lifecycle.lock_entities(tx, principal, [id for id in ids if is_id(id, "ent")])
    return locked


async def _change(tx: Tx, deps: Deps, who: Decider, proposal: Proposal, *, locked: standing.Locked) -> None:
    principal, at = who.principal, locked.at
    if proposal.kind is ProposalKind.MERGE_ENTITIES:
        await _merge(tx, principal, proposal)
        return
    id = RecordId(proposal.subject_ids[0])
    record = locked.records.get(id)
    if record is None:
        raise Conflict(f"{id} is gone.")
    if proposal.kind is ProposalKind.PROMOTE_FACT:
        _expect(record, Standing.PROVISIONAL)
        await promoting.promote(tx, deps, principal, id, rules=who.standards.facts, score=proposal.score)
        return
    _expect(record, Standing.CURRENT)
    match proposal.kind, record:
        case ProposalKind.ARCHIVE, _:
            await standing.retire(tx, principal, [id], to=Standing.ARCHIVED, at=at)
        case ProposalKind.REVALIDATE, _:
            await lifecycle.validated(tx, principal, id, at=deps.clock())
            days = who.standards.lifecycle.rehearsal_days
            await rehearsing.answered(tx, principal, record, holds=True, days=days, now=deps.clock())
        case ((ProposalKind.PROMOTE_MEMORY | ProposalKind.DEMOTE), Memory()):
            await _reclass(tx, principal, proposal, record)
        case _:
            raise Conflict(f"{id} is a fact, expected a memory.")


def _expect(record: Record, expected: Standing) -> None:
    if record.standing is not expected:
        raise Conflict(f"{record.id} is {record.standing} by now, expected {expected}.", current_version=record.version)


async def _reclass(tx: Tx, principal: Principal, proposal: Proposal, memory: Memory) -> None:
    if memory.label != proposal.change.get("from", memory.label):
        raise Conflict(f"{memory.id} has another label by now.", current_version=memory.version)
    if proposal.kind is ProposalKind.PROMOTE_MEMORY:
        new = Class(
            label=proposal.change["to"],
            importance=max(memory.importance, proposal.change["importance"]),
            starting_strength=proposal.score,
            confidence=memory.signals.confidence,
            evergreen=memory.signals.evergreen,
        )
    else:
        known = memory.signals.confidence
        new = Class(
            label=memory.label,
            importance=memory.importance / 2,
            starting_strength=None,
            confidence=proposal.score if known is None else min(known, proposal.score),
            evergreen=False,
        )
    await lifecycle.reclass(tx, principal, memory.id, new, old_label=memory.label)


async def _merge(tx: Tx, principal: Principal, proposal: Proposal) -> None:
    heir, gone = proposal.subject_ids
    found = await lifecycle.lock_entities(tx, principal, [heir, gone])
    for id in (heir, gone):
        if id not in found:
            raise Conflict(f"{id} is gone.")
        if found[id] is not None:
            raise Conflict(f"{id} was merged into {found[id]} by now.")
    linked = await lifecycle.linked(tx, principal, gone)
    await lifecycle.merge_entities(tx, principal, heir=EntityId(heir), gone=EntityId(gone), record_ids=linked)


async def note(tx: Tx, deps: Deps, who: Decider, proposal: Proposal, kind: str, *, at: datetime) -> None:
    """Say in the history of each subject what was done to it, and how strong it is now."""
    detail = {"proposal": proposal.id, "proposed": proposal.kind.value}
    records = (await standing.lock(tx, who.principal, [RecordId(id) for id in proposal.subject_ids])).records
    for id in proposal.subject_ids:
        record = records.get(RecordId(id))
        measured = None if record is None else who.standards.strength(record, deps.clock())
        version = None if record is None else record.version
        event = event_of(deps, id, kind, by=who.by, at=at, version=version, detail=detail, strength=measured)
        await audit.append(tx, proposal.place, event)


def event_of(
    deps: Deps,
    record_id: str,
    kind: str,
    *,
    by: UserId,
    at: datetime,
    version: int | None = None,
    detail: dict[str, Any] | None = None,
    strength: float | None = None,
) -> Event:
    """One line of history."""
    return Event(deps.new_id("evt"), record_id, at, by, kind, version=version, detail=detail, strength=strength)
