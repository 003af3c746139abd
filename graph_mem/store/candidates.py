"""What the consolidation cycle reads: current memories page by page, provisional facts, entities; texts when asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from graph_mem.core.candidates import Seen
from graph_mem.core.model import Entity, Fact, Principal, Record, RecordId
from graph_mem.core.seats import Seat
from graph_mem.store.db import Row, Tx, rows
from graph_mem.store.entities import entity_of
from graph_mem.store.records import fact_columns, fact_of, memory_of
from graph_mem.store.times import ms
from graph_mem.store.visibility import PLACE, access, admitted, pinned_at_home, visible

_LIGHT: LiteralString = (
    "m {.id, .org, .owner, .level, .clientId, .dealId, .standing, .version, .author, .createdAt, .validFrom,"
    " .validTo, .knownFrom, .knownTo, .retrievals, .queryKinds, .lastRetrievedAt, .lastValidatedAt, .centrality,"
    " .confidence, .trust, .evergreen, .startingStrength, .label, .position, .processing, .sourceKind, .importance,"
    f" .freshAt, .foldCount, .title, pinned: {pinned_at_home('m')}}}"
)

# Ordered by all of the index's properties, the constant ones too: only then is the index read as far as the page goes.
MEMORIES = f"""
MATCH (m:Memory) WHERE m.partition = $partition AND m.standing = 'CURRENT' AND m.createdAt >= $at AND {visible("m")}
  AND (m.createdAt > $at OR m.id > $id) AND m.processing = 'READY'
WITH m ORDER BY m.partition, m.standing, m.createdAt, m.id LIMIT $limit
RETURN {_LIGHT} AS node
"""
TEXTS = f"""
MATCH (m:Memory) WHERE m.id IN $ids AND {visible("m")} AND m.standing = 'CURRENT'
RETURN m {{.id, {PLACE}, .text}} AS node
"""
PROVISIONAL = f"""
MATCH (f:Fact) WHERE f.partition = $partition AND f.standing = 'PROVISIONAL' AND f.createdAt >= $at AND {visible("f")}
  AND (f.createdAt > $at OR f.id > $id)
WITH f ORDER BY f.partition, f.standing, f.createdAt, f.id LIMIT $limit
RETURN {fact_columns("f")} AS node, [(m:Memory)-[:STATES]->(f) | m.id][..5] AS sources
"""
CURRENT_FACTS = f"""
MATCH (f:Fact) WHERE f.partition = $partition AND f.standing = 'CURRENT' AND f.createdAt >= $at AND {visible("f")}
  AND (f.createdAt > $at OR f.id > $id)
WITH f ORDER BY f.partition, f.standing, f.createdAt, f.id LIMIT $limit
RETURN {fact_columns("f")} AS node
"""
ENTITIES = f"""
MATCH (e:Entity) WHERE e.partition = $partition AND e.mergedInto IS NULL AND e.name >= $name AND {visible("e")}
  AND (e.name > $name OR e.id > $id)
WITH e ORDER BY e.partition, e.name, e.id LIMIT $limit
RETURN e {{.id, {PLACE}, .name, .label, .aliases, .centrality}} AS node
"""
MENTIONING = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}}) WHERE {visible("e")}
CALL (e) {{
  MATCH (e)<-[:MENTIONS]-(m:Memory) WHERE {visible("m")} AND m.standing = 'CURRENT'
  RETURN m.id AS memory ORDER BY m.id DESC LIMIT 3
}}
RETURN id, collect(memory) AS memories
"""
SAID = f"""
UNWIND $claims AS one
OPTIONAL MATCH (f:Fact {{slotKey: one.slot}}) WHERE f.contentHash = one.hash AND {visible("f")}
OPTIONAL MATCH (x:Rejection {{key: one.rejection}})
WITH one, f, x WHERE f IS NOT NULL OR x IS NOT NULL
RETURN DISTINCT one.rejection AS key
"""
MARK = """
MERGE (l:Lease {name: $name})
SET l.lock = $name
WITH l WHERE coalesce(l.at, $at) < $at OR coalesce(l.at, $at) = $at AND coalesce(l.id, '') <= $id
SET l.at = $at, l.id = $id
"""
MARKED = "MATCH (l:Lease {name: $name}) RETURN l.at AS at, l.id AS id"


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """Where a page of memories or facts ended, or some reading of them."""

    at: int = -(2**62)
    id: str = ""


async def memories(tx: Tx, principal: Principal, *, partition: str, after: Cursor, limit: int) -> list[Seen]:
    """Current, READY memories of a partition in order of creation, without their texts."""
    found = await rows(tx, MEMORIES, partition=partition, at=after.at, id=after.id, limit=limit, **access(principal))
    return admitted(principal, (row["node"] for row in found), _seen)


def behind(record: Record) -> Cursor:
    """The cursor behind a record."""
    return Cursor(ms(record.created_at), record.id)


async def texts(tx: Tx, principal: Principal, ids: Sequence[RecordId]) -> dict[RecordId, str]:
    """The texts of those of `ids` that are current."""
    found = await rows(tx, TEXTS, ids=list(ids), **access(principal))
    pairs = admitted(principal, (row["node"] for row in found), lambda node: (RecordId(node["id"]), node["text"]))
    return {id: text for id, text in pairs if text is not None}


async def provisional(
    tx: Tx, principal: Principal, *, partition: str, after: Cursor, limit: int
) -> list[tuple[Fact, list[str]]]:
    """Provisional facts of a partition in order of creation, each with some of its sources."""
    found = await rows(tx, PROVISIONAL, partition=partition, at=after.at, id=after.id, limit=limit, **access(principal))
    sources = {row["node"]["id"]: list(row["sources"]) for row in found}
    facts = admitted(principal, (row["node"] for row in found), fact_of)
    return [(fact, sources[fact.id]) for fact in facts]


async def current_facts(tx: Tx, principal: Principal, *, partition: str, after: Cursor, limit: int) -> list[Fact]:
    """Current facts of a partition in order of creation."""
    found = await rows(
        tx, CURRENT_FACTS, partition=partition, at=after.at, id=after.id, limit=limit, **access(principal)
    )
    return admitted(principal, (row["node"] for row in found), fact_of)


async def entities(tx: Tx, principal: Principal, *, partition: str, after: tuple[str, str], limit: int) -> list[Entity]:
    """Entities of a partition by name; `after` is the (name, id) that the page before ended with."""
    name, id = after
    found = await rows(tx, ENTITIES, partition=partition, name=name, id=id, limit=limit, **access(principal))
    return admitted(principal, (row["node"] for row in found), entity_of)


async def mentioning(tx: Tx, principal: Principal, ids: Sequence[str]) -> dict[str, list[str]]:
    """The newest few memories that mention each entity."""
    return {row["id"]: row["memories"] for row in await rows(tx, MENTIONING, ids=list(ids), **access(principal))}


async def said(tx: Tx, principal: Principal, seats: Sequence[Seat]) -> set[str]:
    """The rejection keys of those of `seats` whose sentence is a fact already, of any standing, or was refused."""
    claims = [{"slot": one.slot_key, "hash": one.statement_hash, "rejection": one.rejection_key} for one in seats]
    return {row["key"] for row in await rows(tx, SAID, claims=claims, **access(principal))}


async def mark(tx: Tx, name: str, cursor: Cursor) -> None:
    """Remember how far some reading got; it never goes back."""
    await rows(tx, MARK, name=name, at=cursor.at, id=cursor.id)


async def marked(tx: Tx, name: str) -> Cursor:
    """How far it got."""
    found = await rows(tx, MARKED, name=name)
    return Cursor(found[0]["at"], found[0]["id"] or "") if found and found[0]["at"] is not None else Cursor()


def _seen(node: Row) -> Seen:
    return Seen(memory_of(node), pinned=bool(node["pinned"]))
