"""graphql-transport-ws through a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from graph_mem.api.brake import Brake
from graph_mem.api.limits import Budget
from graph_mem.core.model import Role
from graph_mem.services import admin
from tests.api.conftest import ORIGIN, TRUSTED, Live
from tests.api.toy import SECRET_TEXT, until, witness

PROTOCOL = Subprotocol("graphql-transport-ws")


class Client:
    """One connection, as a client of the protocol has it."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, message: object) -> None:
        await self.connection.send(message if isinstance(message, (str, bytes)) else json.dumps(message))

    async def receive(self) -> dict[str, Any]:
        return json.loads(await asyncio.wait_for(self.connection.recv(), 5))

    async def subscribe(self, id: str, query: str, **payload: Any) -> None:
        await self.send({"id": id, "type": "subscribe", "payload": {"query": query, **payload}})

    async def all_of(self, id: str) -> list[dict[str, Any]]:
        """The messages of one operation, its last included."""
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] not in ("complete", "error"):
            message = await self.receive()
            if message.get("id") == id:
                found.append(message)
        return found

    async def closed(self) -> int:
        """The code that the server hangs up with."""
        try:
            async with asyncio.timeout(5):
                async for _ in self.connection:
                    pass
        except ConnectionClosed:
            pass
        assert self.connection.close_code is not None
        return self.connection.close_code


@asynccontextmanager
async def socket(live: Live, **options: Any) -> AsyncIterator[Client]:
    options = {"subprotocols": [PROTOCOL]} | options
    async with connect(live.socket_url, **options) as connection:
        yield Client(connection)


@asynccontextmanager
async def introduced(live: Live, token: str | None = None) -> AsyncIterator[Client]:
    token = token or live.token(await live.member())
    async with socket(live) as client:
        await client.send({"type": "connection_init", "payload": {"authorization": f"Bearer {token}"}})
        assert (await client.receive())["type"] == "connection_ack"
        yield client


async def test_subscription_sends_its_results_and_completes(live: Live) -> None:
    async with introduced(live) as client:
        await client.subscribe("1", "subscription($n:Int!){count(to:$n)}", variables={"n": 3})
        messages = await client.all_of("1")
    assert [message["type"] for message in messages] == ["next", "next", "next", "complete"]
    assert messages[2]["payload"]["data"] == {"count": 3}


async def test_queries_and_mutations_run_too(live: Live) -> None:
    async with introduced(live) as client:
        await client.subscribe("q", "{hello}")
        await client.subscribe("m", "mutation{bump{bumps}}")
        received = [await client.receive() for _ in range(4)]
    data = {message["id"]: message["payload"]["data"] for message in received if message["type"] == "next"}
    assert data == {"q": {"hello": "hello you"}, "m": {"bump": {"bumps": 1}}}


async def test_each_operation_has_its_own_id(live: Live) -> None:
    async with introduced(live) as client:
        await client.subscribe("1", "subscription{silence}")
        await client.subscribe("1", "subscription{silence}")
        assert await client.closed() == 4409


async def test_completed_id_can_be_used_again(live: Live) -> None:
    async with introduced(live) as client:
        for _ in range(3):
            await client.subscribe("1", "{hello}")
            assert len(await client.all_of("1")) == 2


async def test_client_ends_a_subscription(live: Live) -> None:
    async with introduced(live) as client:
        await client.subscribe("1", "subscription{silence}")
        await until(lambda: witness.lingering == 1)
        await client.send({"id": "1", "type": "complete"})
        await client.subscribe("2", "{hello}")
        assert (await client.all_of("2"))[0]["payload"]["data"] == {"hello": "hello you"}
        await until(lambda: witness.cancelled == 1)


async def test_subscriptions_end_with_their_connection(live: Live) -> None:
    async with introduced(live) as client:
        for id in "abc":
            await client.subscribe(id, "subscription{silence}")
        await until(lambda: witness.lingering == 3)
    await until(lambda: witness.cancelled == 3)


async def test_mutation_outlives_its_connection(live: Live) -> None:
    async with introduced(live) as client:
        await client.subscribe("1", "mutation{slowBump(seconds:0.3)}")
        await until(lambda: witness.lingering == 1)
    await until(lambda: witness.bumps == 1)
    assert witness.cancelled == 0


async def test_ping_is_answered(live: Live) -> None:
    async with introduced(live) as client:
        await client.send({"type": "ping"})
        assert await client.receive() == {"type": "pong"}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{hello", "GRAPHQL_PARSE_FAILED"),
        ("{nope}", "GRAPHQL_VALIDATION_FAILED"),
        ("query A{hello} query B{hello}", "OPERATION_RESOLUTION_FAILURE"),
        ("{leaf{many(first:100){many(first:100){many(first:100){a}}}}}", "QUERY_TOO_COMPLEX"),
        ("{" + "hello " * 40_000 + "}", "QUERY_TOO_COMPLEX"),
        ("{slow(seconds:9)}", "TIMEOUT"),
    ],
)
async def test_operation_that_cannot_run_is_an_error_message(live: Live, query: str, code: str) -> None:
    async with introduced(live) as client:
        await client.subscribe("1", query)
        (message,) = await client.all_of("1")
        assert (message["type"], message["payload"][0]["extensions"]["code"]) == ("error", code)
        await client.subscribe("2", "{hello}")
        assert (await client.all_of("2"))[-1]["type"] == "complete"


async def test_unexpected_error_in_a_stream_is_masked(live: Live) -> None:
    async with introduced(live) as client:
        await client.subscribe("1", "subscription{breaks}")
        messages = await client.all_of("1")
    assert "INTERNAL_SERVER_ERROR" in str(messages)
    assert SECRET_TEXT not in str(messages)


@pytest.mark.parametrize(
    "message",
    [
        "null",
        "1",
        "[]",
        '"x"',
        "{",
        "{}",
        b"{}",
        '{"type":1}',
        '{"type":"nope"}',
        '{"type":"subscribe","id":[1],"payload":{"query":"{hello}"}}',
        '{"type":"subscribe","id":"","payload":{"query":"{hello}"}}',
        '{"type":"subscribe","id":"1","payload":"x"}',
        '{"type":"subscribe","id":"1","payload":{"query":1}}',
        '{"type":"subscribe","id":"1","payload":{}}',
        '{"type":"subscribe","id":"1","payload":{"query":"{hello}","variables":[]}}',
        '{"type":"complete","id":1}',
        "[" * 100_000,
    ],
)
async def test_malformed_message_ends_the_connection(live: Live, message: str | bytes) -> None:
    async with introduced(live) as client:
        await client.send(message)
        assert await client.closed() == 4400


async def test_frame_that_is_too_large_ends_the_connection(live: Live) -> None:
    async with introduced(live) as client:
        await client.send('{"type":"ping","payload":"' + "x" * (2 << 20) + '"}')
        assert await client.closed() == 1009


async def test_nothing_runs_before_the_introduction(live: Live) -> None:
    async with socket(live) as client:
        await client.subscribe("1", "mutation{bump{bumps}}")
        assert await client.closed() == 4401
    assert witness.bumps == 0


async def test_silent_client_is_disconnected(live: Live) -> None:
    async with socket(live) as client:
        assert await client.closed() == 4408


async def test_second_introduction_ends_the_connection(live: Live) -> None:
    async with introduced(live) as client:
        await client.send({"type": "connection_init"})
        assert await client.closed() == 4429


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (None, 4403),
        ({}, 4403),
        ({"authorization": "Bearer nonsense"}, 4403),
        ({"authorization": "Basic x"}, 4403),
        ({"token": "gm_unknown"}, 4403),
        ("x", 4400),
        ([], 4400),
    ],
)
async def test_introduction_without_a_valid_token_is_refused(live: Live, payload: object, code: int) -> None:
    async with socket(live) as client:
        await client.send({"type": "connection_init", "payload": payload})
        assert await client.closed() == code


async def test_address_that_guesses_is_soon_not_looked_at(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.edge, "brake", Brake(Budget(burst=1, per_second=0.001)))
    for token, code in (("gm_guess", 4403), ("gm_guess", 4429), (live.token(await live.member()), 4429)):
        async with socket(live) as client:
            await client.send({"type": "connection_init", "payload": {"token": token}})
            assert await client.closed() == code


@pytest.mark.parametrize("field", ["token", "Authorization"])
async def test_token_may_come_in_several_places(live: Live, field: str) -> None:
    token = live.token(await live.member())
    value = token if field == "token" else f"Bearer {token}"
    async with socket(live) as client:
        await client.send({"type": "connection_init", "payload": {field: value}})
        assert (await client.receive())["type"] == "connection_ack"
    header = {"authorization": f"Bearer {token}"}
    async with socket(live, additional_headers=header) as client:
        await client.send({"type": "connection_init", "payload": None})
        assert (await client.receive())["type"] == "connection_ack"


async def test_connection_ends_when_its_token_expires(live: Live) -> None:
    token = live.token(await live.member(), lifetime=timedelta(seconds=1))
    async with introduced(live, token) as client:
        await client.subscribe("1", "subscription{silence}")
        assert await client.closed() == 4403


async def test_connection_ends_when_its_user_is_removed(live: Live) -> None:
    who = await live.member()
    await admin.save_member(live.desk, organization=who.org_id, user=f"owner of {who.org_id}", role=Role.OWNER)
    async with introduced(live, live.token(who)) as client:
        await client.subscribe("1", "subscription{silence}")
        await admin.remove_member(live.desk, organization=who.org_id, user=who.user_id)
        assert await client.closed() == 4403


async def test_connection_ends_when_its_key_is_revoked(live: Live) -> None:
    who = await live.member()
    made = await admin.create_key(live.desk, organization=who.org_id, user=who.user_id, name="ci")
    async with introduced(live, made.secret) as client:
        await client.subscribe("1", "subscription{silence}")
        await admin.revoke_key(live.desk, organization=who.org_id, key_id=made.key.id)
        assert await client.closed() == 4403


async def test_subscription_ends_when_an_assignment_does(live: Live) -> None:
    who = await live.member()
    made = await admin.assign(live.desk, organization=who.org_id, user=who.user_id, client="Acme")
    assert made.client_id is not None
    async with introduced(live, live.token(who)) as client:
        await client.subscribe("1", "subscription{silence}")
        await until(lambda: witness.lingering == 1)
        await admin.unassign(live.desk, organization=who.org_id, user=who.user_id, client="Acme")
        (message,) = await client.all_of("1")
        assert message["payload"][0]["extensions"]["code"] == "FORBIDDEN"
        await client.subscribe("2", "{hello}")
        assert (await client.all_of("2"))[0]["payload"]["data"] == {"hello": "hello you"}


async def test_each_operation_sees_the_role_of_its_moment(live: Live) -> None:
    who = await live.member()
    (member,) = await admin.list_members(live.desk, organization=who.org_id)
    async with introduced(live, live.token(who)) as client:
        for role in (Role.MEMBER, Role.ADMIN, Role.AGENT):
            await admin.save_member(live.desk, organization=who.org_id, user=member.name, role=role)
            await asyncio.sleep(0.3)
            await client.subscribe("1", "{role}")
            assert (await client.all_of("1"))[0]["payload"]["data"] == {"role": role}


async def test_operations_of_one_connection_are_limited(live: Live) -> None:
    async with introduced(live) as client:
        for number in range(21):
            await client.subscribe(str(number), "subscription{silence}")
        (message,) = await client.all_of("20")
        assert message["payload"][0]["extensions"]["code"] == "RATE_LIMITED"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
async def test_page_of_another_origin_cannot_connect(live: Live, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with socket(live, origin=origin):
            pass
    assert refused.value.response.status_code == 403


async def test_page_of_our_own_or_a_chosen_origin_can(live: Live) -> None:
    for origin in (live.url, ORIGIN):
        async with socket(live, origin=origin):
            pass


@pytest.mark.parametrize("protocols", [None, [Subprotocol("graphql-ws")]])
async def test_other_subprotocols_are_refused(live: Live, protocols: list[Subprotocol] | None) -> None:
    async with socket(live, subprotocols=protocols) as client:
        assert await client.closed() == 4406


async def test_trusted_document_runs_by_its_id(live: Live) -> None:
    document_id = next(iter(live.edge.manifest.documents))
    assert live.edge.manifest.documents[document_id] == TRUSTED
    async with introduced(live) as client:
        await client.send({"id": "1", "type": "subscribe", "payload": {"documentId": f"sha256:{document_id}"}})
        assert (await client.all_of("1"))[0]["payload"]["data"] == {"hello": "hello you"}
