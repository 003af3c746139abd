"""One real Neo4j for the whole run: the one in GRAPH_MEM_NEO4J_URI, else one of our own in a temporary folder.

Our own begins with what the first schema left behind, so whatever is tested is tested on a base that was upgraded.
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings as property_settings

from graph_mem.config import Settings
from graph_mem.local.artifacts import Cache, read_lock
from graph_mem.local.conf import Memory, Ports
from graph_mem.local.home import Address
from graph_mem.local.java import find_java
from graph_mem.local.server import SHORT_LIVED, Engine, LocalServer
from graph_mem.services.warming import warm
from graph_mem.store.db import Database
from graph_mem.store.migrate import migrate
from tests.people import OPEN

property_settings.register_profile(
    "graph-mem",
    deadline=None,  # whoever else is busy on this machine
    derandomize="CI" in os.environ,  # a change is judged by what it changed; at home every run tries something new
)
property_settings.load_profile("graph-mem")

_WORKERS = 2


def pytest_xdist_auto_num_workers() -> int:
    """Each worker starts a Neo4j of its own; one that is given is not shared, for some tests drop its indexes."""
    return 0 if Settings().neo4j_uri else min(_WORKERS, os.cpu_count() or 1)


REPOSITORY = Path(__file__).parents[1]
FIRST_SCHEMA = REPOSITORY / "tests" / "store" / "first_schema"
DIMENSION = 384
TEST_MEMORY = Memory(heap_mib=1024, pagecache_mib=128)


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The locked Neo4j out of the user's cache, fetched if it is not there."""
    cache = Cache(Settings().cache_dir)
    engine = Engine(lock=read_lock(), cache=cache, java=find_java(), memory=TEST_MEMORY, tuning=SHORT_LIVED)
    cache.ensure(engine.artifacts())
    return engine


@pytest.fixture(scope="session")
def neo4j_address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Where the Neo4j of this run listens; its content outlives a test, so each test makes an organization."""
    given = Settings()
    if given.neo4j_uri is not None:
        assert given.neo4j_password is not None
        yield Address(given.neo4j_uri, "", given.neo4j_user, given.neo4j_password.get_secret_value())
        return
    server = LocalServer(tmp_path_factory.mktemp("instance") / "neo4j", request.getfixturevalue("engine"))
    server.prepare()
    server.configure(Ports(bolt=0, http=0))
    server.admin("database", "load", "neo4j", f"--from-path={FIRST_SCHEMA}")
    try:
        yield server.start(Ports(bolt=0, http=0))
    finally:
        server.stop()


@pytest.fixture
def neo4j_environment(neo4j_address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings name the Neo4j of this run, as they would for whoever types a command."""
    monkeypatch.setenv("GRAPH_MEM_NEO4J_URI", neo4j_address.uri)
    monkeypatch.setenv("GRAPH_MEM_NEO4J_USER", neo4j_address.user)
    monkeypatch.setenv("GRAPH_MEM_NEO4J_PASSWORD", neo4j_address.password)


@pytest.fixture(scope="session")
async def database(neo4j_address: Address) -> AsyncIterator[Database]:
    """A pool on it, the schema applied and the searches planned, as `up` does before it says ready."""
    database = Database.connect(
        neo4j_address.uri, user=neo4j_address.user, password=neo4j_address.password, database="neo4j"
    )
    try:
        await migrate(database, REPOSITORY / "schema", dimension=DIMENSION)
        await warm(database, dimension=DIMENSION)
        yield database
    finally:
        await database.close()


@pytest.fixture(autouse=True)
async def _written() -> AsyncIterator[None]:
    """What a test leaves to a writer that others share is in the graph before the next one counts anything there."""
    yield
    for writer in list(OPEN):
        await writer.flush()
