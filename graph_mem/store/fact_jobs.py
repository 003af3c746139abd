"""What the worker adds to facts: embeddings, and the entity that a fact is about.

The worker acts for whoever saved the fact. Its statements name the fact and its partition, both from the job.
"""

# Vector.from_numpy leaves its argument untyped.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from dataclasses import dataclass

from neo4j.vector import Vector

from graph_mem.core import vectors
from graph_mem.core.model import Fact
from graph_mem.core.tags import entity_tag
from graph_mem.store.db import Tx, rows
from graph_mem.store.memories import Key
from graph_mem.store.records import fact_columns, fact_of

TO_EMBED = f"""
UNWIND $keys AS key
MATCH (f:Fact {{id: key.id}}) WHERE f.partition = key.partition AND f.standing <> 'ERASED'
RETURN {fact_columns("f")} AS node
"""
STORE = """
UNWIND $facts AS one
MATCH (f:Fact {id: one.id}) WHERE f.partition = one.partition AND f.standing <> 'ERASED'
SET f[$property] = toFloatList(one.embedding)
WITH f, one
MATCH (e:Entity {id: one.entityId}) WHERE e.partition = f.partition AND e.scope = f.scope
MERGE (f)-[:ABOUT]->(e)
SET f.keys = [key IN f.keys WHERE key <> one.entityKey] + one.entityKey
"""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A fact, its vector, and the entity that it is about, if one is known."""

    fact: Fact
    embedding: vectors.Vector
    entity_id: str | None


async def to_embed(tx: Tx, keys: Sequence[Key]) -> list[Fact]:
    """The facts that the worker's jobs name, but for those erased since."""
    found = await rows(tx, TO_EMBED, keys=[{"id": key.id, "partition": key.partition} for key in keys])
    return [fact_of(row["node"]) for row in found]


async def store(tx: Tx, embedded: Sequence[Embedded], space: vectors.Space) -> None:
    """Give facts their embeddings in `space` and link them to what they are about."""
    facts = [
        {
            "id": one.fact.id,
            "partition": one.fact.place.partition_token,
            "embedding": Vector.from_numpy(one.embedding),
            "entityId": one.entity_id,
            "entityKey": entity_tag(one.entity_id) if one.entity_id else None,
        }
        for one in sorted(embedded, key=lambda one: one.fact.id)
    ]
    await rows(tx, STORE, facts=facts, property=space.property)
