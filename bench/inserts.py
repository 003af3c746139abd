"""What many single inserts do to the vector index: neighbours it finds, next to all there are.

    nice -n 19 uv run --group bench python -m bench.inserts --records 10000

On a Neo4j of its own: a record, a passage and its vector in a transaction each, while the index is online. Then the
product's vector leg is asked beside an exact search, and again after the index was made anew.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import platformdirs
from ulid import ULID

from bench.scale import load, row_of
from graph_mem.core.model import ORGANIZATION, OrganizationId, Place, Principal, Role, UserId
from graph_mem.core.vectors import FIRST, Vector, Vectors
from graph_mem.local.artifacts import Cache, read_lock
from graph_mem.local.conf import Memory, Ports
from graph_mem.local.home import Address
from graph_mem.local.java import find_java
from graph_mem.local.server import Engine, LocalServer
from graph_mem.services.warming import warm
from graph_mem.store import search, spaces
from graph_mem.store.db import Database
from graph_mem.store.migrate import migrate
from graph_mem.store.search import Where

TOP = 10
QUERIES = 300
DEPTH = 50
"""How deep the leg looks for a page of ten."""
WRITERS = 4
DIMENSION = 384
_SCHEMA = Path(__file__).parents[1] / "schema"


@dataclass(frozen=True, slots=True)
class Figures:
    """`inserted`: recall at ten right after the inserts; `rebuilt`: of the same questions after a new index."""

    records: int
    inserted: float
    rebuilt: float
    seconds: float


class Cloud:
    """Unit vectors around a hundred centres, as texts lie around their topics."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._centres = self._random.normal(size=(100, DIMENSION))

    def draw(self, number: int) -> Vectors:
        chosen = self._centres[self._random.integers(len(self._centres), size=number)]
        drawn = chosen + self._random.normal(size=(number, DIMENSION))
        return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


@contextmanager
def neo4j() -> Generator[Address]:
    """An empty Neo4j in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="gm-inserts-", ignore_cleanup_errors=True) as folder:
        cache = Cache(platformdirs.user_cache_path("graph-mem"))
        server = LocalServer(Path(folder) / "neo4j", Engine(read_lock(), cache, find_java(), Memory(1024, 256)))
        try:
            yield server.start(Ports(bolt=0, http=0))
        finally:
            server.stop()


@asynccontextmanager
async def opened(address: Address) -> AsyncGenerator[Database]:
    database = Database.connect(address.uri, user=address.user, password=address.password, database="neo4j")
    try:
        await migrate(database, _SCHEMA, dimension=DIMENSION)
        await warm(database, dimension=DIMENSION)
        yield database
    finally:
        await database.close()


async def insert(database: Database, place: Place, vectors: Vectors) -> dict[str, int]:
    """A record for each vector, each in a transaction of its own; where the vector of each record is."""
    new = [row_of(f"Note {number}.", vector) for number, vector in enumerate(vectors)]
    waiting = iter(new)

    async def writer() -> None:
        for one in waiting:
            await load(database, place, [one])

    await asyncio.gather(*(writer() for _ in range(WRITERS)))
    return {str(one["id"]): number for number, one in enumerate(new)}


async def recall(database: Database, who: Principal, vectors: Vectors, known: dict[str, int], asked: Vectors) -> float:
    """The share of the true ten nearest that the product's vector leg finds, over all questions."""
    pairs = zip(asked, _exact(vectors, asked), strict=True)
    hits = [len(set(near) & await _found(database, who, one, known)) for one, near in pairs]
    return sum(hits) / (TOP * len(asked))


def _exact(vectors: Vectors, asked: Vectors) -> list[list[int]]:
    return np.argsort(-(asked @ vectors.T), axis=1)[:, :TOP].tolist()


async def _found(database: Database, who: Principal, vector: Vector, known: dict[str, int]) -> set[int]:
    where = Where(scopes=None)
    found = await database.read(lambda tx: search.meaning(tx, who, where, vector=vector, space=FIRST, limit=DEPTH))
    return {known[one.record_id] for one in found[:TOP]}


async def rebuild(database: Database) -> None:
    """Make the vector index anew over what is there."""
    await database.run(spaces.DROP, name=FIRST.index)
    await spaces.make(database, FIRST, dimension=DIMENSION)


async def run(records: int) -> Figures:
    cloud = Cloud(seed=1)
    vectors, asked = cloud.draw(records), cloud.draw(QUERIES)
    who = Principal(OrganizationId(f"org_{ULID()}"), UserId(f"usr_{ULID()}"), Role.OWNER)
    with neo4j() as address:
        async with opened(address) as database:
            started = time.monotonic()
            known = await insert(database, Place(who.org_id, ORGANIZATION), vectors)
            seconds = time.monotonic() - started
            inserted = await recall(database, who, vectors, known, asked)
            await rebuild(database)
            return Figures(records, inserted, await recall(database, who, vectors, known, asked), seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.inserts")
    parser.add_argument("--records", type=int, default=10_000)
    print(json.dumps(asdict(asyncio.run(run(parser.parse_args().records)))))
