"""Moving to a model of another dimension, under search and capture, killed in the middle; on a Neo4j of its own, for
which model is in force is one for the whole database.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from graph_mem.core.retrieval import Hit, Query, RetrievalMode
from graph_mem.core.vectors import FIRST, SECOND, Placed, Source
from graph_mem.errors import Conflict, SetupError
from graph_mem.local.conf import Ports
from graph_mem.local.home import Address
from graph_mem.local.server import Engine, LocalServer
from graph_mem.models.embedder import Embedder
from graph_mem.models.embedders import Embedders
from graph_mem.models.encoder import Encoder
from graph_mem.services import Deps, capture, exports, facts, legs, recall, restores, vectorings
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.settings import SettingsCache
from graph_mem.services.vectorings import Pace
from graph_mem.services.warming import warm
from graph_mem.store import spaces, vectors
from graph_mem.store.db import Database
from graph_mem.store.migrate import migrate
from tests.conftest import REPOSITORY
from tests.encoders import Fault, FaultyEncoder, HashEncoder, profile
from tests.people import Company, company, deps_on, work_off
from tests.services.whole import wipe

OLD, NEW = Source("hash", 384, "hash"), Source("hash wide", 96, "hash wide")
QUICK = Pace(notice_s=0.6, page=8)


class Killed(Exception):
    """The process ends here."""


def embedder_of(source: Source) -> Embedder:
    encoder = HashEncoder(source.dimension)
    return Embedder(lambda: encoder, profile=encoder.profile)


@pytest.fixture(scope="module")
def address(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    server = LocalServer(tmp_path_factory.mktemp("moved") / "neo4j", engine)
    try:
        yield server.start(Ports(bolt=0, http=0))
    finally:
        server.stop()


@pytest.fixture
async def own(address: Address) -> AsyncIterator[Database]:
    database = Database.connect(
        address.uri, user=address.user, password=address.password, database="neo4j", timeout_s=60
    )
    try:
        now = await database.read(spaces.read)
        placed = now.in_force if now else Placed(OLD, FIRST)
        await migrate(database, REPOSITORY / "schema", dimension=placed.source.dimension, space=placed.space)
        await warm(database, dimension=placed.source.dimension, space=placed.space)
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def process(database: Database) -> AsyncIterator[Deps]:
    """A process that was configured with the old model and follows what is in force."""
    async with deps_on(database) as deps:
        embedders = Embedders(OLD, embedder_of(OLD), make=embedder_of)
        settings = SettingsCache(database, ttl_s=0.0)
        async with vectorings.following(database, embedders, settings, every_s=0.1):
            embedders.start()
            await embedders.settled()
            yield replace(deps, embedder=embedders, settings=settings)
            await embedders.aclose()


async def saved(deps: Deps, org: Company, *numbers: int) -> None:
    for number in numbers:
        await capture.accept(deps, org.owner, NewMemory(text=f"Depot{number} keeps crate{number} under roof{number}."))
    await facts.save(
        deps, org.owner, NewFact(subject=f"Depot{numbers[-1]}", relation="roof", statement=f"Roof{numbers[-1]} leaks.")
    )
    await work_off(deps, org.id)


async def found_by_meaning(deps: Deps, org: Company, number: int) -> None:
    """The text is found, and the vector leg knows it."""
    assert (await found(deps, org, number)).score.vector is not None


async def found(deps: Deps, org: Company, number: int) -> Hit:
    """The hit that is the text of this number; both legs ran."""
    page = await recall.search_page(deps, org.owner, Query(f"crate{number} under roof{number}"), first=5)
    assert page.trace.mode is RetrievalMode.HYBRID, page.trace.degraded_reason
    texts = [getattr(hit.record, "text", None) or "" for hit in page.hits]
    (place,) = [place for place, text in enumerate(texts) if f"crate{number} " in text]
    return page.hits[place]


async def move(deps: Deps, *, to: Source, pace: Pace = QUICK) -> vectorings.Moved:
    embedder = embedder_of(to)
    embedder.start()
    try:
        return await vectorings.reembed(deps, embedder, known=OLD, wanted=to, pace=pace)
    finally:
        await embedder.aclose()


async def lacking(database: Database) -> list[int]:
    """How many passages have a vector of the old and of the new model, and how many there are."""
    (row,) = await database.run(
        "MATCH (n:Chunk|Fact) RETURN count(n.embedding) AS old, count(n.embedding2) AS new, count(n) AS all"
    )
    return [row["old"], row["new"], row["all"]]


async def indexes(database: Database) -> dict[str, int]:
    rows = await database.run("SHOW VECTOR INDEXES YIELD name, options RETURN name, options.indexConfig AS config")
    return {row["name"]: row["config"]["vector.dimensions"] for row in rows}


async def test_a_move_never_loses_search_and_ends_with_everything_in_the_new_model(
    own: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A new index has Neo4j plan every search again, which on a busy machine takes longer than a search may.
    monkeypatch.setattr(legs, "LEG_TIMEOUT_S", 60.0)
    async with process(own) as one, process(own) as two:
        org = await company(one)
        await saved(one, org, *range(30))
        done = asyncio.Event()

        async def live(deps: Deps, start: int) -> int:
            """Capture and search until told to stop; the new text is found at once, the old one by meaning, too."""
            number = start
            while not done.is_set():
                await saved(deps, org, number)
                await found(deps, org, number)
                await found_by_meaning(deps, org, number % 30)
                number += 1
            return number

        living = [asyncio.create_task(live(deps, start)) for deps, start in ((one, 1000), (two, 2000))]
        working, left = vectors.fill, 2

        async def killed(*given: object, **named: object) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            await working(*given, **named)  # pyright: ignore # whatever it takes

        with monkeypatch.context() as patch:
            patch.setattr(vectors, "fill", killed)
            with pytest.raises(Killed):
                await move(one, to=NEW)
        old, new, total = await lacking(own)
        assert 0 < new < total <= old + 2
        moved = await move(one, to=NEW)
        assert (moved.was, moved.embedded > 0) == (OLD, True)
        await asyncio.sleep(1)
        done.set()
        numbers = await asyncio.gather(*living)
        assert all(each % 1000 > 2 for each in numbers), "captures went on"

        old, new, total = await lacking(own)
        assert (old, new) == (0, total)
        assert await indexes(own) == {"passages2": NEW.dimension}
        for deps in (one, two):
            assert deps.embedder.in_force.space == SECOND
            for number in (3, numbers[0] - 1, numbers[1] - 1):
                await found_by_meaning(deps, org, number)
        assert await move(one, to=NEW) == vectorings.Moved(0, NEW), "there is nothing left to do"

        await migrate(own, REPOSITORY / "schema", dimension=NEW.dimension, space=SECOND)
        placed = Placed(NEW, SECOND)
        await exports.export(one, tmp_path / "moved.gz", organization=org.name, model=placed)
        await wipe(own, org.id)
        assert (await restores.restore(one, tmp_path / "moved.gz", model=placed)).to_embed == 0
        await found_by_meaning(two, org, 3)


@pytest.mark.parametrize("fault", [Fault.RAISES, Fault.WRONG_DIMENSION, Fault.NOT_FINITE, Fault.ZERO, None])
async def test_a_model_that_cannot_be_used_is_refused_before_anything_is_written(
    own: Database, fault: Fault | None
) -> None:
    async def everything() -> list[dict[str, object]]:
        return [dict(row) for row in await own.run("MATCH (n) RETURN elementId(n) AS id, properties(n) AS is")]

    def unloadable() -> Encoder:
        raise SetupError("There is no such model.")

    async with deps_on(own) as deps:
        before, there = await everything(), await indexes(own)
        broken = None if fault is None else FaultyEncoder(HashEncoder(200), fault=fault)
        embedder = Embedder(unloadable if broken is None else lambda: broken, profile=profile(200))
        embedder.start()
        try:
            with pytest.raises(SetupError, match="'hash' cannot be used, and nothing was changed: hash "):
                await vectorings.reembed(deps, embedder, known=OLD, wanted=Source("broken", 200, "broken"))
        finally:
            await embedder.aclose()
        assert await everything() == before
        assert await indexes(own) == there


async def test_two_moves_at_once_are_one(own: Database) -> None:
    async with process(own) as deps:
        now = await own.read(spaces.read)
        back = OLD if now and now.in_force.source == NEW else NEW
        first = asyncio.create_task(move(deps, to=back))
        await asyncio.sleep(0.3)
        with pytest.raises(Conflict):
            await move(deps, to=back)
        await first
        found = await own.read(spaces.read)
        assert found is not None
        assert (found.in_force.source, found.beside) == (back, None)
        assert len(await indexes(own)) == 1
