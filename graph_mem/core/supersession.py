"""What replaces what: who may retire whom, what a correction restores, the order of a chain.

A link goes from the newer to the older record. Nothing here judges content: who replaces whom is said by callers, or
follows from the slot of a fact (`core.slots`).
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from graph_mem.core.model import SUPERSEDES, Fact, Memory, Place, Record, RecordId, Relation, RelationState, Standing
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
