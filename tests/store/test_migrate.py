"""The schema on an empty database: processes that start together, one that starts later, one with another model."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, LiteralString, cast

import pytest

from graph_mem.errors import DimensionMismatch, SchemaMismatch, SchemaTooNew
from graph_mem.local.conf import Ports
from graph_mem.local.home import Address
from graph_mem.local.server import Engine, LocalServer
from graph_mem.store.db import Database
from graph_mem.store.migrate import load, migrate

ROUNDS = 4  # each takes three seconds
SCHEMA = Path(__file__).parents[2] / "schema"


@pytest.fixture(scope="module")
def empty(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("empty")
    (folder / "neo4j-password").write_text("-like-an-option-but-none")  # as one in 64 generated ones is
    server = LocalServer(folder / "neo4j", engine)
    try:
        yield server.start(Ports(bolt=0, http=0))
    finally:
        server.stop()


@pytest.fixture
async def pools(empty: Address) -> AsyncIterator[list[Database]]:
    """Four processes as the database sees them."""
    async with AsyncExitStack() as stack:
        made = [
            Database.connect(empty.uri, user=empty.user, password=empty.password, database="neo4j") for _ in range(4)
        ]
        for pool in made:
            stack.push_async_callback(pool.close)
        yield made


async def emptied(pool: Database) -> None:
    """The database as it was before any schema."""
    for row in await pool.run("SHOW CONSTRAINTS YIELD name"):
        await pool.run(cast("LiteralString", f"DROP CONSTRAINT `{row['name']}`"))
    for row in await pool.run("SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name"):
        await pool.run(cast("LiteralString", f"DROP INDEX `{row['name']}`"))
    await pool.run("MATCH (n) DETACH DELETE n")


async def test_four_at_once_make_one_schema_and_later_ones_write_none_however_often(pools: list[Database]) -> None:
    wanted = [one.version for one in load(SCHEMA, dimension=384)]
    schemas: list[list[Any]] = []
    for _ in range(ROUNDS):
        await emptied(pools[0])
        await asyncio.gather(*(migrate(pool, SCHEMA, dimension=384) for pool in pools))
        recorded = await pools[0].run("MATCH (n:Migration) RETURN n.version AS version ORDER BY version")
        assert [row["version"] for row in recorded] == wanted
        assert [await migrate(pool, SCHEMA, dimension=384) for pool in pools] == [[], [], [], []]
        shown = await pools[0].run("SHOW INDEXES YIELD name, state, labelsOrTypes, properties ORDER BY name")
        schemas.append([dict(row) for row in shown])
    assert all(row["state"] == "ONLINE" for row in schemas[0])
    assert all(schema == schemas[0] for schema in schemas)


async def test_a_schema_of_a_later_release_is_refused(pools: list[Database]) -> None:
    await migrate(pools[0], SCHEMA, dimension=384)
    await pools[0].run("CREATE (:Migration {version: 9999, name: 'later'})")
    with pytest.raises(SchemaTooNew, match=r"schema 9999.*knows \d+ and none later"):
        await migrate(pools[0], SCHEMA, dimension=384)
    await pools[0].run("MATCH (n:Migration {version: 9999}) DELETE n")


async def test_another_dimension_is_refused_by_naming_both(pools: list[Database]) -> None:
    await migrate(pools[0], SCHEMA, dimension=384)
    with pytest.raises(DimensionMismatch, match=r"384 numbers.*768"):
        await migrate(pools[0], SCHEMA, dimension=768)


async def test_an_index_that_is_not_ours_is_refused(pools: list[Database]) -> None:
    await migrate(pools[0], SCHEMA, dimension=384)
    await pools[0].run("DROP INDEX words")
    with pytest.raises(SchemaMismatch, match="'words' is missing"):
        await migrate(pools[0], SCHEMA, dimension=384)
    await pools[0].run("CREATE FULLTEXT INDEX words FOR (n:Memory) ON EACH [n.text]")
    with pytest.raises(SchemaMismatch, match="covers"):
        await migrate(pools[0], SCHEMA, dimension=384)
