"""What replaces what: links between records, the slot of a fact, the order of a chain.

A link goes from the newer to the older record. Nothing here judges content: who replaces whom is said by callers, or
follows from the slot.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from graph_mem.core.model import (
    FAR,
    SUPERSEDES,
    Fact,
    Memory,
    Place,
    Record,
    RecordId,
    Relation,
    RelationState,
    Standing,
    token,
)
from graph_mem.core.text import name_key, statement_hash
from graph_mem.errors import Conflict, InvalidInput


def check_link(newer: Record, older: Record, *, kind: str, reached: Collection[RecordId] = ()) -> bool:
    """Whether a new link retires `older`; always False for a kind other than SUPERSEDES.

    `reached` are the records that `older` leads to over active SUPERSEDES links, at any distance.
    A finding retires no position, and a provisional record nothing: the link is saved all the same.
    Errors: InvalidInput for a self-link, a link across partitions, and for SUPERSEDES between a memory and a
    fact or when it would close a cycle.
    """
    if newer.id == older.id:
        raise InvalidInput(f"{newer.id} cannot be linked to itself, expected two records.", path=("toId",))
    if (newer.place.org_id, newer.place.owner_id) != (older.place.org_id, older.place.owner_id):
        raise InvalidInput(
            f"{newer.id} is {_kind_of_place(newer.place)} and {older.id} is {_kind_of_place(older.place)};"
            " a link stays inside one partition.",
            path=("toId",),
        )
    if kind != SUPERSEDES:
        return False
    if newer.kind is not older.kind:
        raise InvalidInput(
            f"{newer.id} is a {newer.kind.lower()} and {older.id} a {older.kind.lower()}; each supersedes its like.",
            path=("toId",),
        )
    if newer.id in reached:
        raise InvalidInput(f"{older.id} already supersedes {newer.id}; a chain has no cycles.", path=("toId",))
    return newer.standing is not Standing.PROVISIONAL and _outranks(newer, older)


def _kind_of_place(place: Place) -> str:
    return "private" if place.private else "shared"


def _outranks(newer: Record, older: Record) -> bool:
    if isinstance(newer, Memory) and isinstance(older, Memory):
        return newer.position or not older.position
    return True


def retired(record_id: RecordId, links: Iterable[Relation]) -> bool:
    """Whether one of `links` makes the record not current."""
    return any(link.to_id == record_id and _retires(link) for link in links)


def _retires(link: Relation) -> bool:
    return link.kind == SUPERSEDES and link.state is RelationState.ACTIVE and link.retires


def standing_after_correction(older: Record, *, others: Iterable[Relation], in_slot: Fact | None = None) -> Standing:
    """The standing of `older` once a link to it was marked wrong; `others` are the remaining links.

    Errors: Conflict if `older` is a fact that would be current again while `in_slot` holds its slot.
    """
    if older.standing is not Standing.SUPERSEDED or retired(older.id, others):
        return older.standing
    if in_slot is not None and in_slot.id != older.id:
        raise Conflict(
            f"{older.id} would be current again, but {in_slot.id} is the active fact of its slot;"
            " retract that one first."
        )
    return Standing.CURRENT


class FactOutcome(StrEnum):
    """What became of a saved sentence."""

    CREATED = "CREATED"
    SUPERSEDED = "SUPERSEDED"
    DEDUPLICATED = "DEDUPLICATED"
    PROVISIONAL = "PROVISIONAL"
    REJECTED_BEFORE = "REJECTED_BEFORE"


def slot_key(place: Place, *, subject: str, relation: str) -> str:
    """The key of a slot: organization, owner, scope, normalized subject and relation."""
    return token("slot", place.partition_token, place.scope_token, name_key(subject), name_key(relation))


def active_key(slot: str, *, statement: str, many: bool) -> str:
    """What is unique among active facts: the slot, or in a set-valued slot the slot and the sentence."""
    return token("active", slot, statement_hash(statement) if many else "")


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact to be saved, under the id it will have. `standing` is what the write gate says: CURRENT or PROVISIONAL.

    `by_person` is False for everything that reaches the store unasked: agents and extraction.
    Errors: InvalidInput if it would end before it begins.
    """

    id: RecordId
    statement: str
    valid_from: datetime
    standing: Standing
    by_person: bool
    valid_to: datetime = FAR

    def __post_init__(self) -> None:
        if self.valid_to <= self.valid_from:
            raise InvalidInput(
                f"validTo {self.valid_to.isoformat()} is not after validFrom {self.valid_from.isoformat()}.",
                path=("validTo",),
            )


@dataclass(frozen=True, slots=True)
class SlotState:
    """What the store holds, read under the slot's lock.

    `active`: the active facts, one at most unless the relation is or was set-valued. `past`: the superseded ones in
    any order. `pending`: the provisional fact with the claim's sentence. `rejected`: a person rejected this value.
    """

    active: Sequence[Fact] = ()
    past: Sequence[Fact] = ()
    pending: Fact | None = None
    rejected: bool = False
    many: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A SUPERSEDES link to write."""

    newer: RecordId
    older: RecordId
    retires: bool


@dataclass(frozen=True, slots=True)
class FactPlan:
    """What saving a claim writes.

    `standing`: of the new fact, None if none is written. `existing`: the fact that gains the claim's sources
    instead. `revoked`: the facts that stop being active. `ends`: the end of validity that facts get, the new
    one included if it is not the claimed one. `lifts_rejection`: the marker goes.
    """

    outcome: FactOutcome
    standing: Standing | None = None
    existing: RecordId | None = None
    revoked: tuple[RecordId, ...] = ()
    links: tuple[Link, ...] = ()
    ends: tuple[tuple[RecordId, datetime], ...] = ()
    lifts_rejection: bool = False


def decide(claim: Claim, state: SlotState) -> FactPlan:
    """What becomes of `claim` in its slot. Pure: the same claim and state give the same plan.

    The sentence of an active fact adds a source to that. A value that a person rejected comes back only by a
    person. A provisional claim touches nothing. A claim whose time ended before the active fact's began is history;
    any other replaces the active fact, unless the slot is set-valued.
    """
    same = next((fact for fact in state.active if _same(claim, fact)), None)
    if same is not None:
        return FactPlan(FactOutcome.DEDUPLICATED, existing=same.id)
    if state.rejected and not claim.by_person:
        return FactPlan(FactOutcome.REJECTED_BEFORE)
    if claim.standing is Standing.PROVISIONAL:
        return _provisional(state)
    if state.many or not state.active:
        return FactPlan(FactOutcome.CREATED, standing=Standing.CURRENT, lifts_rejection=state.rejected)
    if claim.valid_to <= min(fact.interval.valid_from for fact in state.active):
        return _history(claim, state)
    return _replacing(claim, state)


def _same(claim: Claim, fact: Fact) -> bool:
    return statement_hash(claim.statement) == statement_hash(fact.statement)


def _provisional(state: SlotState) -> FactPlan:
    if state.pending is not None:
        return FactPlan(FactOutcome.DEDUPLICATED, existing=state.pending.id)
    return FactPlan(FactOutcome.PROVISIONAL, standing=Standing.PROVISIONAL)


def _replacing(claim: Claim, state: SlotState) -> FactPlan:
    """The active facts are revoked, and no fact of the slot holds once the claim does."""
    active = sorted(state.active, key=_age)
    overrun = [fact for fact in state.past if _overlap(claim, fact)]
    return FactPlan(
        FactOutcome.SUPERSEDED,
        standing=Standing.CURRENT,
        revoked=tuple(fact.id for fact in active),
        links=tuple(Link(claim.id, fact.id, retires=True) for fact in active),
        ends=tuple((fact.id, ends_at(fact, claim.valid_from)) for fact in sorted([*active, *overrun], key=_age)),
        lifts_rejection=state.rejected,
    )


def ends_at(fact: Fact, successor_from: datetime) -> datetime:
    """Until when `fact` held: its own end or its successor's beginning, never before it began."""
    return max(fact.interval.valid_from, min(fact.interval.valid_to, successor_from))


def _history(claim: Claim, state: SlotState) -> FactPlan:
    """A late-arriving fact: not current, between its neighbours in time, retiring nothing."""
    held = sorted((fact for fact in state.past if fact.interval.valid_from < fact.interval.valid_to), key=_age)
    twin = next((fact for fact in held if _same(claim, fact) and _overlap(claim, fact)), None)
    if twin is not None:
        return FactPlan(FactOutcome.DEDUPLICATED, existing=twin.id)
    after = [fact for fact in (*held, *sorted(state.active, key=_age)) if fact.interval.valid_from > claim.valid_from]
    before = [fact for fact in held if fact.interval.valid_from <= claim.valid_from][-1:]
    end = min(claim.valid_to, after[0].interval.valid_from)
    return FactPlan(
        FactOutcome.CREATED,
        standing=Standing.SUPERSEDED,
        links=(
            Link(after[0].id, claim.id, retires=True),
            *(Link(claim.id, fact.id, retires=False) for fact in before),
        ),
        ends=(*((fact.id, ends_at(fact, claim.valid_from)) for fact in before), (claim.id, end)),
        lifts_rejection=state.rejected,
    )


def _overlap(claim: Claim, fact: Fact) -> bool:
    return max(claim.valid_from, fact.interval.valid_from) < min(claim.valid_to, fact.interval.valid_to)


@dataclass(frozen=True, slots=True)
class Chain:
    """What replaced what: every record after all it replaced. `heads` are the records that nothing retires."""

    records: tuple[Record, ...]
    heads: tuple[Record, ...]
    links: tuple[Relation, ...]


def chain(records: Iterable[Record], links: Iterable[Relation]) -> Chain:
    """The records oldest first, links in the order of their newer ends; the same for any order of input.

    Retracted links are listed and order nothing. Ties go by time of beginning, then of saving, then id.
    """
    known = {record.id: record for record in records}
    inside = [link for link in links if link.from_id in known and link.to_id in known]
    place = {record_id: n for n, record_id in enumerate(_ordered(known, [link for link in inside if _orders(link)]))}
    ordered = tuple(sorted(known.values(), key=lambda record: place[record.id]))
    replaced = {link.to_id for link in inside if _retires(link)}
    return Chain(
        records=ordered,
        heads=tuple(record for record in ordered if record.id not in replaced),
        links=tuple(sorted(inside, key=lambda link: (place[link.from_id], place[link.to_id], link.at, link.id))),
    )


def _orders(link: Relation) -> bool:
    return link.kind == SUPERSEDES and link.state is RelationState.ACTIVE


def _age(record: Record) -> tuple[datetime, datetime, str]:
    return (record.interval.valid_from, record.created_at, record.id)


def _ordered(known: Mapping[RecordId, Record], links: Sequence[Relation]) -> list[RecordId]:
    """Kahn's topological order, the oldest of those that are free first; a cycle, which no write allows, comes last."""
    older: dict[RecordId, set[RecordId]] = {record_id: set() for record_id in known}
    newer: dict[RecordId, set[RecordId]] = {record_id: set() for record_id in known}
    for link in links:
        older[link.from_id].add(link.to_id)
        newer[link.to_id].add(link.from_id)
    free = [(_age(known[record_id]), record_id) for record_id, replaced in older.items() if not replaced]
    heapq.heapify(free)
    ordered: list[RecordId] = []
    while free:
        _, record_id = heapq.heappop(free)
        ordered.append(record_id)
        for other in newer[record_id]:
            older[other].discard(record_id)
            if not older[other]:
                heapq.heappush(free, (_age(known[other]), other))
    left = known.keys() - set(ordered)
    return ordered + sorted(left, key=lambda record_id: _age(known[record_id]))
