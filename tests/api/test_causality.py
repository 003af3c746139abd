"""A caller reads its own writes at whichever process answers: what it wrote goes along in a header."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator

import pytest

from graph_mem.api.causality import CAUSAL_TOKEN, Seal
from graph_mem.api.edge import Edge
from graph_mem.api.schema import make_schema
from graph_mem.core.model import Role
from graph_mem.local.home import Address
from graph_mem.store.db import Database, Tx, caused, row
from tests.api.conftest import TOKENS, Live, serving, sessions_of
from tests.api.test_real_schema import CAPTURE
from tests.people import deps_on

SEAL = Seal(TOKENS.secret)
_NUMBER_BYTES = {0xC8: 2, 0xC9: 3, 0xCA: 5, 0xCB: 9}
"""Of a number in a bookmark, its mark included; a small one is its own mark."""
MEMORY = "query($id: ID!) { memory(id: $id) { id } }"


@pytest.fixture
async def elsewhere(neo4j_address: Address) -> AsyncIterator[Database]:
    """The pool of another process."""
    at = neo4j_address
    other = Database.connect(at.uri, user=at.user, password=at.password, database="neo4j")
    yield other
    await other.close()


@pytest.fixture
async def sealed(elsewhere: Database) -> AsyncIterator[Live]:
    async with (
        deps_on(elsewhere) as deps,
        serving(Edge(make_schema(), deps, sessions_of(deps), seal=SEAL), deps) as running,
    ):
        yield running


async def one(tx: Tx) -> int:
    found = await row(tx, "RETURN 1 AS one")
    return found["one"] if found else 0


def later(bookmark: str) -> str:
    """The bookmark of a transaction of the same databases that is a long way off: a count of them, each with its id of
    18 bytes and a number, then an empty list.
    """
    made = b64decode(bookmark.removeprefix("FB:"))
    found, at = made[:1], 1
    for _ in range(made[0] & 0x0F):
        found += made[at : at + 18] + b"\xca" + (1 << 30).to_bytes(4)
        at += 18 + _NUMBER_BYTES.get(made[at + 18], 1)
    return "FB:" + b64encode(found + made[at:]).decode()


async def test_a_write_names_its_state_and_a_read_says_nothing(sealed: Live) -> None:
    token = sealed.token(await sealed.member(role=Role.OWNER))
    saved = await sealed.ask(CAPTURE, {"i": {"text": "It is in the cellar."}}, token=token)
    given, id = saved.headers[CAUSAL_TOKEN], saved.json()["data"]["captureMemory"]["memory"]["id"]
    assert SEAL.opened(given)
    read = await sealed.ask(MEMORY, {"id": id}, token=token, x_causal_token=given)
    assert read.json()["data"]["memory"] == {"id": id}
    assert CAUSAL_TOKEN not in read.headers


async def test_a_token_that_was_not_given_here_is_refused(sealed: Live) -> None:
    forged = Seal("another secret, as long as that one").closed(["FB:kcwQ"]) or ""
    refused = await sealed.ask("{ health { state } }", x_causal_token=forged)
    assert (refused.status_code, refused.json()["errors"][0]["extensions"]["code"]) == (400, "BAD_REQUEST")


async def test_a_read_waits_for_what_its_caller_wrote_elsewhere(database: Database, elsewhere: Database) -> None:
    with caused() as here:
        await database.write(one)
    with caused() as there:
        there.seen = frozenset(here.made)
        assert await elsewhere.read(one) == 1
        there.seen = frozenset(map(later, here.made))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(elsewhere.read(one), 0.5)
    assert await elsewhere.read(one) == 1
