"""Erased words in Neo4j's own files, of which a dump is made: there after an erasure, gone after a compaction."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from graph_mem.cli.compacting import compact
from graph_mem.cli.output import Output
from graph_mem.cli.proving import holds
from graph_mem.config import Settings
from graph_mem.local.conf import Ports
from graph_mem.local.folder import DataFolder
from graph_mem.local.server import Engine, LocalServer
from graph_mem.services import capture, erasure
from graph_mem.services.capture import NewMemory
from graph_mem.store.db import Database
from graph_mem.store.migrate import migrate
from tests.conftest import DIMENSION, REPOSITORY
from tests.people import company, deps_on, work_off
from tests.services.whole import whole

SECRET = "The vault of the Zanzibar office opens with a whistle of three tones in the evening."
SIBLING = "The vault of the Madagascar office opens with a ring of five keys in the morning."


def settings_on(root: Path) -> Settings:
    return Settings(data_dir=root, neo4j_uri=None, neo4j_password=SecretStr("unused"))


@asynccontextmanager
async def started(server: LocalServer) -> AsyncIterator[Database]:
    address = await asyncio.to_thread(server.start, Ports(bolt=0, http=0))
    database = Database.connect(address.uri, user=address.user, password=address.password, database="neo4j")
    try:
        yield database
    finally:
        await database.close()
        await asyncio.to_thread(server.stop)


async def erased(server: LocalServer) -> int:
    """Have an organization in which a text was erased and its sibling was not; returns how many nodes it has."""
    async with started(server) as database:
        await migrate(database, REPOSITORY / "schema", dimension=DIMENSION)
        async with deps_on(database) as deps:
            org = await company(deps)
            id = (await capture.accept(deps, org.owner, NewMemory(text=SECRET))).memory.id
            await capture.accept(deps, org.owner, NewMemory(text=SIBLING))
            await work_off(deps, org.id)
            await erasure.erase(deps, org.owner, id, confirm_id=id, reason="asked to", strict=True)
        nodes, _ = await whole(database, org.id)
        return len(nodes)


def files_with(root: Path, words: str) -> list[str]:
    return [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if path.is_file() and holds(path, [words])]


async def test_no_file_holds_erased_words_after_a_compaction(engine: Engine, tmp_path: Path) -> None:
    root = tmp_path / "instance"
    server = LocalServer(DataFolder(root).neo4j_home.path, engine)
    left = await erased(server)
    assert files_with(root / "neo4j" / "data", "Zanzibar office"), "Neo4j does not overwrite what it frees"
    with DataFolder(root).hold():
        done = await asyncio.to_thread(compact, settings_on(root), Output(as_json=False))
    assert done.census.nodes == left, "the old store and the new one, counted each by itself"
    assert files_with(root, "Zanzibar office") == []
    assert files_with(root, "Madagascar office")
    assert [path.name for path in sorted(root.iterdir())] == ["instance.lock", "neo4j", "neo4j-password"]
