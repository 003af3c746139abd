"""What is counted is counted in the database: however many nodes there are, a few rows reach this process."""

import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import pytest

from graph_mem.api.session import Context
from graph_mem.services import Deps, capture, facts, metrics
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.store import archives
from graph_mem.store.db import Database, Tx
from tests.guards.matrix import schema
from tests.guards.opened import Seen
from tests.people import Company, company, work_off

MANY = 10_000
FLOOD = """
MATCH (m:Memory {id: $id})
MATCH (f:Fact {id: $fact})
UNWIND range(1, $many) AS n
CALL (m, f, n) {
  CREATE (memory:Memory) SET memory = m {.*, id: m.id + '-' + n, processing: 'SAVED', dedupKey: null}
  CREATE (fact:Fact) SET fact = f {.*, id: f.id + '-' + n, activeKey: null, embedding: null}
  CREATE (job:Job {id: m.id + '-' + n, org: m.org, kind: 'none', runAfter: 2^53, createdAt: m.createdAt})
} IN TRANSACTIONS OF 2000 ROWS
"""
DRAIN = """
MATCH (n:Memory|Fact|Job {org: $org}) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 2000 ROWS
"""
LISTS = ("memories", "facts", "entities", "reviewQueue")
T = TypeVar("T")


class Counted(Seen):
    """`inner`, with how many rows came out of it."""

    def __init__(self, inner: Database) -> None:
        super().__init__(inner)
        self.load = inner.load
        self.rows = 0

    async def _work(self, work: Callable[[Tx], Awaitable[T]], tx: Tx) -> T:
        return await work(cast("Tx", _Transaction(tx, self)))


@dataclass
class _Transaction:
    tx: Tx
    count: Counted

    async def run(self, statement: Any, parameters: Any) -> "_Result":
        return _Result(await self.tx.run(statement, parameters), self.count)


@dataclass
class _Result:
    result: Any
    count: Counted

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for row in self.result:
            self.count.rows += 1
            yield row

    async def single(self, *, strict: bool) -> Any:
        self.count.rows += 1
        return await self.result.single(strict=strict)


@pytest.fixture(scope="module")
async def crowd(deps: Deps) -> AsyncIterator[Company]:
    org = await company(deps)
    memory = (await capture.accept(deps, org.owner, NewMemory(text="The first of many."))).memory
    fact = (await facts.save(deps, org.owner, NewFact(subject="A", relation="is", statement="B."))).fact
    assert fact is not None
    await work_off(deps, org.id)
    await deps.db.run(FLOOD, id=memory.id, fact=fact.id, many=MANY)
    yield org
    await deps.db.run(DRAIN, org=org.id)


async def asked(deps: Deps, org: Company, document: str) -> dict[str, Any]:
    result = await schema().execute(document, context_value=Context(deps, "count", caller=org.owner))
    assert not result.errors
    assert result.data is not None
    return result.data


async def counting(deps: Deps, org: Company) -> tuple[dict[str, Any], int, int]:
    """What the lists count, the census, how many jobs wait; how many rows came, and how many bytes they took."""
    database = Counted(deps.db)
    watched = replace(deps, db=database)
    tracemalloc.start()
    try:
        found = await asked(watched, org, f"{{ {' '.join(f'{name}(first: 1) {{ totalCount }}' for name in LISTS)} }}")
        found |= await asked(watched, org, '{ search(input: { text: "first of many" }, first: 1) { pending } }')
        await asked(watched, org, "{ health { state } }")
        nodes = (await database.read(archives.census)).nodes
        text = (await metrics.exposition(watched)).decode()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    waiting = float(next(line for line in text.splitlines() if line.startswith("graph_mem_jobs_waiting")).split()[1])
    return {**found, "nodes": nodes, "waiting": waiting}, database.rows, peak


async def test_many_nodes_are_counted_and_not_fetched(deps: Deps, crowd: Company) -> None:
    quiet = await company(deps)
    await counting(deps, quiet)
    few, rows, size = await counting(deps, quiet)
    many, more, grown = await counting(deps, crowd)
    assert few["memories"]["totalCount"] == 0
    assert many["memories"]["totalCount"] == MANY + 1
    assert many["facts"]["totalCount"] == MANY + 1
    assert 1000 <= many["search"]["pending"] <= MANY
    assert many["nodes"] > 3 * MANY
    assert many["waiting"] >= MANY
    assert more <= rows + 30
    assert grown <= size + 1024 * 1024
