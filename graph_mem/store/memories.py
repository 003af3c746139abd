"""Memories: accepted texts, their chunks, and the pages that list them."""

# Vector.from_numpy leaves its argument untyped.
# pyright: reportUnknownMemberType=false

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from neo4j.vector import Vector

from graph_mem.core.model import (
    Memory,
    MemoryVersion,
    Page,
    Principal,
    Processing,
    RecordId,
    RecordKind,
    Scope,
    Standing,
    UserId,
)
from graph_mem.core.tags import tags
from graph_mem.core.vectors import Space, Vectors
from graph_mem.core.words import pieces
from graph_mem.store.db import Tx, rows
from graph_mem.store.records import interval_properties, memory_columns, memory_of
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import access, admitted, counted, per_place, place_properties, visible

CREATE = """
UNWIND $memories AS new
CREATE (n:Memory:Pending) SET n = new
"""
IMPORTED = f"""
MATCH (m:Memory) WHERE m.importKey IN $keys AND {visible("m")}
RETURN m.importKey AS key
"""
BY_ID = f"""
MATCH (m:Memory) WHERE m.id IN $ids AND {visible("m")} AND m.standing <> 'ERASED'
RETURN {memory_columns("m")} AS node
"""
PAGE = f"""
MATCH (m:Memory) WHERE {visible("m")} AND m.standing IN $standings
  AND ($scope IS NULL OR m.scope = $scope) AND ($labels IS NULL OR m.label IN $labels)
  AND m.createdAt >= $from AND m.createdAt < $to
  AND ($beforeAt IS NULL OR m.createdAt < $beforeAt OR (m.createdAt = $beforeAt AND m.id < $beforeId))
WITH m ORDER BY m.createdAt DESC, m.id DESC LIMIT $limit
RETURN {memory_columns("m")} AS node
"""
COUNT = f"""
MATCH (m:Memory) WHERE {visible("m")} AND m.standing IN $standings
  AND ($scope IS NULL OR m.scope = $scope) AND ($labels IS NULL OR m.label IN $labels)
  AND m.createdAt >= $from AND m.createdAt < $to
{per_place("m")}
"""
PENDING = f"""
MATCH (m:Memory) WHERE {visible("m")} AND m.processing IN ['SAVED', 'PROCESSING'] AND m.standing <> 'ERASED'
{per_place("m")}
"""
VERSIONS = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
MATCH (v:Version {{memoryId: m.id}}) WHERE {visible("v")} AND ($before IS NULL OR v.version < $before)
WITH v ORDER BY v.version DESC LIMIT $limit
RETURN v {{.id, .org, .owner, .level, .clientId, .dealId, .version, .savedAt, .savedBy, .text}} AS node
"""

# The worker acts for whoever saved the record. Its statements name the record and its partition, both from the job.
TO_PROCESS = f"""
UNWIND $records AS one
MATCH (m:Memory {{id: one.id}}) WHERE m.partition = one.partition
RETURN {memory_columns("m")} AS node
"""
MARK = """
UNWIND $records AS one
MATCH (m:Memory {id: one.id}) WHERE m.partition = one.partition AND m.standing <> 'ERASED' AND m.processing <> 'READY'
SET m.processing = $processing, m.failure = one.failure
"""
REPLACE_CHUNKS = """
UNWIND $memories AS one
MATCH (m:Memory {id: one.id}) WHERE m.partition = one.partition AND m.version = one.version
  AND m.standing <> 'ERASED'
SET m.lock = one.id
WITH m, one WHERE m.version = one.version AND m.standing <> 'ERASED'
CALL (m) {
  MATCH (old:Chunk {memoryId: m.id}) WHERE old.partition = m.partition
  DETACH DELETE old
}
REMOVE m:Pending
SET m.processing = 'READY', m.failure = null, m.content = null, m.pieces = null
CALL (m, one) {
  UNWIND one.chunks AS new
  CREATE (n:Chunk {
    id: m.id + '/' + new.seq, memoryId: m.id, seq: new.seq, start: new.start, end: new.end, title: m.title,
    content: new.content, pieces: new.pieces, keys: one.keys,
    kind: 'memory', label: m.label,
    org: m.org, owner: m.owner, level: m.level, clientId: m.clientId, dealId: m.dealId, partition: m.partition,
    scope: m.scope, standing: m.standing, validFrom: m.validFrom, validTo: m.validTo, knownFrom: m.knownFrom,
    knownTo: m.knownTo, gaps: m.gaps, createdAt: m.createdAt, occurredAt: coalesce(m.occurredAt, m.createdAt)
  })
  SET n[$property] = toFloatList(new.embedding)
  CREATE (n)-[:PART_OF]->(m)
}
WITH m
CALL (m) {
  MATCH (n:Chunk {memoryId: m.id}) WHERE n.partition = m.partition
  WITH n ORDER BY n.seq
  WITH collect(n) AS chunks
  UNWIND range(0, size(chunks) - 2) AS i
  WITH chunks[i] AS earlier, chunks[i + 1] AS later
  CREATE (earlier)-[:NEXT]->(later)
}
RETURN m.id AS id
"""
LINK_SOURCES = """
UNWIND $memories AS one
CALL (one) {
  MERGE (s:Source {key: one.source})
  SET s.lock = one.id
  WITH one
  MATCH (m:Memory {id: one.id}) WHERE m.partition = one.partition
  CALL (m) {
    MATCH (n:Chunk {memoryId: m.id}) WHERE n.partition = m.partition
    WITH n ORDER BY n.seq
    RETURN collect(n) AS chunks
  }
  CALL (m) {
    OPTIONAL MATCH (before:Memory) WHERE before.sourceKey = m.sourceKey AND before.id < m.id
      AND before.processing = 'READY' AND before.partition = m.partition
    WITH before ORDER BY before.id DESC LIMIT 1
    OPTIONAL MATCH (n:Chunk {memoryId: before.id}) WHERE n.partition = before.partition
    RETURN n AS left ORDER BY n.seq DESC LIMIT 1
  }
  CALL (m) {
    OPTIONAL MATCH (after:Memory) WHERE after.sourceKey = m.sourceKey AND after.id > m.id
      AND after.processing = 'READY' AND after.partition = m.partition
    WITH after ORDER BY after.id LIMIT 1
    OPTIONAL MATCH (n:Chunk {memoryId: after.id, seq: 0}) WHERE n.partition = after.partition
    RETURN n AS right
  }
  WITH left, right, chunks[0] AS first, chunks[-1] AS final
  OPTIONAL MATCH (left)-[out:NEXT]->(other) WHERE other <> first
  OPTIONAL MATCH (another)-[into:NEXT]->(right) WHERE another <> final
  DELETE out, into
  WITH DISTINCT left, right, first, final
  FOREACH (_ IN CASE WHEN left IS NULL THEN [] ELSE [1] END | MERGE (left)-[:NEXT]->(first))
  FOREACH (_ IN CASE WHEN right IS NULL THEN [] ELSE [1] END | MERGE (final)-[:NEXT]->(right))
}
"""


@dataclass(frozen=True, slots=True)
class Key:
    """A record as the worker names it."""

    id: RecordId
    partition: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk to store: where it stands in the text, and its words."""

    seq: int
    start: int
    end: int
    content: str


@dataclass(frozen=True, slots=True)
class Processed:
    """What background work made of one version of a memory. `embeddings` is (passages, dimension), float32."""

    memory: Memory
    passages: Sequence[Passage]
    embeddings: Vectors
    entity_ids: Sequence[str]


async def create(tx: Tx, memories: Sequence[Memory]) -> None:
    """Store new memories, each at once found by its words."""
    await rows(tx, CREATE, memories=[_properties(memory) for memory in memories])


async def imported(tx: Tx, principal: Principal, keys: Sequence[str]) -> set[str]:
    """Those import keys that memories of `principal` have already."""
    return {found["key"] for found in await rows(tx, IMPORTED, keys=list(keys), **access(principal))}


def _properties(memory: Memory) -> dict[str, Any]:
    source = memory.source
    return {
        **place_properties(memory.place),
        **interval_properties(memory.interval),
        "id": memory.id,
        "kind": "memory",
        "label": memory.label,
        "position": memory.position,
        "title": memory.title,
        "text": memory.text,
        "content": memory.text,
        "pieces": pieces(f"{memory.title or ''} {memory.text or ''}"),
        "metadata": None if memory.metadata is None else json.dumps(memory.metadata, ensure_ascii=False),
        "processing": memory.processing.value,
        "standing": memory.standing.value,
        "version": memory.version,
        "importance": memory.importance,
        "evergreen": memory.signals.evergreen,
        "sourceKind": source.kind.value,
        "sourceUri": source.uri,
        "sourceKey": source.token(memory.place),
        "author": source.author,
        "runId": source.run_id,
        "occurredAt": None if source.occurred_at is None else ms(source.occurred_at),
        "trust": source.trust,
        "createdAt": ms(memory.created_at),
        "freshAt": ms(memory.fresh_at),
        "lastValidatedAt": ms(memory.created_at),
        "keys": _keys(memory),
        "importKey": memory.import_key,
    }


def _keys(memory: Memory, entity_ids: Sequence[str] = ()) -> list[str]:
    return tags(
        memory.place,
        standing=memory.standing,
        kind=RecordKind.MEMORY,
        label=memory.label,
        source=memory.source.token(memory.place),
        entity_ids=entity_ids,
    )


async def by_ids(tx: Tx, principal: Principal, ids: Sequence[RecordId]) -> list[Memory]:
    """The memories among `ids` that `principal` may see, in no order."""
    found = await rows(tx, BY_ID, ids=list(ids), **access(principal))
    return admitted(principal, (row["node"] for row in found), memory_of)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories a list holds. `scope` None: every scope the caller may read."""

    scope: Scope | None
    labels: tuple[str, ...] | None
    standings: tuple[Standing, ...]
    created_from: datetime
    created_to: datetime

    def parameters(self, principal: Principal) -> dict[str, Any]:
        return {
            **access(principal),
            "scope": None if self.scope is None else self.scope.token(principal.org_id),
            "labels": None if self.labels is None else list(self.labels),
            "standings": [standing.value for standing in self.standings if standing is not Standing.ERASED],
            "from": ms(self.created_from),
            "to": ms(self.created_to),
        }


async def page(tx: Tx, principal: Principal, filter: Filter, page: Page) -> list[Memory]:
    """Newest first; one row more than `page.first` when there are more."""
    at, id = page.after or (None, None)
    found = await rows(tx, PAGE, beforeAt=at, beforeId=id, limit=page.first + 1, **filter.parameters(principal))
    return admitted(principal, (row["node"] for row in found), memory_of)


async def count(tx: Tx, principal: Principal, filter: Filter) -> int:
    """How many memories the list holds in all."""
    return counted(principal, await rows(tx, COUNT, **filter.parameters(principal)), "a count of memories")


async def pending(tx: Tx, principal: Principal) -> int:
    """How many memories that `principal` may see are not READY or FAILED yet."""
    return counted(principal, await rows(tx, PENDING, **access(principal)), "a count of pending memories")


async def versions(tx: Tx, principal: Principal, id: RecordId, page: Page) -> list[MemoryVersion]:
    """Former texts, newest first; one row more than `page.first` when there are more."""
    before = page.after[0] if page.after else None
    found = await rows(tx, VERSIONS, id=id, before=before, limit=page.first + 1, **access(principal))
    return admitted(
        principal,
        (row["node"] for row in found),
        lambda node: MemoryVersion(node["version"], instant(node["savedAt"]), UserId(node["savedBy"]), node["text"]),
    )


async def to_process(tx: Tx, keys: Sequence[Key]) -> list[Memory]:
    """The memories that the worker's jobs name."""
    found = await rows(tx, TO_PROCESS, records=[{"id": key.id, "partition": key.partition} for key in keys])
    return [memory_of(row["node"]) for row in found]


async def mark(tx: Tx, failures: dict[Key, str | None], processing: Processing) -> None:
    """Set how far the work on memories that are not READY has come, each with its failure or None."""
    records = [{"id": key.id, "partition": key.partition, "failure": why} for key, why in failures.items()]
    await rows(tx, MARK, records=records, processing=processing.value)


async def replace_chunks(tx: Tx, processed: Sequence[Processed], space: Space) -> set[RecordId]:
    """Store chunks, with their vectors in `space`, in place of the old ones and make the memories READY.

    Returns the memories it changed: those that gained a version or were erased meanwhile are left alone.
    """
    ordered = sorted(processed, key=lambda one: one.memory.id)
    found = await rows(tx, REPLACE_CHUNKS, memories=[_chunks(one) for one in ordered], property=space.property)
    done = {RecordId(row["id"]) for row in found}
    sourced = [
        {"id": one.memory.id, "partition": one.memory.place.partition_token, "source": source}
        for one in ordered
        if one.memory.id in done and (source := one.memory.source.token(one.memory.place))
    ]
    await rows(tx, LINK_SOURCES, memories=sorted(sourced, key=lambda one: (one["source"], one["id"])))
    return done


def _chunks(one: Processed) -> dict[str, Any]:
    memory = one.memory
    return {
        "id": memory.id,
        "partition": memory.place.partition_token,
        "version": memory.version,
        "keys": _keys(memory, one.entity_ids),
        "chunks": [
            {
                "seq": passage.seq,
                "start": passage.start,
                "end": passage.end,
                "content": passage.content,
                "pieces": pieces(passage.content),
                "embedding": Vector.from_numpy(vector),
            }
            for passage, vector in zip(one.passages, one.embeddings, strict=True)
        ],
    }
