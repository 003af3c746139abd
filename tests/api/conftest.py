"""The toy schema behind the real edge, on a real socket and with real principals."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route, WebSocketRoute
from ulid import ULID

from graph_mem.api.documents import Manifest, digest
from graph_mem.api.edge import Edge, EdgeSettings
from graph_mem.api.graphiql import graphiql_routes
from graph_mem.api.guard import Guard
from graph_mem.api.http import GraphQLEndpoint
from graph_mem.api.middleware import edge_middleware
from graph_mem.api.schema import make_schema
from graph_mem.api.session import Sessions
from graph_mem.api.tokens import TokenSettings, TokenVerifier, issue
from graph_mem.cli.logs import formatter
from graph_mem.cli.serving import bind, make_server, url_of
from graph_mem.config import Settings
from graph_mem.core.model import Role
from graph_mem.core.people import Enrolment
from graph_mem.services import Clock, Deps, admin, new_id, utc_now
from graph_mem.services.admin import AdminDeps
from graph_mem.store.db import Database
from tests.api.toy import toy_schema, witness
from tests.people import deps_on

TOKENS = TokenSettings(secret="0123456789abcdef0123456789abcdef")
TRUSTED = "query Trusted { hello }"
ORIGIN = "https://console.example"


@dataclass(frozen=True)
class Desk:
    """The part of `Deps` that the edge and the operator's services use."""

    db: Database
    clock: Clock = utc_now
    new_id: Callable[[str], str] = new_id


@dataclass
class Live:
    """A running server."""

    url: str
    desk: AdminDeps
    edge: Edge
    http: httpx.AsyncClient = field(repr=False)

    @property
    def socket_url(self) -> str:
        return self.url.replace("http://", "ws://") + "/graphql"

    async def member(self, *, role: Role = Role.MEMBER, organization: str | None = None) -> Enrolment:
        """A fresh user, of a fresh organization unless one is given."""
        return await admin.ensure_principal(
            self.desk, organization=organization or f"org {ULID()}", user=f"user {ULID()}", role=role
        )

    def token(self, who: Enrolment, *, lifetime: timedelta = timedelta(hours=1)) -> str:
        return issue(TOKENS, org_id=who.org_id, user_id=who.user_id, now=utc_now(), lifetime=lifetime)

    async def headers(self, **changed: str) -> dict[str, str]:
        """What a well-behaved client of a fresh member sends, with changes."""
        token = changed.pop("token", None) or self.token(await self.member())
        return {
            "content-type": "application/json",
            "accept": "application/graphql-response+json",
            "authorization": f"Bearer {token}",
        } | {name.replace("_", "-"): value for name, value in changed.items()}

    async def ask(self, query: str, variables: dict[str, Any] | None = None, **changed: str) -> httpx.Response:
        """The answer to one well-formed request of a fresh member."""
        body = {"query": query, "variables": variables}
        return await self.http.post("/graphql", json=body, headers=await self.headers(**changed))


@asynccontextmanager
async def serving(edge: Edge, desk: AdminDeps) -> AsyncIterator[Live]:
    """`edge` on a loopback port, with everything around it that the application has."""
    endpoint = GraphQLEndpoint(edge)
    application = Starlette(
        routes=[
            Route("/graphql", endpoint),
            WebSocketRoute("/graphql", endpoint),
            *graphiql_routes(),
        ],
        middleware=edge_middleware((ORIGIN,)),
    )
    listener = bind("127.0.0.1", 0)
    server = make_server(application)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    async with asyncio.timeout(10):
        while not server.started and not running.done():  # noqa: ASYNC110 # uvicorn tells in no other way
            await asyncio.sleep(0.01)
    url = url_of(listener)
    async with httpx.AsyncClient(base_url=url, timeout=20) as client:
        yield Live(url, desk, edge, client)
    await edge.drain()
    server.should_exit = True
    await running


def sessions_of(desk: AdminDeps) -> Sessions:
    return Sessions(desk, TokenVerifier(replace(TOKENS, leeway_s=0.0)), fresh_for_s=0.2)


@pytest.fixture(scope="session")
async def live(database: Database) -> AsyncIterator[Live]:
    """The toy schema, with short times so that tests need not wait."""
    desk = Desk(database)
    edge = Edge(
        toy_schema(Guard()),
        cast("Deps", desk),
        sessions_of(desk),
        manifest=Manifest({digest(TRUSTED): TRUSTED}),
        settings=EdgeSettings(
            timeout_s=1.0,
            connection_init_timeout_s=0.5,
            recheck_s=0.05,
            heartbeat_s=0.2,
            allowed_origins=(ORIGIN,),
        ),
    )
    async with serving(edge, desk) as running:
        yield running


@pytest.fixture(scope="session")
async def real(database: Database) -> AsyncIterator[Live]:
    """The schema that the service answers with."""
    async with deps_on(database) as deps:
        edge = Edge(make_schema(), deps, sessions_of(deps), settings=EdgeSettings(timeout_s=5.0))
        async with serving(edge, deps) as running:
            yield running


class Collector(logging.Handler):
    """Holds the lines that a log collector gets."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []
        self.setFormatter(formatter(Settings(log_format="json")))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))

    def of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]

    def refs(self, event: str) -> list[str]:
        return [line["ref"] for line in self.of(event)]


@pytest.fixture
def log() -> Iterator[Collector]:
    collector, ours = Collector(), logging.getLogger("graph_mem")
    level = ours.level
    ours.addHandler(collector)
    ours.setLevel(logging.DEBUG)
    yield collector
    ours.removeHandler(collector)
    ours.setLevel(level)


@pytest.fixture(autouse=True)
def _fresh_witness() -> None:
    witness.reset()
