"""What a saved fact costs, beside the bare MERGE of the same row: `python -m bench.facts`.

Both ways write through the same driver, in managed transactions, into the same indexes, taking turns row by row, so
that whatever else the machine does falls on each alike. The bare MERGE does what anyone would write first: it keeps
one node for a subject and relation and overwrites it. It has no slot lock, no history, no link, no event, no
embedding job.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from graph_mem import app
from graph_mem.config import Settings
from graph_mem.core.model import Place, Principal, RecordKind, Role, Scope, Standing
from graph_mem.core.seats import seat
from graph_mem.core.tags import tags
from graph_mem.services import Deps, admin, facts, new_id
from graph_mem.services.facts import NewFact
from graph_mem.store.db import Tx, rows

BARE = """
MERGE (f:Fact {activeKey: $key})
SET f += $properties
"""
REMOVE = """
MATCH (n:Fact|Slot|Event|Job|Rejection|Idempotency {org: $org})
CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 500 ROWS
"""
ONE_WRITER, SEVERAL, WRITERS = 150, 480, 16


@dataclass(frozen=True, slots=True)
class Cost:
    """One way to write one kind of row. Milliseconds for one writer, rows a second for all of them together."""

    way: str
    p50_ms: float
    p95_ms: float
    per_second: float


async def measure(deps: Deps, who: Principal) -> list[Cost]:
    """Each way by one writer and by sixteen."""
    ways: dict[str, Callable[[int], Awaitable[object]]] = {
        "new fact": lambda n: _save(deps, who, f"Client {n}", f"Client {n} pays {n} euros."),
        "supersession": lambda n: _save(deps, who, "Northwind", f"Northwind pays {n} euros."),
        "supersession, own slot for each writer": lambda n: _save(deps, who, f"Own {n % WRITERS}", f"It pays {n}."),
        "bare MERGE, new row": lambda n: _merge(deps, who, f"Bare {n}", f"Client {n} pays {n} euros."),
        "bare MERGE, same row": lambda n: _merge(deps, who, "Bare", f"Northwind pays {n} euros."),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for n in range(ONE_WRITER + _WARM_UP):
        for way, write in ways.items():
            start = time.perf_counter()
            await write(n)
            if n >= _WARM_UP:
                taken[way].append(time.perf_counter() - start)
    return [await _cost(way, taken[way], write) for way, write in ways.items()]


_WARM_UP = 10


async def _cost(way: str, seconds: list[float], write: Callable[[int], Awaitable[object]]) -> Cost:
    numbers = iter(range(10_000, 10_000 + SEVERAL))
    start = time.perf_counter()

    async def writer() -> None:
        for n in numbers:
            await write(n)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WRITERS):
            tasks.create_task(writer())
    p50, p95 = np.percentile(np.array(seconds) * 1000, [50, 95])
    return Cost(way, float(p50), float(p95), SEVERAL / (time.perf_counter() - start))


async def _save(deps: Deps, who: Principal, subject: str, statement: str) -> None:
    await facts.save(deps, who, NewFact(subject=subject, relation="rate", statement=statement))


async def _merge(deps: Deps, who: Principal, subject: str, statement: str) -> None:
    """The row as a fact has it, so that every index does the same work."""
    place = Place(who.org_id, Scope())
    keys = seat(place, subject=subject, relation="rate", statement=statement, many=False)
    now = time.time_ns() // 1_000_000
    properties = {
        "id": new_id("fact"), "org": who.org_id, "partition": place.partition_token, "scope": place.scope_token,
        "kind": "fact", "label": "fact", "standing": "CURRENT", "subject": subject, "relation": "rate",
        "statement": statement, "content": statement, "title": f"{subject} rate", "createdAt": now, "validFrom": now,
        "slotKey": keys.slot_key, "subjectKey": keys.subject_key,
        "keys": tags(place, standing=Standing.CURRENT, kind=RecordKind.FACT, label="fact"),
    }  # fmt: skip

    async def work(tx: Tx) -> None:
        await rows(tx, BARE, key=keys.active_key, properties=properties)

    await deps.db.write(work)


async def main() -> None:
    async with app.opened(Settings(), start_model=False) as deps:
        name = new_id("org")
        made = await admin.create_organization(deps, name=name, owner=f"owner@{name}")
        who = Principal(made.org_id, made.user_id, Role.OWNER)
        try:
            found = await measure(deps, who)
        finally:
            await deps.db.run(REMOVE, org=who.org_id)
    table = Table("way", "p50 ms", "p95 ms", f"per second, {WRITERS} writers")
    for one in found:
        table.add_row(one.way, f"{one.p50_ms:.1f}", f"{one.p95_ms:.1f}", f"{one.per_second:.0f}")
    Console(stderr=True).print(table)
    print(json.dumps({"rows": [asdict(one) for one in found], "retries": deps.db.load.retries}))


if __name__ == "__main__":
    asyncio.run(main())
