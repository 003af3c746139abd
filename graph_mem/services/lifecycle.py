"""What a person does to one record directly: archive, restore, validate."""

from datetime import datetime

from graph_mem.core import gates, rehearsal
from graph_mem.core.lifecycle import LifecycleConfig
from graph_mem.core.model import Memory, Place, Principal, Record, RecordId, Role, Standing, is_id
from graph_mem.core.proposals import ProposalKind
from graph_mem.core.text import check_reason, text_hash
from graph_mem.errors import Conflict, Forbidden, NotFound
from graph_mem.services import Deps, applying, filing, rehearsing
from graph_mem.services.standards import Standards, standards_of
from graph_mem.store import audit, folding, lifecycle, records, rehearsals, relations, reviews, standing
from graph_mem.store.db import Tx


def may_change(principal: Principal, record: Record, config: LifecycleConfig) -> bool:
    """Whether a principal may archive, restore or validate: whoever writes there, and a person what they wrote."""
    author = record.source.author if isinstance(record, Memory) else record.author
    own = author == principal.user_id and principal.role is not Role.AGENT
    return own or may_decide(principal, record.place, config)


def may_decide(principal: Principal, place: Place, config: LifecycleConfig) -> bool:
    """Whether a principal's word counts at `place`: the rule that facts go by."""
    return gates.lands(principal, place, config.write_gate) is Standing.CURRENT


async def archive(
    deps: Deps, principal: Principal, id: str, *, reason: str | None = None, expected_version: int | None = None
) -> Record:
    """Take a current record out of everyday recall.

    Errors: NotFound; Forbidden; Conflict for a stale version or a record that is not current.
    """
    check_reason(reason)

    standards = await standards_of(deps, principal.org_id)

    async def work(tx: Tx) -> Record:
        record, locked = await _locked(tx, standards, principal, id, expected_version)
        _expect(record, Standing.CURRENT)
        await standing.retire(tx, principal, [record.id], to=Standing.ARCHIVED, at=locked.at)
        return await _told(tx, deps, standards, principal, record, "archived", reason)

    return await deps.db.write(work)


async def restore(
    deps: Deps, principal: Principal, id: str, *, reason: str | None = None, expected_version: int | None = None
) -> Record:
    """Bring an archived record back as if it had never left: superseded, if that is what happened to it meanwhile; and
    a copy of its text that was saved meanwhile folds into it.

    Errors: NotFound; Forbidden; Conflict for a stale version, a record that is not archived, a fact whose slot
    another one has by now, or a finding whose text somebody committed to meanwhile.
    """
    check_reason(reason)

    standards = await standards_of(deps, principal.org_id)

    async def work(tx: Tx) -> Record:
        record, locked = await _locked(tx, standards, principal, id, expected_version)
        _expect(record, Standing.ARCHIVED)
        if await relations.retiring_links(tx, principal, record.id):
            await standing.retire(tx, principal, [record.id], to=Standing.SUPERSEDED, at=locked.at)
        else:
            await _revive(tx, deps, principal, record, locked)
        return await _told(tx, deps, standards, principal, record, "restored", reason)

    return await deps.db.write(work)


async def _revive(tx: Tx, deps: Deps, principal: Principal, record: Record, locked: standing.Locked) -> None:
    rival = await lifecycle.rival(tx, principal, record.id)
    if rival.seated is not None:
        raise Conflict(f"{rival.seated} is the active fact of its slot by now; archive or retract that first.")
    await standing.revive(tx, principal, [record.id], at=locked.at, wrongly=False)
    if not isinstance(record, Memory) or record.text is None:
        return
    hash = rival.text_hash or text_hash(record.text)
    copy = await standing.claim_text(tx, principal, record.id, text_hash=hash)
    if copy is not None:
        await _fold(tx, deps, principal, copy, into=record, at=locked.at)
        await standing.claim_text(tx, principal, record.id, text_hash=hash)


async def _fold(tx: Tx, deps: Deps, principal: Principal, copy: RecordId, *, into: Record, at: datetime) -> None:
    """What would have happened to a copy saved meanwhile, had the record been there."""
    held = (await standing.lock(tx, principal, [copy])).records.get(copy)
    if isinstance(held, Memory) and isinstance(into, Memory) and held.position and not into.position:
        raise Conflict(f"{copy} was saved with the same text meanwhile, as {held.label}: archive or erase that first.")
    await standing.retire(tx, principal, [copy], to=Standing.FOLDED, at=at)
    await folding.fold(tx, principal, copy, into=into.id, at=at)
    event = applying.event_of(deps, copy, "folded", by=principal.user_id, at=at, detail={"into": into.id})
    await audit.append(tx, into.place, event)


async def validate(deps: Deps, principal: Principal, id: str, *, holds: bool, reason: str | None = None) -> Record:
    """Say of a current record that it still holds, or that it does not: then it goes to the review queue.

    Errors: NotFound; Forbidden; Conflict for a record that is not current.
    """
    check_reason(reason)
    standards = await standards_of(deps, principal.org_id)

    async def work(tx: Tx) -> Record:
        now = deps.clock()
        record, _ = await _locked(tx, standards, principal, id, None)
        _expect(record, Standing.CURRENT)
        days = standards.lifecycle.rehearsal_days
        await rehearsing.answered(tx, principal, record, holds=holds, days=days, now=now)
        if holds:
            await lifecycle.validated(tx, principal, record.id, at=now)
            return await _told(tx, deps, standards, principal, record, "validated", reason)
        proposal = filing.proposal(
            deps,
            record.place,
            ProposalKind.ARCHIVE,
            [record.id],
            shape=filing.shape(record, standards.vocabulary, "refuted"),
            score=standards.strength(record, now),
            reason=reason or "A person found that it does not hold.",
            gate="refuted by a person",
            by=principal.user_id,
            basis=(deps.new_id("evt"),),
        )
        open_now = await reviews.open_subjects(tx, principal)
        if record.id not in open_now.get(ProposalKind.ARCHIVE, frozenset()):
            await reviews.file(tx, [proposal])
        return await _told(tx, deps, standards, principal, record, "refuted", reason)

    record = await deps.db.write(work)
    deps.wakeups.notify()
    return record


async def enrol(deps: Deps, principal: Principal, *, since: datetime) -> int:
    """Enrol in rehearsal what was saved after `since`, deserves it and is not enrolled; returns how many records."""
    vocabulary = await deps.settings.vocabulary(principal.org_id)
    config = await deps.settings.lifecycle(principal.org_id)
    protected = [label.name for label in vocabulary.labels.values() if label.protected]
    now = deps.clock()
    first = rehearsal.enrolled(now, days=config.rehearsal_days)

    enrolled, start = 0, since

    async def work(tx: Tx) -> tuple[int, datetime]:
        return await rehearsals.enrol(tx, principal, first, protected=protected, since=start, at=now)

    while True:
        batch, start = await deps.db.write(work)
        enrolled += batch
        if not batch:
            return enrolled


async def _locked(
    tx: Tx, standards: Standards, principal: Principal, id: str, expected_version: int | None
) -> tuple[Record, standing.Locked]:
    """The record, locked, that `principal` may change."""
    if not is_id(id, "mem", "fact"):
        raise NotFound(id, path=("id",))
    locked = await standing.lock(tx, principal, [RecordId(id)])
    record = locked.records.get(RecordId(id))
    if record is None or record.standing is Standing.ERASED:
        raise NotFound(id, path=("id",))
    if not may_change(principal, record, standards.lifecycle):
        raise Forbidden(f"Your role {principal.role} changes no record of this scope that others wrote.")
    if expected_version not in (None, record.version):
        raise Conflict(
            f"{id} is at version {record.version}, expected {expected_version}.", current_version=record.version
        )
    return record, locked


def _expect(record: Record, expected: Standing) -> None:
    if record.standing is not expected:
        raise Conflict(f"{record.id} is {record.standing}, expected {expected}.", current_version=record.version)


async def _told(
    tx: Tx, deps: Deps, standards: Standards, principal: Principal, record: Record, kind: str, reason: str | None
) -> Record:
    """The record as it is now, after a line in its history."""
    now = (await records.by_ids(tx, principal, [record.id]))[record.id]
    event = applying.event_of(
        deps,
        record.id,
        kind,
        by=principal.user_id,
        at=deps.clock(),
        version=now.version,
        detail={"reason": reason} if reason else None,
        strength=standards.strength(now, deps.clock()),
    )
    await audit.append(tx, record.place, event)
    return now
