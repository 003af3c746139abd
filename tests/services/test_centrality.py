"""Centrality on the real Graph Data Science: right for a known graph, and gone without a trace when broken off."""

# The driver leaves its **config untyped, and the library's way to the stacks has a private name.
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

import asyncio
import gc
import sys
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from graph_mem.errors import DatabaseUnavailable
from graph_mem.services import Deps, upkeep
from graph_mem.store import centrality
from graph_mem.store.centrality import LastRun
from graph_mem.store.db import Database, Tx, rows
from tests.people import Company

PROJECTIONS = "CALL gds.graph.list() YIELD graphName WHERE graphName CONTAINS $p RETURN graphName"
PATIENCE_S = 60.0


@pytest.fixture
async def held(database: Database, org: Company) -> AsyncIterator[str]:
    """A partition of one record that cannot be written, so that its centrality is under way until the test ends."""
    partition = f"k{org.id}"
    await database.run("CREATE (:Memory {id: 'M' + $p, partition: $p, standing: 'CURRENT'})", p=partition)
    async with database.driver.session() as session:
        tx = await session.begin_transaction()
        await tx.run("MATCH (m:Memory {id: 'M' + $p}) SET m.centrality = 0.5", p=partition)
        yield partition
        await tx.rollback()
    await database.run("MATCH (m:Memory {id: 'M' + $p}) DETACH DELETE m", p=partition)


async def test_centrality_ranks_a_known_graph_and_leaves_no_projection(deps: Deps, org: Company) -> None:
    """Five nodes: hub H with three memories, one of which also names F. By PageRank: H, A, then the rest."""
    partition = f"k{org.id}"

    async def plant(tx: Tx) -> None:
        await rows(
            tx,
            """CREATE (h:Entity {id: 'H' + $p, partition: $p}), (f:Entity {id: 'F' + $p, partition: $p})
            WITH h, f UNWIND ['A', 'B', 'C'] AS name
            CREATE (m:Memory {id: name + $p, partition: $p, standing: 'CURRENT'})-[:MENTIONS]->(h)
            WITH f, m WHERE m.id = 'A' + $p CREATE (m)-[:MENTIONS]->(f)""",
            p=partition,
        )

    async def read(tx: Tx) -> list[tuple[str, float]]:
        found = await rows(
            tx, "MATCH (n {partition: $p}) RETURN n.id AS id, n.centrality AS c ORDER BY c DESC, id", p=partition
        )
        return [(one["id"].removesuffix(partition), one["c"]) for one in found]

    await deps.db.write(plant)
    await upkeep.compute_centrality(deps, partition)
    ranked = await deps.db.read(read)
    assert [id for id, _ in ranked] == ["H", "A", "F", "B", "C"]
    assert ranked[0][1] == 1.0
    assert ranked[-1][1] == 0.0
    assert await deps.db.run(PROJECTIONS, p=partition) == []
    await deps.db.run("MATCH (n {partition: $p}) DETACH DELETE n", p=partition)


async def test_centrality_of_nothing_is_nothing(deps: Deps) -> None:
    assert await upkeep.compute_centrality(deps, "knothing0") == 0


async def test_a_computation_that_is_broken_off_leaves_no_thread_no_projection_and_no_lease(
    deps: Deps, held: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A thread that goes on would keep the process from ending."""
    computing = asyncio.create_task(upkeep.refresh_partition(deps, held, size=1))
    await until_projected(deps, held)
    assert at_work()
    computing.cancel()
    await asyncio.wait({computing}, timeout=PATIENCE_S)
    assert computing.cancelled()
    assert not at_work()
    gc.collect()
    assert "never retrieved" not in caplog.text
    assert await deps.db.run(PROJECTIONS, p=held) == []

    async def claim(tx: Tx) -> LastRun | None:
        return await centrality.claim(tx, held, holder="another", lease=timedelta(minutes=1))

    assert await deps.db.write(claim) is not None


async def test_a_database_that_is_away_is_said_to_be(deps: Deps) -> None:
    away = Database.connect("bolt://127.0.0.1:9", user="neo4j", password="", database="neo4j", retry_s=0.1)
    try:
        with pytest.raises(DatabaseUnavailable):
            await upkeep.compute_centrality(replace(deps, db=away), "kaway")
    finally:
        await away.close()


async def until_projected(deps: Deps, partition: str) -> None:
    """Return once Graph Data Science is at work on the partition."""
    async with asyncio.timeout(PATIENCE_S):
        while not await deps.db.run(PROJECTIONS, p=partition):  # noqa: ASYNC110 nothing sets an event
            await asyncio.sleep(0.05)


def at_work() -> bool:
    """Whether a thread computes centrality."""
    stacks = [traceback.walk_stack(frame) for frame in sys._current_frames().values()]
    return any(frame.f_code is centrality.compute.__code__ for stack in stacks for frame, _ in stack)
