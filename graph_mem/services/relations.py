"""Links between records: made with a capture or later, and marked wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graph_mem.core import gates
from graph_mem.core.model import (
    SUPERSEDES,
    Event,
    Fact,
    Memory,
    Page,
    Principal,
    Record,
    RecordId,
    Relation,
    RelationState,
    Standing,
)
from graph_mem.core.supersession import check_link
from graph_mem.core.text import MAX_REASON_BYTES, check_text
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.errors import Conflict, Forbidden, InvalidInput, NotFound
from graph_mem.services import Deps, facts, idempotency, restoring
from graph_mem.services.facts import Rules
from graph_mem.store import audit, relations, standing
from graph_mem.store import facts as fact_store
from graph_mem.store.db import Tx
from graph_mem.store.facts import Ending
from graph_mem.store.standing import Locked

_MAX_RELATIONS = 100


@dataclass(frozen=True, slots=True)
class NewRelation:
    """A link that a caller wants, unchecked."""

    kind: str
    to_id: RecordId
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Related:
    relation: Relation
    replayed: bool = False


def check(wanted: Sequence[NewRelation], vocabulary: Vocabulary) -> None:
    """Refuse kinds that the organization does not have, and reasons that cannot be stored."""
    if len(wanted) > _MAX_RELATIONS:
        raise InvalidInput(f"Found {len(wanted)} relations, expected at most {_MAX_RELATIONS}.", path=("relations",))
    for one in wanted:
        vocabulary.check_kind(one.kind)
        if one.reason is not None:
            check_text(one.reason, path=("reason",), max_bytes=MAX_REASON_BYTES)


async def attach(
    tx: Tx, deps: Deps, principal: Principal, memory: Memory, wanted: Sequence[NewRelation]
) -> list[Relation]:
    """Link a memory that this transaction has made to the records it names, and retire those it replaces.

    `wanted` has passed `check`. Errors: NotFound for a record the caller cannot see, InvalidInput for a link that
    may not be; the transaction must not go on, so that nothing is saved. Nothing leads to a new record, so no link
    from it closes a ring.
    """
    if not wanted:
        return []
    named = [one.to_id for one in wanted]
    kept = await relations.kept(tx, principal, named)
    for id in named:
        if id not in kept:
            raise NotFound(id, path=("relations",))
    locked = await standing.lock(tx, principal, {memory.id, *kept.values()})
    made: dict[tuple[str, RecordId], Relation] = {}
    for one, id in zip(wanted, named, strict=True):
        older = _record(locked, kept[id], path="relations")
        retires = check_link(memory, older, kind=one.kind)
        link = _link(deps, principal, one.kind, memory, older, reason=one.reason, retires=retires, at=locked.at)
        made.setdefault((one.kind, older.id), link)
    for link in made.values():
        await _write(tx, deps, principal, link, locked=locked)
    return list(made.values())


async def relate(
    deps: Deps,
    principal: Principal,
    *,
    from_id: str,
    to_id: str,
    kind: str,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Related:
    """Link two records that are there; a SUPERSEDES link retires the older one if it may.

    The same link again is the link that is there. Errors: NotFound, InvalidInput, IdempotencyKeyReused; Forbidden
    for a fact that the caller could not have made count.
    """
    wanted = NewRelation(kind, RecordId(to_id), reason)
    request = idempotency.request(principal, mutation="relate", key=idempotency_key, given=(from_id, wanted))
    check([wanted], await deps.settings.vocabulary(principal.org_id))
    rules = await facts.rules_of(deps, principal)

    async def work(tx: Tx) -> Related:
        now = deps.clock()
        answer = await idempotency.replay(tx, request, now=now)
        if answer is not None:
            return Related(await _found(tx, principal, answer), replayed=True)
        made = await _relate(tx, deps, principal, from_id, wanted, rules=rules)
        await idempotency.remember(tx, request, made.id, now=now)
        return Related(made)

    return await deps.db.write(work)


async def _relate(
    tx: Tx, deps: Deps, principal: Principal, from_id: str, wanted: NewRelation, *, rules: Rules
) -> Relation:
    ends = (RecordId(from_id), wanted.to_id)
    kept = await relations.kept(tx, principal, ends)
    for id, path in zip(ends, ("fromId", "toId"), strict=True):
        if id not in kept:
            raise NotFound(id, path=(path,))
    locked = await standing.lock(tx, principal, set(kept.values()))
    newer = _record(locked, kept[ends[0]], path="fromId")
    older = _record(locked, kept[ends[1]], path="toId")
    there = await relations.linked(tx, principal, from_id=newer.id, to_id=older.id, kind=wanted.kind)
    if there is not None:
        return there
    reached: set[RecordId] = set()
    if wanted.kind == SUPERSEDES:
        _check_gate(principal, (newer, older), rules)
        await relations.lock_succession(tx, newer.place.partition_token, lock=newer.id)
        if await relations.leads(tx, principal, older=older.id, newer=newer.id):
            reached.add(newer.id)
    retires = check_link(newer, older, kind=wanted.kind, reached=reached)
    link = _link(deps, principal, wanted.kind, newer, older, reason=wanted.reason, retires=retires, at=locked.at)
    await _write(tx, deps, principal, link, locked=locked)
    return link


async def correct(deps: Deps, principal: Principal, id: str, *, reason: str) -> Relation:
    """Mark a link as wrong. What it alone retired is current again; link and correction stay in history.

    Errors: NotFound; Conflict for a link that is retracted already, or a fact whose slot another one holds now;
    Forbidden as in `relate`.
    """
    check_text(reason, path=("reason",), max_bytes=MAX_REASON_BYTES)
    rules = await facts.rules_of(deps, principal)

    async def work(tx: Tx) -> Relation:
        link = await _found(tx, principal, id)
        locked = await standing.lock(tx, principal, {link.from_id, link.to_id})
        link = await _found(tx, principal, id)
        if link.state is RelationState.RETRACTED:
            raise Conflict(f"{id} is retracted already.")
        newer = _record(locked, link.from_id, path="id")
        older = _record(locked, link.to_id, path="id")
        if link.kind == SUPERSEDES:
            _check_gate(principal, (newer, older), rules)
        await relations.retract(tx, principal, id, at=locked.at, by=principal.user_id, reason=reason)
        await audit.append(tx, newer.place, _event(deps, principal, newer, "relation_corrected", link, locked.at))
        if link.retires:
            await restoring.restore(tx, deps, principal, link, newer=newer, older=older, at=locked.at)
        return replace(link, state=RelationState.RETRACTED)

    return await deps.db.write(work)


async def by_id(deps: Deps, principal: Principal, id: str) -> Relation | None:
    """The link with this id, if `principal` sees both its ends."""
    return await deps.db.read(lambda tx: relations.find(tx, principal, id))


async def of_record(deps: Deps, principal: Principal, id: RecordId, page: Page) -> list[Relation]:
    """Links from and to a record, newest first."""

    async def work(tx: Tx) -> list[Relation]:
        return await relations.of_record(tx, principal, id, page)

    return await deps.db.read(work)


async def _found(tx: Tx, principal: Principal, id: str) -> Relation:
    link = await relations.find(tx, principal, id)
    if link is None:
        raise NotFound(id, path=("id",))
    return link


def _record(locked: Locked, id: RecordId, *, path: str) -> Record:
    record = locked.records.get(id)
    if record is None or record.standing is Standing.ERASED:
        raise NotFound(id, path=(path,))
    return record


def _check_gate(principal: Principal, ends: Sequence[Record], rules: Rules) -> None:
    """What retires or restores a fact must be able to save one there that counts."""
    for one in ends:
        if isinstance(one, Fact) and gates.lands(principal, one.place, rules.write_gate) is not Standing.CURRENT:
            raise Forbidden(f"Your role {principal.role} changes no facts of this scope.")


def _link(
    deps: Deps,
    principal: Principal,
    kind: str,
    newer: Record,
    older: Record,
    *,
    reason: str | None,
    retires: bool,
    at: datetime,
) -> Relation:
    return Relation(
        id=deps.new_id("rel"),
        kind=kind,
        from_id=newer.id,
        to_id=older.id,
        state=RelationState.ACTIVE,
        by=principal.user_id,
        at=at,
        reason=reason,
        retires=retires,
    )


async def _write(tx: Tx, deps: Deps, principal: Principal, link: Relation, *, locked: Locked) -> None:
    """Store a link with its effect and its line in both histories."""
    newer, older = locked.records[link.from_id], locked.records[link.to_id]
    if link.kind != SUPERSEDES:
        await relations.relate(tx, principal, [link])
        await audit.append(tx, newer.place, _event(deps, principal, newer, "related", link, locked.at))
        return
    await relations.supersede(tx, principal, [link])
    leaves = link.retires and older.standing is Standing.CURRENT
    if leaves:
        await standing.retire(tx, principal, [older.id], to=Standing.SUPERSEDED, at=locked.at)
        if isinstance(older, Fact):
            interval = older.interval
            end = max(interval.valid_from, min(interval.valid_to, newer.interval.valid_from))
            await fact_store.end(tx, principal, [Ending(older.id, end, locked.at)])
    await audit.append(tx, newer.place, _event(deps, principal, newer, "supersedes", link, locked.at))
    await audit.append(tx, older.place, _event(deps, principal, older, "superseded" if leaves else "linked", link,
                                               locked.at, bump=leaves))  # fmt: skip


def _event(
    deps: Deps, principal: Principal, record: Record, kind: str, link: Relation, at: datetime, *, bump: bool = False
) -> Event:
    other = link.to_id if record.id == link.from_id else link.from_id
    detail: dict[str, Any] = {"relation": link.id, "kind": link.kind, "record": other}
    if link.kind == SUPERSEDES and not link.retires:
        detail["retires"] = False
    return Event(
        id=deps.new_id("evt"),
        record_id=record.id,
        at=at,
        by=principal.user_id,
        kind=kind,
        version=record.version + bump,
        detail=detail,
    )
