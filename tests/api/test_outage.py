"""What the edge says while the graph does not answer, and to a client that does not."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import cast

import pytest

from graph_mem.api import session
from graph_mem.api.edge import Edge, EdgeSettings
from graph_mem.api.guard import Guard
from graph_mem.cli.serving import bind
from graph_mem.core.model import OrganizationId, Role, UserId
from graph_mem.core.people import KEY_PREFIX, Enrolment
from graph_mem.services import Deps, new_id
from graph_mem.store.db import Database
from tests.api.conftest import Collector, Desk, Live, serving, sessions_of
from tests.api.toy import toy_schema

SOMEBODY = Enrolment(OrganizationId(new_id("org")), UserId(new_id("usr")), Role.MEMBER)


@pytest.fixture
async def lost() -> AsyncIterator[Live]:
    """The toy schema on a graph that is not there."""
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    listener.close()
    database = Database.connect(f"bolt://127.0.0.1:{port}", user="neo4j", password="none", database="neo4j")
    desk = Desk(database)
    edge = Edge(toy_schema(Guard()), cast("Deps", desk), sessions_of(desk), settings=EdgeSettings(timeout_s=0.5))
    async with serving(edge, desk) as running:
        yield running
    await database.close()


async def test_without_the_graph_nobody_is_recognized_and_health_still_answers(
    lost: Live, monkeypatch: pytest.MonkeyPatch, log: Collector
) -> None:
    monkeypatch.setattr(session, "RECOGNIZED_WITHIN_S", 0.3)
    token = lost.token(SOMEBODY)
    started = time.perf_counter()
    refused = await lost.ask("{hello}", token=token)
    assert (refused.status_code, refused.json()["errors"][0]["extensions"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert (await lost.ask("{health}", token=token)).json()["data"] == {"health": "OK"}
    assert time.perf_counter() - started < 3
    (told, _) = log.of("operation")
    assert (told["codes"], told["took_ms"] > 300) == (["SERVICE_UNAVAILABLE"], True), "with the wait for the graph"


async def test_a_key_that_cannot_be_looked_up_is_told_of_as_an_operation(
    lost: Live, monkeypatch: pytest.MonkeyPatch, log: Collector
) -> None:
    monkeypatch.setattr(session, "RECOGNIZED_WITHIN_S", 0.3)
    answer = await lost.ask("{hello}", token=f"{KEY_PREFIX}unknown")
    assert answer.status_code == 503
    extensions = answer.json()["errors"][0]["extensions"]
    assert extensions == {"code": "SERVICE_UNAVAILABLE", "ref": answer.headers["x-request-id"]}
    (told,) = log.of("operation")
    assert (told["ref"], told["codes"], told["took_ms"] > 300) == (extensions["ref"], ["SERVICE_UNAVAILABLE"], True)


async def test_body_that_does_not_arrive_is_not_waited_for(lost: Live) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(lost.url.rpartition(":")[2]))
    writer.write(b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    async with asyncio.timeout(3):
        status = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert status.split()[1] == b"408"
