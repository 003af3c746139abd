"""Which embedding model's vectors are in force, in one node for the whole database, and the indexes over them.

The operator's, like the schema: its statements go over all organizations, see nothing but passages, and change nothing
but their vectors.
"""

import json
from dataclasses import asdict
from typing import Any, LiteralString

from graph_mem.core.model import RecordId
from graph_mem.core.vectors import SECOND, SPACES, Placed, Source, Space, Vectorings
from graph_mem.store.db import Database, Row, Tx, row, rows
from graph_mem.store.vectors import Bare

READ = "MATCH (v:Vectoring {key: 'vectors'}) RETURN v {.version, .inForce, .beside} AS node"
WRITE = """
MERGE (v:Vectoring {key: 'vectors'})
SET v.lock = $version
WITH v WHERE coalesce(v.version, 0) = $version
SET v.version = $version + 1, v.inForce = $inForce, v.beside = $beside
RETURN v.version AS version
"""
_LACK: LiteralString = """
WHERE n.id > $after AND n.content IS NOT NULL AND n[$property] IS NULL
RETURN n.id AS id, n.partition AS partition, n.content AS content, n.title AS title ORDER BY n.id LIMIT $limit
"""
CHUNKS = f"MATCH (n:Chunk) {_LACK}"
FACTS = f"MATCH (n:Fact) {_LACK}"
CLEAR = """
MATCH (n:Chunk|Fact) WHERE n[$property] IS NOT NULL
CALL (n) { SET n[$property] = null } IN TRANSACTIONS OF 2000 ROWS
"""
MADE = "SHOW VECTOR INDEXES YIELD name, options WHERE name = $name RETURN options.indexConfig AS config"
_FILTERS: LiteralString = """WITH [n.partition, n.scope, n.standing, n.kind, n.label, n.validFrom, n.validTo,
  n.createdAt, n.occurredAt] OPTIONS {indexConfig: $config}"""
MAKE = f"CREATE VECTOR INDEX $name IF NOT EXISTS FOR (n:Chunk|Fact) ON (n.embedding) {_FILTERS}"
MAKE_SECOND = f"CREATE VECTOR INDEX $name IF NOT EXISTS FOR (n:Chunk|Fact) ON (n.embedding2) {_FILTERS}"
DROP = "DROP INDEX $name IF EXISTS"
ONLINE = "CALL db.awaitIndex($name, 600)"


async def read(tx: Tx) -> Vectorings | None:
    """What is in force; None where no model was ever moved from or to."""
    found = await row(tx, READ)
    return _vectorings(found["node"]) if found else None


async def write(tx: Tx, now: Vectorings) -> bool:
    """Put `now`, which follows the version before it, in force; False if somebody else was first."""
    beside = _text(now.beside) if now.beside else None
    return await row(tx, WRITE, version=now.version - 1, inForce=_text(now.in_force), beside=beside) is not None


async def lacking(tx: Tx, space: Space, *, facts: bool, after: str, limit: int) -> list[Bare]:
    """Passages, or facts, behind `after` that have no vector in `space`, by id."""
    given = {"property": space.property, "after": after, "limit": limit}
    found = await rows(tx, FACTS, **given) if facts else await rows(tx, CHUNKS, **given)
    return [
        Bare(RecordId(one["id"]), one["partition"], one["content"], None if facts else one["title"]) for one in found
    ]


async def make(db: Database, space: Space, *, dimension: int) -> None:
    """Have the index of `space` for vectors of `dimension`, online; one for others is dropped."""
    found = await db.run(MADE, name=space.index)
    if found and int(found[0]["config"]["vector.dimensions"]) != dimension:
        await drop(db, space)
    config = {
        "vector.dimensions": dimension,
        "vector.similarity_function": "cosine",
        "vector.quantization.enabled": False,
    }
    if space == SECOND:
        await db.run(MAKE_SECOND, name=space.index, config=config)
    else:
        await db.run(MAKE, name=space.index, config=config)
    await db.run(ONLINE, name=space.index)


async def drop(db: Database, space: Space) -> None:
    """Drop the index of `space` and every vector in it."""
    await db.run(DROP, name=space.index)
    await db.run(CLEAR, property=space.property)


def _text(placed: Placed) -> str:
    return json.dumps({"index": placed.space.index, **asdict(placed.source)})


def _vectorings(node: Row) -> Vectorings:
    beside = node["beside"]
    return Vectorings(node["version"], _placed(node["inForce"]), _placed(beside) if beside else None)


def _placed(text: str) -> Placed:
    given: dict[str, Any] = json.loads(text)
    return Placed(space=SPACES[given.pop("index")], source=Source(**given))
