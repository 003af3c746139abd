"""Vectors of passages that have none: those of a restore that came without, or made by another model.

The worker acts for whoever saved the record. Its statements name record and partition, both from the job.
"""

# Vector.from_numpy leaves its argument untyped.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from dataclasses import dataclass

from neo4j.vector import Vector

from graph_mem.core.model import RecordId
from graph_mem.core.vectors import Space, Vectors
from graph_mem.store.db import Tx, rows
from graph_mem.store.jobs import Job

MISSING = """
UNWIND $records AS one
CALL (one) {
  MATCH (n:Chunk {memoryId: one.id}) WHERE n.partition = one.partition RETURN n
 UNION
  MATCH (n:Fact {id: one.id}) WHERE n.partition = one.partition AND n.standing <> 'ERASED' RETURN n
}
WITH n WHERE n[$property] IS NULL AND n.content IS NOT NULL
RETURN n.id AS id, n.partition AS partition, n.content AS content, CASE WHEN n:Chunk THEN n.title END AS title
"""
FILL = """
UNWIND $passages AS one
MATCH (n:Chunk|Fact {id: one.id}) WHERE n.partition = one.partition AND n.content = one.content
SET n[$property] = toFloatList(one.embedding)
"""


@dataclass(frozen=True, slots=True)
class Bare:
    """A passage without a vector."""

    id: RecordId
    partition: str
    content: str
    title: str | None

    @property
    def text(self) -> str:
        """What the model sees: the words under their memory's title."""
        return f"{self.title}\n{self.content}" if self.title else self.content


async def missing(tx: Tx, batch: Sequence[Job], space: Space) -> list[Bare]:
    """The passages of the jobs' records that have no vector in `space`."""
    records = [{"id": job.record_id, "partition": job.partition} for job in batch]
    return [
        Bare(RecordId(found["id"]), found["partition"], found["content"], found["title"])
        for found in await rows(tx, MISSING, records=records, property=space.property)
    ]


async def fill(tx: Tx, passages: Sequence[Bare], vectors: Vectors, space: Space) -> None:
    """Give passages their vectors in `space`, but for those that say something else by now."""
    given = [
        {"id": one.id, "partition": one.partition, "content": one.content, "embedding": Vector.from_numpy(vector)}
        for one, vector in sorted(zip(passages, vectors, strict=True), key=lambda pair: pair[0].id)
    ]
    await rows(tx, FILL, passages=given, property=space.property)
