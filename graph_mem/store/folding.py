"""Copies: a memory folded into the one that has its text, a text versioned by one saved again, and what finds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from graph_mem.core.model import Memory, MemoryVersion, Place, Principal, RecordId, UserId
from graph_mem.core.segments import Span
from graph_mem.core.words import pieces
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.records import memory_columns, memory_of
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import PLACE, access, admitted, visible

# A folded memory waits for nothing: its words lead to the one that stands for it.
_AT_REST: LiteralString = (
    "REMOVE m:Pending SET m.processing = 'READY', m.failure = null, m.content = null, m.pieces = null"
)
FOLD = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
MATCH (kept:Memory {{id: $into}}) WHERE {visible("kept")}
MERGE (m)-[f:FOLDED_INTO]->(kept)
SET f.at = $at, kept.foldCount = coalesce(kept.foldCount, 0) + 1,
    kept.foldedIds = [m.id] + coalesce(kept.foldedIds, [])[..$remembered]
{_AT_REST}
"""
REST = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
{_AT_REST}
"""
FRESHEN = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
SET m.freshAt = CASE WHEN m.freshAt < $at THEN $at ELSE m.freshAt END, m.freshSpans = null, m.staleAt = null
"""
FRESHEN_PART = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
SET m.staleAt = coalesce(m.staleAt, m.freshAt),
    m.freshSpans = ($spans + CASE WHEN $moved THEN [] ELSE coalesce(m.freshSpans, []) END)[..$most],
    m.freshAt = CASE WHEN m.freshAt < $at THEN $at ELSE m.freshAt END
"""
REINFORCE = f"""
MATCH (m:Memory|Fact {{id: $id}}) WHERE {visible("m")}
SET m.lock = $id
WITH m WHERE m.reinforcedAt IS NULL
SET m.reinforcedAt = $at, m.retrievals = coalesce(m.retrievals, 0) + 1, m.lastRetrievedAt = $at
RETURN m.id AS id
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
CURRENT_COPY = f"""
MATCH (m:Memory) WHERE m.dedupKey IN $keys AND m.id <> $id AND {visible("m")}
RETURN m {{.id, {PLACE}}} AS node LIMIT 1
"""
SEEN = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")} AND r.standing <> 'ERASED'
RETURN r {{.id, {PLACE}}} AS node
"""
REMEMBER = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
SET m.fingerprints = $fingerprints
"""
ALIKE = f"""
CALL () {{
  CALL db.index.fulltext.queryNodes('copies', $query, {{limit: $looked}}) YIELD node
  RETURN node AS m
 UNION
  MATCH (n:Memory) WHERE n.sourceKey = $source
  RETURN n AS m ORDER BY m.id DESC LIMIT $looked
}}
WITH m WHERE {visible("m")} AND m.partition = $partition AND m.scope = $scope AND m.standing = 'CURRENT'
  AND m.id <> $id AND size(m.text) >= $least
RETURN {memory_columns("m")} AS node LIMIT $limit
"""
VERSION = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
CREATE (v:Version {{id: $versionId, memoryId: m.id, version: m.version, text: m.text, label: m.label,
  savedAt: coalesce(m.savedAt, m.createdAt), savedBy: coalesce(m.savedBy, m.author), org: m.org, owner: m.owner,
  level: m.level, clientId: m.clientId, dealId: m.dealId, partition: m.partition, scope: m.scope}})-[:VERSION_OF]->(m)
SET m:Pending, m.text = $text, m.content = $text, m.pieces = $pieces, m.processing = 'SAVED', m.failure = null,
    m.version = m.version + 1, m.savedAt = $at, m.savedBy = $by, m.dedupKey = null, m.textHash = $hash
WITH m
CALL (m) {{
  MATCH (c:Chunk {{memoryId: m.id}}) WHERE {visible("c")}
  DETACH DELETE c
}}
"""
VERSION_AT = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")} AND coalesce(m.savedAt, m.createdAt) > $at
MATCH (v:Version {{memoryId: m.id}}) WHERE {visible("v")}
WITH v ORDER BY v.savedAt <= $at DESC, abs(v.savedAt - $at) LIMIT 1
RETURN v {{.id, .org, .owner, .level, .clientId, .dealId, .version, .savedAt, .savedBy, .text}} AS node
"""

_REMEMBERED = 4
"""How many of the copies folded before a memory names; the others are counted, and lead to it."""
_MOST_SPANS = 60
_LOOKED_AT = 50
_COMPARED = 6


async def fold(tx: Tx, principal: Principal, id: RecordId, *, into: RecordId, at: datetime) -> None:
    """Point a locked memory at the locked one that stands for it."""
    await rows(tx, FOLD, id=id, into=into, at=ms(at), remembered=_REMEMBERED, **access(principal))


async def rest(tx: Tx, principal: Principal, id: RecordId) -> None:
    """Note that a folded memory that nothing stands for has nothing to wait for either."""
    await rows(tx, REST, id=id, **access(principal))


async def freshen(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> None:
    """Let the age of a memory count from `at`."""
    await rows(tx, FRESHEN, id=id, at=ms(at), **access(principal))


async def freshen_part(
    tx: Tx, principal: Principal, id: RecordId, *, at: datetime, spans: Sequence[Span], moved: bool
) -> None:
    """Let the age of these parts of a memory's text count from `at`, of the others from when it did.

    `moved`: the text is another than before, so parts that were made fresh earlier stand elsewhere and have the
    age of the whole. Kept as start, end and instant, one after the other; `store.found` reads them.
    """
    flat = [number for span in spans for number in (span.start, span.end, ms(at))]
    given = {"spans": flat, "moved": moved, "most": 3 * _MOST_SPANS}
    await rows(tx, FRESHEN_PART, id=id, at=ms(at), **given, **access(principal))


async def reinforce(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> bool:
    """Count a record that came back to us as retrieved once more; True the first time, nothing ever after."""
    return await row(tx, REINFORCE, id=id, at=ms(at), **access(principal)) is not None


async def pass_sources(tx: Tx, principal: Principal, id: RecordId, *, into: RecordId, at: datetime) -> None:
    """Point a locked fact at the one that says the same, which gains its sources."""
    await rows(tx, PASS_SOURCES, id=id, into=into, at=ms(at), **access(principal))


async def current_copy(
    tx: Tx, principal: Principal, id: RecordId, *, places: Sequence[Place], text_hash: str
) -> RecordId | None:
    """Another current memory with this text at one of `places`."""
    keys = [f"{place.partition_token}|{place.scope_token}|{text_hash}" for place in places]
    found = await row(tx, CURRENT_COPY, id=id, keys=keys, **access(principal))
    return next(iter(admitted(principal, [found["node"]], _id)), None) if found else None


async def seen(tx: Tx, principal: Principal, ids: Sequence[str]) -> RecordId | None:
    """The first of `ids` that names a record `principal` may see."""
    found = await rows(tx, SEEN, ids=list(ids), **access(principal))
    known = set(admitted(principal, (one["node"] for one in found), _id))
    return next((id for id in map(RecordId, ids) if id in known), None)


async def remember(tx: Tx, principal: Principal, id: RecordId, *, fingerprints: Sequence[str]) -> None:
    """Let a long text be recognised when it is saved again with edits."""
    await rows(tx, REMEMBER, id=id, fingerprints=list(fingerprints), **access(principal))


async def alike(
    tx: Tx, principal: Principal, memory: Memory, *, fingerprints: Sequence[str], min_chars: int
) -> list[Memory]:
    """Current long memories of the same place that share segments or the source with `memory`."""
    found = await rows(
        tx,
        ALIKE,
        id=memory.id,
        query=" ".join(fingerprints) or "none",
        source=memory.source.token(memory.place),
        partition=memory.place.partition_token,
        scope=memory.place.scope_token,
        least=min_chars,
        looked=_LOOKED_AT,
        limit=_COMPARED,
        **access(principal),
    )
    return admitted(principal, (one["node"] for one in found), memory_of)


@dataclass(frozen=True, slots=True)
class Edition:
    """A text that replaces a memory's present one, which becomes the version `version_id`."""

    version_id: str
    text: str
    text_hash: str
    by: UserId
    at: datetime


async def version(tx: Tx, principal: Principal, id: RecordId, edition: Edition) -> None:
    """Give a locked memory its new text, to be processed; the former one stays as a version, out of search."""
    given: Mapping[str, object] = {
        "versionId": edition.version_id,
        "text": edition.text,
        "pieces": pieces(edition.text),
        "hash": edition.text_hash,
        "by": edition.by,
        "at": ms(edition.at),
    }
    await rows(tx, VERSION, id=id, **given, **access(principal))


async def version_at(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> MemoryVersion | None:
    """The former text that a memory had at `at`; None if it is the present one."""
    found = await row(tx, VERSION_AT, id=id, at=ms(at), **access(principal))
    former = admitted(principal, [found["node"]], version_of) if found else []
    return former[0] if former else None


def _id(node: Row) -> RecordId:
    return RecordId(node["id"])


def version_of(node: Row) -> MemoryVersion:
    return MemoryVersion(node["version"], instant(node["savedAt"]), UserId(node["savedBy"]), node["text"])
