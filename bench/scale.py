"""Search as the database grows: many organizations of 200 records each, a search in one of them.

    uv run --group bench python -m bench.scale --data-dir D --records 5000 50000 200000

Records are written straight into the graph, READY, a passage each, with words of a Zipf distribution and vectors in
clusters: what is measured is the search, from text to page.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from neo4j.vector import Vector
from ulid import ULID

from bench.speed import Times
from graph_mem import app
from graph_mem.cli.access import complete
from graph_mem.config import Settings
from graph_mem.core.model import ORGANIZATION, OrganizationId, Place, Principal, RecordKind, Role, Standing, UserId
from graph_mem.core.retrieval import Query
from graph_mem.core.tags import tags
from graph_mem.services import Deps, recall
from graph_mem.store.db import Database, Tx, rows
from graph_mem.store.visibility import place_properties

PER_ORGANIZATION = 200
SEARCHES = 100
_WORDS = 20_000

LOAD = """
UNWIND $rows AS row
CREATE (m:Memory) SET m = $place, m.id = row.id, m.kind = 'memory', m.label = 'note', m.standing = 'CURRENT',
  m.processing = 'READY', m.version = 1, m.text = row.text, m.importance = 0.5, m.author = 'bench',
  m.sourceKind = 'IMPORT', m.createdAt = $at, m.freshAt = $at, m.validFrom = $at, m.validTo = $far, m.knownFrom = $at,
  m.knownTo = $far, m.keys = $keys
CREATE (c:Chunk)-[:PART_OF]->(m) SET c = $place, c.id = row.id + '/0', c.memoryId = row.id, c.seq = 0,
  c.kind = 'memory',
  c.label = 'note', c.standing = 'CURRENT', c.content = row.text, c.embedding = toFloatList(row.vector),
  c.keys = $keys, c.createdAt = $at, c.validFrom = $at, c.validTo = $far, c.knownFrom = $at, c.knownTo = $far
"""


class Grower:
    """Adds organizations, and knows them."""

    def __init__(self, deps: Deps, *, seed: int = 1) -> None:
        self._deps = deps
        self._random = np.random.default_rng(seed)
        self._centres = self._random.normal(size=(50, deps.embedder.profile.dimension))
        self.principals: list[Principal] = []

    async def grow(self, records: int) -> None:
        """Add organizations until there are `records`."""
        while len(self.principals) * PER_ORGANIZATION < records:
            principal = Principal(OrganizationId(f"org_{ULID()}"), UserId(f"usr_{ULID()}"), Role.OWNER)
            new = [self._row() for _ in range(PER_ORGANIZATION)]
            await load(self._deps.db, Place(principal.org_id, ORGANIZATION), new)
            self.principals.append(principal)

    def _row(self) -> dict[str, object]:
        vector = self._centres[self._random.integers(50)] + self._random.normal(size=self._centres.shape[1])
        return row_of(self.text(40), vector)

    def text(self, words: int) -> str:
        """Words as often as in a language."""
        return " ".join(f"w{min(number, _WORDS)}" for number in self._random.zipf(1.3, size=words))


def row_of(text: str, vector: np.ndarray) -> dict[str, object]:
    """A record to load, with a passage that points where `vector` does."""
    unit = (vector / np.linalg.norm(vector)).astype(np.float32)
    return {"id": f"mem_{ULID()}", "text": text, "vector": Vector.from_numpy(unit)}


async def load(db: Database, place: Place, new: Sequence[dict[str, object]]) -> None:
    """Write records, READY, to a place."""
    for start in range(0, len(new), PER_ORGANIZATION):
        await db.write(partial(_write, place=place, new=new[start : start + PER_ORGANIZATION]))


async def _write(tx: Tx, *, place: Place, new: Sequence[dict[str, object]]) -> None:
    await rows(
        tx,
        LOAD,
        place={name: value for name, value in place_properties(place).items() if value is not None},
        rows=new,
        at=1_796_000_000_000,
        far=253_402_300_799_999,
        keys=tags(place, standing=Standing.CURRENT, kind=RecordKind.MEMORY, label="note"),
    )


async def measure(deps: Deps, grower: Grower, records: int) -> Times:
    """Searches in organizations that were not asked before, each with words of its own."""
    spent: list[float] = []
    for number in range(SEARCHES + 10):
        principal = grower.principals[(number * 37) % len(grower.principals)]
        started = time.perf_counter()
        await recall.search_page(deps, principal, Query(f"{grower.text(8)} {number}"), first=10)
        spent.append(time.perf_counter() - started)
    return Times.of(f"{records} records", spent[10:])


async def run(settings: Settings, sizes: Sequence[int]) -> list[Times]:
    async with app.opened(settings, light=True) as deps:
        await deps.embedder.settled()
        grower, found = Grower(deps), list[Times]()
        for records in sorted(sizes):
            await grower.grow(records)
            if not found:
                await measure(deps, grower, records)  # not counted: the JVM compiles what it runs often
            found.append(await measure(deps, grower, records))
            print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--records", type=int, nargs="+", default=[5_000, 50_000, 200_000])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen = {"data_dir": options.data_dir} if options.data_dir else {}
    found = asyncio.run(run(complete(Settings(embedder="onnx", **chosen)), options.records))
    for one in found:
        print(f"{one.way}: p50 {one.p50:.1f} ms, p95 {one.p95:.1f} ms, {one.p50 / found[0].p50:.2f} of the first")
    if options.out:
        options.out.write_text(json.dumps([asdict(one) for one in found]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
