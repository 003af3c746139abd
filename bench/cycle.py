"""Time and memory of the consolidation cycle as the base grows: `python -m bench.cycle --records 10000 100000`.

Records are written straight into the graph, READY, without passages: the cycle reads none. A tenth is old and unused,
a tenth came up often; every fifth names one of a growing number of entities.
"""

import argparse
import asyncio
import json
import time
import tracemalloc
from dataclasses import asdict, dataclass
from datetime import timedelta

import psutil
from rich.console import Console
from rich.table import Table

from bench.stage import Stage, stage
from graph_mem.core.model import Place, Scope
from graph_mem.services import consolidation
from graph_mem.store.db import Tx, rows
from graph_mem.store.times import ms
from graph_mem.store.visibility import place_properties

LOAD = """
UNWIND range($start, $end - 1) AS i
WITH i, $at - i * 1000 AS born
CREATE (m:Memory) SET m = $place, m.id = $prefix + right('0000000000' + i, 10), m.kind = 'memory',
  m.label = CASE WHEN i % 50 = 0 THEN 'decision' ELSE 'note' END, m.position = i % 50 = 0,
  m.text = 'Note ' + i + ' says that client ' + i + ' pays ' + (i % 97) + ' euros.', m.processing = 'READY',
  m.standing = 'CURRENT', m.version = 1, m.importance = 0.5, m.evergreen = false, m.sourceKind = 'USER',
  m.author = $by, m.trust = 0.8, m.createdAt = born, m.freshAt = born,
  m.lastValidatedAt = born - CASE WHEN i % 10 = 1 THEN 400 * 86400000 ELSE 0 END,
  m.validFrom = born, m.validTo = 253402300799999, m.knownFrom = born, m.knownTo = 253402300799999,
  m.retrievals = CASE WHEN i % 10 = 2 THEN 12 + i % 40 ELSE 0 END,
  m.queryKinds = CASE WHEN i % 10 = 2 THEN [k IN range(0, i % 7) | 'k' + k] ELSE [] END, m.keys = [$place.partition]
"""
NAME = """
UNWIND range($start, $end - 1) AS i
WITH i, $prefix + right('0000000000' + i, 10) AS id
CREATE (e:Entity) SET e = $place, e.id = id, e.nameKey = id, e.label = 'company',
  e.name = 'Company ' + toString((i * 7919) % 1000003) + CASE WHEN i % 20 = 0 THEN ' Inc' ELSE '' END, e.aliases = []
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """The cycle over so many records. `filed` by the first, `cycle_s` of the second, when all are known to be there.

    `peak_mib` is what Python held at most for the third, which is traced and therefore slower; `grown_mib` what the
    process grew by in the second.
    """

    records: int
    cycle_s: float
    traced_s: float
    filed: int
    peak_mib: float
    grown_mib: float

    @property
    def per_thousand_ms(self) -> float:
        return self.cycle_s / self.records * 1e6


async def measure(records: int) -> Figure:
    """The cycle over `records`, three times."""
    async with stage() as made:
        await _load(made, records)
        process = psutil.Process()
        filed = (await consolidation.cycle(made.deps, made.principal.org_id)).filed
        before = process.memory_info().rss
        start = time.perf_counter()
        await consolidation.cycle(made.deps, made.principal.org_id)
        again_s = time.perf_counter() - start
        grown = process.memory_info().rss - before
        tracemalloc.start()
        start = time.perf_counter()
        await consolidation.cycle(made.deps, made.principal.org_id)
        traced_s = time.perf_counter() - start
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return Figure(records, again_s, traced_s, filed, peak / 2**20, grown / 2**20)


async def _load(made: Stage, records: int) -> None:
    place = place_properties(Place(made.principal.org_id, Scope()))
    at = ms(made.deps.clock() - timedelta(days=60))
    suffix = made.principal.org_id.partition("_")[2][:16]
    for start in range(0, records, 2000):
        end = min(records, start + 2000)
        given = {"start": start, "end": end, "place": place, "by": made.principal.user_id, "at": at}

        async def work(tx: Tx, given: dict[str, object] = given, first: int = start, last: int = end) -> None:
            await rows(tx, LOAD, prefix=f"mem_{suffix}", **given)
            await rows(tx, NAME, prefix=f"ent_{suffix}", start=first // 5, end=last // 5, place=place)

        await made.deps.db.write(work, timeout_s=120)


async def main(sizes: list[int]) -> list[Figure]:
    figures = [await measure(size) for size in sizes]
    table = Table("records", "cycle", "for 1,000", "filed", "Python at its peak", "process grew by")
    for one in figures:
        table.add_row(
            f"{one.records:,}", f"{one.cycle_s:.1f} s", f"{one.per_thousand_ms:.0f} ms", str(one.filed),
            f"{one.peak_mib:.1f} MiB", f"{one.grown_mib:.1f} MiB",
        )  # fmt: skip
    Console(stderr=True).print(table)
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000])
    print(json.dumps([asdict(one) for one in asyncio.run(main(parser.parse_args().records))]))
