"""The edge in front of the schema that the service answers with."""

from typing import Any

import pytest
from ulid import ULID

from graph_mem.core.model import Role
from graph_mem.services import new_id
from tests.api.conftest import Live

CAPTURE = """
mutation($i: CaptureMemoryInput!) { captureMemory(input: $i) { memory { id } errors { code message } } }
"""
FACT = "mutation($i: SaveFactInput!) { saveFact(input: $i) { fact { id } errors { code message } } }"


async def answer(live: Live, token: str, query: str, **variables: Any) -> dict[str, Any]:
    response = await live.ask(query, variables, token=token)
    body = response.json()
    body.pop("extensions", None)
    return body


async def somebody(live: Live) -> str:
    """The token of an owner of a fresh organization."""
    return live.token(await live.member(role=Role.OWNER))


async def capture(live: Live, token: str) -> str:
    found = await answer(live, token, CAPTURE, i={"text": f"We chose Postgres. {ULID()}"})
    return found["data"]["captureMemory"]["memory"]["id"]


async def fact(live: Live, token: str) -> str:
    given = {"subject": "the launch", "relation": "happens on", "statement": f"The launch is on Monday. {ULID()}"}
    return (await answer(live, token, FACT, i=given))["data"]["saveFact"]["fact"]["id"]


ASKED = """query($id: ID!) {
  node(id: $id) { id } nodes(ids: [$id]) { id } memory(id: $id) { id } fact(id: $id) { id } entity(id: $id) { id }
  trace(id: $id) { id } supersessionChain(id: $id) { records { id } } history(id: $id) { nodes { id } }
}"""
CHANGED = """mutation($id: ID!) {
  retractFact(input: {id: $id, reason: "x"}) { errors { code message } }
  retryProcessing(id: $id) { errors { code message } }
  setEvergreen(input: {id: $id, evergreen: true}) { errors { code message } }
  archive(input: {id: $id}) { errors { code message } }
  erase(input: {id: $id, confirmId: $id, reason: "x"}) { errors { code message } }
}"""


async def test_id_of_another_organization_answers_as_an_id_that_does_not_exist(real: Live) -> None:
    """Through the socket; for every field, place and role see tests/guards/test_isolation.py."""
    ours, theirs = await somebody(real), await somebody(real)
    for id in (await capture(real, theirs), await fact(real, theirs)):
        unknown = new_id(id.partition("_")[0])
        for document in (ASKED, CHANGED):
            foreign = await answer(real, ours, document, id=id)
            absent = await answer(real, ours, document, id=unknown)
            assert str(foreign).replace(id, "ID") == str(absent).replace(unknown, "ID")
        control = await answer(real, theirs, "query($id: ID!) { node(id: $id) { id } }", id=id)
        assert control["data"] == {"node": {"id": id}}


@pytest.mark.parametrize(
    "id", ["", "x", "mem_", "mem_" + "0" * 26, "mem_" + "é" * 26, "x" * 5000, "org_1' OR 1=1", "\u0000"]
)
async def test_text_that_is_no_id_is_an_unknown_one(real: Live, id: str) -> None:
    token = await somebody(real)
    found = await answer(real, token, "query($id: ID!) { node(id: $id) { id } memory(id: $id) { id } }", id=id)
    assert found["data"] == {"node": None, "memory": None}


@pytest.mark.parametrize("cursor", ["", "zzz", "####", "e30", "WzEsMl0", "é", "x" * 5000])
async def test_cursor_that_is_none_of_ours_is_bad_input(real: Live, cursor: str) -> None:
    token = await somebody(real)
    found = await answer(real, token, "query($c: String!) { memories(after: $c) { nodes { id } } }", c=cursor)
    assert found["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_cursor_of_one_list_does_not_open_another(real: Live) -> None:
    token = await somebody(real)
    for _ in range(2):
        await capture(real, token)
    page = await answer(real, token, "{ memories(first: 1) { pageInfo { endCursor } } }")
    cursor = page["data"]["memories"]["pageInfo"]["endCursor"]
    assert cursor
    found = await answer(real, token, "query($c: String!) { facts(after: $c) { nodes { id } } }", c=cursor)
    assert found["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


@pytest.mark.parametrize("first", [0, -1, 101, 2**31 - 1])
async def test_page_is_of_one_to_a_hundred(real: Live, first: int) -> None:
    token = await somebody(real)
    for query in ("memories(first: $n) { nodes { id } }", 'search(input: {text: "x"}, first: $n) { mode }'):
        found = await answer(real, token, f"query($n: Int!) {{ {query} }}", n=first)
        assert found["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_cost_stops_what_depth_would_allow(real: Live) -> None:
    token = await somebody(real)
    nested = "entities(first:100){nodes{entity{memories(first:100){nodes{entities(first:100){nodes{role}}}}}}}"
    response = await real.ask(f"{{ memories(first: 100) {{ nodes {{ {nested} }} }} }}", token=token)
    assert response.status_code == 422
    assert response.json()["errors"][0]["extensions"]["code"] == "QUERY_TOO_COMPLEX"


async def test_usual_introspection_of_tools_passes(real: Live) -> None:
    from graphql import get_introspection_query  # noqa: PLC0415 # only here

    token = await somebody(real)
    query = get_introspection_query(
        specified_by_url=True, directive_is_repeatable=True, schema_description=True, input_value_deprecation=True
    )
    found = await answer(real, token, query)
    assert "errors" not in found
