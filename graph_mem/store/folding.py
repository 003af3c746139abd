"""Folding a copy into the memory that has its text already, and the former texts of a memory."""

from datetime import datetime

from graph_mem.core.model import MemoryVersion, Principal, RecordId, UserId
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import access, admitted, visible

FOLD = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
MATCH (kept:Memory {{id: $into}}) WHERE {visible("kept")}
MERGE (m)-[f:FOLDED_INTO]->(kept)
SET f.at = $at, kept.foldCount = coalesce(kept.foldCount, 0) + 1,
    kept.foldedIds = [m.id] + coalesce(kept.foldedIds, [])[..$remembered]
"""

PASS_SOURCES = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
MATCH (kept:Fact {{id: $into}}) WHERE {visible("kept")}
MERGE (f)-[r:FOLDED_INTO]->(kept)
SET r.at = $at
WITH f, kept
MATCH (m:Memory)-[:STATES]->(f)
MERGE (m)-[:STATES]->(kept)
"""

_REMEMBERED = 4
"""How many of the copies folded before a memory names; the others are counted, and lead to it."""


async def fold(tx: Tx, principal: Principal, id: RecordId, *, into: RecordId, at: datetime) -> None:
    """Point a locked memory at the locked one that stands for it."""
    await rows(tx, FOLD, id=id, into=into, at=ms(at), remembered=_REMEMBERED, **access(principal))


async def pass_sources(tx: Tx, principal: Principal, id: RecordId, *, into: RecordId, at: datetime) -> None:
    """Point a locked fact at the one that says the same, which gains its sources."""
    await rows(tx, PASS_SOURCES, id=id, into=into, at=ms(at), **access(principal))


VERSION_AT = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")} AND coalesce(m.savedAt, m.createdAt) > $at
MATCH (v:Version {{memoryId: m.id}}) WHERE {visible("v")}
WITH v ORDER BY v.savedAt <= $at DESC, abs(v.savedAt - $at) LIMIT 1
RETURN v {{.id, .org, .owner, .level, .clientId, .dealId, .version, .savedAt, .savedBy, .text}} AS node
"""


async def version_at(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> MemoryVersion | None:
    """The former text that a memory had at `at`; None if it is the present one."""
    found = await row(tx, VERSION_AT, id=id, at=ms(at), **access(principal))
    former = admitted(principal, [found["node"]], version_of) if found else []
    return former[0] if former else None


def version_of(node: Row) -> MemoryVersion:
    return MemoryVersion(node["version"], instant(node["savedAt"]), UserId(node["savedBy"]), node["text"])
