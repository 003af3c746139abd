"""What isolation costs, and whether it holds in a crowd: everything in one run, so read the ratios.

    uv run --group bench python -m bench.isolation --data-dir D --records 20000

- 20,000 records of one text in one partition, three in another organization, three in one member's private
  partition: how many of the three each leg finds.
- A search as it is, without the predicate in its statements, and without the second check of its rows.
- A record by an id of another organization beside an id that was never given.
- The same call through GraphQL and behind a bare Starlette route, over a socket.
"""

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from ulid import ULID

from bench.scale import load, row_of
from bench.speed import SEARCH, Times
from graph_mem import app
from graph_mem.api.schema import make_schema
from graph_mem.api.session import Context
from graph_mem.api.tokens import issue
from graph_mem.cli.access import complete
from graph_mem.cli.serving import bind, started, url_of
from graph_mem.config import Settings
from graph_mem.core.model import ORGANIZATION, Place, Principal, RecordId, Role
from graph_mem.core.retrieval import Query
from graph_mem.services import Deps, admin, identity, new_id, recall, records
from graph_mem.signing import token_settings
from graph_mem.store import found, search, visibility
from tests.guards.opened import PREDICATE, Seen

TEXT = "The turbine of hall nine vibrates"
MEMORY = "query($id: ID!) { memory(id: $id) { id text label standing version createdAt } }"
ROUNDS = 60
WARM_UP = 10

Ways = Mapping[str, Callable[[], Awaitable[object]]]


class Open(Seen):
    """A database whose statements have lost the predicate: what stands inside the indexes stays."""

    def seen(self, statement: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        return PREDICATE.sub("true", statement), given


async def side_by_side(ways: Ways, *, rounds: int = ROUNDS) -> list[Times]:
    """Every way in turn, round by round, so that whatever else the machine does falls on each alike."""
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + WARM_UP):
        for way, call in ways.items():
            begun = time.perf_counter()
            await call()
            if number >= WARM_UP:
                spent[way].append(time.perf_counter() - begun)
    return [Times.of(way, seconds) for way, seconds in spent.items()]


async def somebody(deps: Deps, organization: str, user: str) -> Principal:
    made = await admin.ensure_principal(deps, organization=organization, user=user, role=Role.MEMBER)
    known = await identity.principal(deps, org_id=made.org_id, user_id=made.user_id)
    assert known is not None
    return known


async def crowd(deps: Deps, many: int) -> tuple[Principal, Principal]:
    """A member of the organization with many records, who has three alone; the only member of one with three."""
    big, small = f"big {ULID()}", f"small {ULID()}"
    alone, few = await somebody(deps, big, "alice"), await somebody(deps, small, "bob")
    noise = np.random.default_rng(1)
    near = await deps.embedder.query(TEXT)

    def made(number: int, *, scale: float) -> list[dict[str, object]]:
        return [row_of(f"{TEXT}.", near + noise.normal(scale=scale, size=near.shape)) for _ in range(number)]

    await load(deps.db, Place(alone.org_id, ORGANIZATION), made(many, scale=0.02))
    await load(deps.db, Place(alone.org_id, ORGANIZATION, alone.user_id), made(3, scale=0.0))
    await load(deps.db, Place(few.org_id, ORGANIZATION), made(3, scale=0.04))
    await deps.db.run("CALL db.awaitIndexes(600)")
    return alone, few


async def starved(deps: Deps, alone: Principal, few: Principal) -> None:
    """Print how many of the three each leg finds."""
    page = await recall.search_page(deps, few, Query(TEXT), first=3)
    said = ", ".join(f"{leg.name} {leg.candidates} in {leg.took_ms:.0f} ms" for leg in page.trace.legs)
    where = search.Where(scopes=few.scopes)
    scanned = await deps.db.read(lambda tx: search.substring(tx, few, where, needle="turbine", limit=50))
    print(f"of three in another organization: {said}, substring {len(scanned)}; page {len(page.hits)}")
    own = await recall.search_page(deps, alone, Query(TEXT), first=3)
    print(
        f"of three of one's own beside many shared, on the first page: {sum(h.record.place.private for h in own.hits)}"
    )


async def layers(deps: Deps, who: Principal) -> list[Times]:
    """A search with both layers, without the first, without the second; each with a text that no cache knows."""
    unguarded = replace(deps, db=Open(deps.db))
    numbers = iter(range(10**9))

    async def searched(on: Deps) -> None:
        await recall.search_page(on, who, Query(f"{TEXT} {next(numbers)}"), first=10)

    async def unchecked() -> None:
        with patch.object(found, "admit", _anything), patch.object(visibility, "admit", _anything):
            await searched(deps)

    return await side_by_side(
        {
            "search, both layers": lambda: searched(deps),
            "without the predicate": lambda: searched(unguarded),
            "without the second check": unchecked,
        }
    )


def _anything(*_: object) -> bool:
    return True


async def ids(deps: Deps, who: Principal, foreign: str) -> list[Times]:
    """A foreign id beside one that was never given, through the whole schema."""
    schema = make_schema()

    async def asked(id: str) -> None:
        await schema.execute(MEMORY, variable_values={"id": id}, context_value=Context(deps, "bench", caller=who))

    return await side_by_side(
        {"unknown id": lambda: asked(new_id("mem")), "foreign id": lambda: asked(foreign)}, rounds=5 * ROUNDS
    )


@asynccontextmanager
async def served(settings: Settings, who: Principal) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of the API, which has two bare routes besides that call the services alone."""
    application = app.build(settings)

    async def plain_search(request: Request) -> Response:
        text = orjson.loads(await request.body())["text"]
        page = await recall.search_page(application.state.deps, who, Query(text), first=10)
        shown = [{"rank": hit.rank, "score": hit.score, "text": hit.snippet, "id": hit.record.id} for hit in page.hits]
        return Response(orjson.dumps(shown), media_type="application/json")

    async def plain_memory(request: Request) -> Response:
        id = RecordId(orjson.loads(await request.body())["id"])
        known = await records.by_ids(application.state.deps, who, [id])
        shown = [{"id": one.id, "standing": one.standing, "version": one.version} for one in known.values()]
        return Response(orjson.dumps(shown), media_type="application/json")

    application.router.routes += [
        Route("/search", plain_search, methods=["POST"]),
        Route("/memory", plain_memory, methods=["POST"]),
    ]
    token = issue(
        token_settings(settings),
        org_id=who.org_id,
        user_id=who.user_id,
        now=datetime.now(UTC),
        lifetime=timedelta(hours=1),
    )
    listener = bind("127.0.0.1", 0)
    async with started(application, listener):
        await application.state.deps.embedder.settled()
        head = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=url_of(listener), headers=head, timeout=60) as client:
            yield client


async def transports(settings: Settings, who: Principal, id: str) -> list[Times]:
    """One record, and a search, behind a bare route and through GraphQL."""
    numbers = iter(range(10**9))
    async with served(settings, who) as client:

        async def post(path: str, body: Mapping[str, object]) -> None:
            answer = await client.post(path, json=body)
            answer.raise_for_status()
            if b'"errors"' in answer.content:
                raise RuntimeError(answer.text[:500])

        def text() -> str:
            return f"{TEXT} {next(numbers)}"

        return await side_by_side(
            {
                "a record, bare route": lambda: post("/memory", {"id": id}),
                "a record, GraphQL": lambda: post("/graphql", {"query": MEMORY, "variables": {"id": id}}),
                "a search, bare route": lambda: post("/search", {"text": text()}),
                "a search, GraphQL": lambda: post(
                    "/graphql", {"query": SEARCH, "variables": {"input": {"text": text()}}}
                ),
            }
        )


def _print(times: list[Times]) -> None:
    for one in times:
        print(f"{one.way}: p50 {one.p50:.2f} ms, p95 {one.p95:.2f} ms, {one.p50 / times[0].p50:.3f} of the first")


async def run(settings: Settings, many: int) -> None:
    async with app.opened(settings, light=True) as deps:
        await deps.embedder.settled()
        alone, few = await crowd(deps, many)
        await starved(deps, alone, few)
        page = await recall.search_page(deps, few, Query(TEXT), first=1)
        id = page.hits[0].record.id
        _print(await layers(deps, alone))
        _print(await ids(deps, alone, id))
    _print(await transports(settings, few, id))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.isolation")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--records", type=int, default=20_000)
    options = parser.parse_args()
    chosen = {"data_dir": options.data_dir} if options.data_dir else {}
    asyncio.run(run(complete(Settings(embedder="onnx", **chosen)), options.records))


if __name__ == "__main__":
    main()
