"""Facts and their slots. What is true in a slot changes only under the slot's lock.

A slot is an owner's, in one scope, for one subject and relation. The fact that holds a seat in it carries the
seat's key as `activeKey`, which a constraint keeps unique: a slot of one has one seat, a slot of many has one for
each sentence. Everything a save changes is in one transaction, so no reader ever finds two or none.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from graph_mem.core.model import Event, Fact, Place, Principal, RecordId, RecordKind, Relation, Standing, place_of
from graph_mem.core.seats import Seat
from graph_mem.core.tags import tags
from graph_mem.core.words import pieces
from graph_mem.errors import NotFound
from graph_mem.store import audit, jobs, relations
from graph_mem.store.audit import APPEND
from graph_mem.store.db import Tx, row, rows
from graph_mem.store.jobs import ENQUEUE, NewJob
from graph_mem.store.records import fact_columns, fact_of, interval_properties
from graph_mem.store.relations import SUPERSEDING
from graph_mem.store.standing import leave, leaving
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import access, admitted, place_properties, visible

LOCK_SLOT = f"""
MERGE (s:Slot {{key: $key}})
  ON CREATE SET s += $properties, s.rev = 0, s.at = 0
SET s.lock = $lock
WITH s, datetime.realtime().epochMillis AS now
OPTIONAL MATCH (s)-[:CURRENT]->(f:Fact) WHERE {visible("f")} AND ($same IS NULL OR f.contentHash = $same)
OPTIONAL MATCH (x:Rejection {{key: $rejection}})
RETURN CASE WHEN now > s.at THEN now ELSE s.at + 1 END AS at, x IS NOT NULL AS refused,
  collect({fact_columns("f")}) AS facts
"""
WAITING = f"""
MATCH (f:Fact {{slotKey: $key}})
WHERE f.standing = 'PROVISIONAL' AND f.contentHash = $hash AND {visible("f")}
RETURN {fact_columns("f")} AS node LIMIT 1
"""
PAST = f"""
MATCH (f:Fact {{slotKey: $key}})
WHERE f.standing = 'SUPERSEDED' AND {visible("f")}
RETURN {fact_columns("f")} AS node
"""
END: LiteralString = f"""
UNWIND $ends AS one
MATCH (f:Fact {{id: one.id}}) WHERE {visible("f")}
SET f.validTo = one.validTo, f.revokedAt = coalesce(one.revokedAt, f.revokedAt)
"""
# All of a save in one statement: the fewer round trips under a slot's lock, the sooner the next writer has it.
WRITE = f"""
CALL () {{
  UNWIND $leaving AS id
  MATCH (r:Fact {{id: id}}) WHERE {visible("r")}
  {leave()}
}}
CALL () {{ {END} }}
CALL () {{
  CREATE (f:Fact) SET f = $properties
  WITH f
  MATCH (s:Slot {{key: f.slotKey}})
  SET s.at = $at, s.rev = s.rev + 1, f.rev = s.rev
  FOREACH (_ IN CASE WHEN f.activeKey IS NULL THEN [] ELSE [1] END | CREATE (s)-[:CURRENT]->(f))
}}
CALL () {{ {SUPERSEDING} }}
CALL () {{
  UNWIND $sources AS source
  MATCH (m:Memory {{id: source}}) WHERE {visible("m")}
  MATCH (f:Fact {{id: $properties.id}})
  MERGE (m)-[:STATES]->(f)
}}
CALL () {{ {APPEND} }}
CALL () {{ {ENQUEUE} }}
MATCH (f:Fact {{id: $properties.id}})
RETURN COUNT {{ (f)-[:SUPERSEDES]->() }} + COUNT {{ (f)<-[:SUPERSEDES]-() }} AS links
"""
WITHDRAW = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
SET f.validTo = $validTo, f.revokedAt = $at, f.withdrawnAt = $at, f.withdrawnTo = $validTo, f.withdrawnFor = $reason
WITH f
MATCH (s:Slot {{key: f.slotKey}})
SET s.at = $at
"""
PROMOTE = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
SET f.validFrom = $validFrom, f.validTo = $validTo
WITH f
MATCH (s:Slot {{key: f.slotKey}})
SET s.at = $at, s.rev = s.rev + 1, f.rev = s.rev
"""
KNOW = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
SET f.knownFrom = $at
"""
NEIGHBOURS = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
MATCH (n:Fact {{slotKey: f.slotKey}}) WHERE {visible("n")} AND n.standing IN ['CURRENT', 'SUPERSEDED']
RETURN n.id AS id
"""
REINSTATE = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
SET f.validTo = f.statedTo, f.revokedAt = null
WITH f
MATCH (s:Slot {{key: f.slotKey}})
SET s.at = $at
"""
HOLDER = f"""
MATCH (f:Fact {{activeKey: $key}}) WHERE {visible("f")}
RETURN f.id AS id
"""
PLACES = f"""
MATCH (m:Memory) WHERE m.id IN $ids AND m.standing <> 'ERASED' AND {visible("m")}
RETURN m {{.id, .org, .owner, .level, .clientId, .dealId}} AS node
"""
ATTEST = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
UNWIND $sources AS source
MATCH (m:Memory {{id: source}}) WHERE {visible("m")}
MERGE (m)-[:STATES]->(f)
"""
REJECT = """
MERGE (x:Rejection {key: $key})
  ON CREATE SET x += $place, x.at = $at, x.by = $by, x.slotKey = $slot
"""
FORGIVE = """
MATCH (x:Rejection {key: $key})
DETACH DELETE x
"""
SEATED = f"""
MATCH (f:Fact {{id: $id}}) WHERE f.standing <> 'ERASED' AND {visible("f")}
RETURN {fact_columns("f")} AS node, f {{.slotKey, .seat, .subjectKey, .relationKey, .contentHash,
  .rejectionKey, .statedFrom, .withdrawnAt}} AS seat
"""
REFUSED = f"""
MATCH (f:Fact {{slotKey: $slot}})
WHERE f.rejectionKey = $key AND f.standing = 'REJECTED' AND {visible("f")}
RETURN {fact_columns("f")} AS node ORDER BY f.id DESC LIMIT 1
"""
BY_ID = f"""
MATCH (f:Fact) WHERE f.id IN $ids AND f.standing <> 'ERASED' AND {visible("f")}
RETURN {fact_columns("f")} AS node
"""


@dataclass(frozen=True, slots=True)
class Slot:
    """A locked slot: an instant after every change to it, the facts active in it, newest first, and whether a person
    refused the value."""

    at: datetime
    active: tuple[Fact, ...]
    refused: bool


@dataclass(frozen=True, slots=True)
class Seated:
    """A fact and where it belongs. `stated_from`: its beginning was said, not taken from the clock. `withdrawn`: a
    person took it back."""

    fact: Fact
    seat: Seat
    stated_from: bool
    withdrawn: bool


async def lock_slot(
    tx: Tx, principal: Principal, place: Place, seat: Seat, *, subject: str, relation: str, only_same: bool
) -> Slot:
    """The slot, made if it is new, locked until the transaction ends. `only_same`: with no fact but the one that says
    the same."""
    properties = {**place_properties(place), "subject": subject, "relation": relation}
    given = {
        "key": seat.slot_key,
        "rejection": seat.rejection_key,
        "lock": seat.statement_hash,
        "same": seat.statement_hash if only_same else None,
        "properties": properties,
        **access(principal),
    }
    found = await row(tx, LOCK_SLOT, **given)
    while found is None or found["at"] is None:  # erased while this waited for its lock: make it again
        found = await row(tx, LOCK_SLOT, **given)
    active = sorted(admitted(principal, found["facts"], fact_of), key=lambda fact: fact.created_at, reverse=True)
    return Slot(instant(found["at"]), tuple(active), found["refused"])


async def waiting(tx: Tx, principal: Principal, seat: Seat) -> Fact | None:
    """The provisional fact in a slot that says the same."""
    found = await row(tx, WAITING, key=seat.slot_key, hash=seat.statement_hash, **access(principal))
    return next(iter(admitted(principal, [found["node"]], fact_of)), None) if found else None


async def past(tx: Tx, principal: Principal, slot_key: str) -> list[Fact]:
    """Every fact that is no longer active in a slot, in no order."""
    found = await rows(tx, PAST, key=slot_key, **access(principal))
    return admitted(principal, (row["node"] for row in found), fact_of)


@dataclass(frozen=True, slots=True)
class Ending:
    """When a fact ceases to hold, and when it was revoked, if it was."""

    id: RecordId
    valid_to: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """All that saving a new fact writes into its locked slot: who leaves the seat, whose time ends, the links.

    `leaving` are superseded at the instant that the fact is created. `events` are of records at the fact's place.
    """

    fact: Fact
    seat: Seat
    stated_from: bool
    leaving: Collection[RecordId]
    endings: Sequence[Ending]
    links: Sequence[Relation]
    source_ids: Sequence[RecordId]
    events: Sequence[Event]
    jobs: Sequence[NewJob]


async def write(tx: Tx, principal: Principal, change: Change) -> None:
    """Store a new fact in a locked slot: seated if current, else beside it; with all that this changes.

    Errors: NotFound if a link's other end is not there; the transaction must not go on.
    """
    fact = change.fact
    properties = _properties(fact, change.seat)
    properties["statedFrom"] = properties["validFrom"] if change.stated_from else None
    found = await row(
        tx,
        WRITE,
        properties=properties,
        ends=list(map(_ending, change.endings)),
        links=list(map(relations.properties, change.links)),
        sources=sorted(change.source_ids),
        events=[audit.properties(fact.place, event) for event in change.events],
        jobs=list(map(jobs.properties, change.jobs)),
        now=ms(fact.created_at),
        leaving=sorted(change.leaving),
        **leaving(Standing.SUPERSEDED, at=fact.created_at),
        **access(principal),
    )
    if found is None or found["links"] != len(change.links):
        raise NotFound(fact.id)


def _properties(fact: Fact, seat: Seat) -> dict[str, Any]:
    title = f"{fact.subject} {fact.relation}"
    return {
        **place_properties(fact.place),
        **interval_properties(fact.interval),
        "id": fact.id,
        "kind": "fact",
        "label": fact.label,
        "subject": fact.subject,
        "relation": fact.relation,
        "statement": fact.statement,
        "content": fact.statement,
        "title": title,
        "pieces": pieces(f"{title} {fact.statement}"),
        "contentHash": seat.statement_hash,
        "slotKey": seat.slot_key,
        "seat": seat.active_key,
        "activeKey": seat.active_key if fact.standing is Standing.CURRENT else None,
        "subjectKey": seat.subject_key,
        "relationKey": seat.relation_key,
        "rejectionKey": seat.rejection_key,
        "standing": fact.standing.value,
        "version": fact.version,
        "confidence": fact.signals.confidence,
        "author": fact.author,
        "createdAt": ms(fact.created_at),
        "statedTo": ms(fact.interval.valid_to),
        "lastValidatedAt": ms(fact.created_at),
        "keys": tags(fact.place, standing=fact.standing, kind=RecordKind.FACT, label=fact.label),
    }


async def end(tx: Tx, principal: Principal, endings: Sequence[Ending]) -> None:
    """Set until when facts of locked slots held."""
    await rows(tx, END, ends=list(map(_ending, endings)), **access(principal))


def _ending(one: Ending) -> dict[str, Any]:
    revoked = None if one.revoked_at is None else ms(one.revoked_at)
    return {"id": one.id, "validTo": ms(one.valid_to), "revokedAt": revoked}


async def withdraw(
    tx: Tx, principal: Principal, id: RecordId, *, at: datetime, valid_to: datetime, reason: str | None
) -> None:
    """Note that a person took a fact back at `at`: it held until `valid_to`, not at all if that is its beginning."""
    await rows(tx, WITHDRAW, id=id, at=ms(at), validTo=ms(valid_to), reason=reason, **access(principal))


async def promote(
    tx: Tx, principal: Principal, id: RecordId, *, at: datetime, valid_from: datetime, valid_to: datetime
) -> None:
    """Give a provisional fact of a locked slot its turn and its time; `standing` seats it."""
    given = {"id": id, "at": ms(at), "validFrom": ms(valid_from), "validTo": ms(valid_to)}
    await rows(tx, PROMOTE, **given, **access(principal))


async def know(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> None:
    """Note that what a fact says is known from `at` on, though it is history."""
    await rows(tx, KNOW, id=id, at=ms(at), **access(principal))


async def neighbours(tx: Tx, principal: Principal, id: RecordId) -> list[RecordId]:
    """The facts that hold or held in the slot of a fact."""
    return [RecordId(found["id"]) for found in await rows(tx, NEIGHBOURS, id=id, **access(principal))]


async def reinstate(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> None:
    """Undo the ending of a fact in a locked slot: it holds until the end that was stated for it."""
    await rows(tx, REINSTATE, id=id, at=ms(at), **access(principal))


async def holder(tx: Tx, principal: Principal, seat: Seat) -> Seated | None:
    """The active fact in a seat."""
    found = await row(tx, HOLDER, key=seat.active_key, **access(principal))
    return await seated(tx, principal, RecordId(found["id"])) if found else None


async def places(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> dict[RecordId, Place]:
    """Where those of the memories `ids` are that `principal` may see."""
    found = await rows(tx, PLACES, ids=list(ids), **access(principal))
    seen = admitted(principal, (row["node"] for row in found), lambda node: (RecordId(node["id"]), place_of(node)))
    return dict(seen)


async def attest(tx: Tx, principal: Principal, id: RecordId, *, source_ids: Collection[RecordId]) -> None:
    """Add memories to the sources of a fact in a locked slot."""
    if source_ids:
        await rows(tx, ATTEST, id=id, sources=sorted(source_ids), **access(principal))


async def reject(tx: Tx, place: Place, *, key: str, slot_key: str, at: datetime, by: str) -> None:
    """Remember that a person refused a value for a slot."""
    await rows(tx, REJECT, key=key, slot=slot_key, place=place_properties(place), at=ms(at), by=by)


async def forgive(tx: Tx, *, key: str) -> None:
    """Forget a refusal: a person brought the value back."""
    await rows(tx, FORGIVE, key=key)


async def by_ids(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> list[Fact]:
    """The facts among `ids` that `principal` may see, in no order."""
    found = await rows(tx, BY_ID, ids=list(ids), **access(principal))
    return admitted(principal, (row["node"] for row in found), fact_of)


async def seated(tx: Tx, principal: Principal, id: RecordId) -> Seated | None:
    """A fact and where it belongs."""
    found = await row(tx, SEATED, id=id, **access(principal))
    facts = admitted(principal, [found["node"]], fact_of) if found else []
    if not found or not facts:
        return None
    keys = found["seat"]
    seat = Seat(
        slot_key=keys["slotKey"],
        active_key=keys["seat"],
        rejection_key=keys["rejectionKey"],
        subject_key=keys["subjectKey"],
        relation_key=keys["relationKey"],
        statement_hash=keys["contentHash"],
    )
    return Seated(facts[0], seat, stated_from=keys["statedFrom"] is not None, withdrawn=keys["withdrawnAt"] is not None)


async def refused(tx: Tx, principal: Principal, seat: Seat) -> Fact | None:
    """The fact with which a person last refused this value, unless it was erased."""
    found = await row(tx, REFUSED, slot=seat.slot_key, key=seat.rejection_key, **access(principal))
    return next(iter(admitted(principal, [found["node"]], fact_of)), None) if found else None
