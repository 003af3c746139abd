"""Ten groups of hostile or odd requests, through a real socket."""

import asyncio
import json
import re
import time
from typing import Any

import httpx
import pytest
from graphql import get_introspection_query

from graph_mem.core.model import Role
from tests.api.conftest import Live
from tests.api.toy import SECRET_TEXT, until, witness


def code_of(answer: httpx.Response) -> str:
    return answer.json()["errors"][0]["extensions"]["code"]


def fragment_bomb(levels: int, *, end: str = "a") -> str:
    chain = " ".join(f"fragment f{i} on Leaf {{ ...f{i + 1} ...f{i + 1} }}" for i in range(levels))
    return f"{{ leaf {{ ...f0 }} }} {chain} fragment f{levels} on Leaf {{ {end} }}"


# 1. fragments


@pytest.mark.parametrize("levels", [10, 21, 50, 200])
async def test_fragment_bomb_is_refused_at_once(live: Live, levels: int) -> None:
    headers = await live.headers()
    await live.http.post("/graphql", json={"query": "{hello}"}, headers=headers)
    started = time.perf_counter()
    answer = await live.http.post("/graphql", json={"query": fragment_bomb(levels)}, headers=headers)
    assert (answer.status_code, code_of(answer)) == (422, "QUERY_TOO_COMPLEX")
    assert time.perf_counter() - started < 0.5


async def test_bomb_of_fragments_that_end_in_nothing_is_refused(live: Live) -> None:
    answer = await live.ask(fragment_bomb(21, end="...Nope"))
    assert (answer.status_code, code_of(answer)) == (422, "QUERY_TOO_COMPLEX")


async def test_fragments_that_spread_themselves_are_refused(live: Live) -> None:
    answer = await live.ask(fragment_bomb(5, end="...f0"))
    assert (answer.status_code, code_of(answer)) == (422, "GRAPHQL_VALIDATION_FAILED")


# 2. depth


@pytest.mark.parametrize(
    ("depth", "status", "code"),
    [(60, 422, "QUERY_TOO_COMPLEX"), (5000, 400, "GRAPHQL_PARSE_FAILED")],
)
async def test_deep_document_is_refused(live: Live, depth: int, status: int, code: str) -> None:
    answer = await live.ask("{leaf{" + "one{" * depth + "a" + "}" * depth + "}}")
    assert (answer.status_code, code_of(answer)) == (status, code)


# 3. width and cost


@pytest.mark.parametrize(
    "query",
    [
        "{" + " ".join(f"a{i}:hello" for i in range(400)) + "}",
        "{leaf{" + " ".join(f"a{i}:a" for i in range(31)) + "}}",
        "{leaf{" + "a " * 501 + "}}",
        "{hello " + "@include(if:true) " * 60 + "}",
    ],
)
async def test_wide_document_is_refused(live: Live, query: str) -> None:
    answer = await live.ask(query)
    assert (answer.status_code, code_of(answer)) == (422, "QUERY_TOO_COMPLEX")


DEEP_PAGES = "leaf{many(first:$n){many(first:$n){many(first:$n){a}}}}"


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        ("{" + DEEP_PAGES.replace("$n", "100") + "}", None),
        ("query($n:Int){" + DEEP_PAGES + "}", {"n": 100}),
        ("query($n:Int=100){" + DEEP_PAGES + "}", None),
        ("query($i:[ID!]!){leaves(ids:$i){many(first:100){many{a}}}}", {"i": ["x"] * 100}),
    ],
)
async def test_cost_counts_pages_wherever_their_size_comes_from(
    live: Live, query: str, variables: dict[str, Any] | None
) -> None:
    answer = await live.ask(query, variables)
    assert (answer.status_code, code_of(answer)) == (422, "QUERY_TOO_COMPLEX")
    assert "`first`" in answer.json()["errors"][0]["message"]


async def test_the_same_document_with_small_pages_runs(live: Live) -> None:
    answer = await live.ask("query($n:Int=100){" + DEEP_PAGES + "}", {"n": 2})
    assert answer.status_code == 200
    assert answer.json()["extensions"]["cost"]["requested"] < 100


# 4. size


async def test_large_body_is_refused_before_it_is_read(live: Live) -> None:
    body = b'{"query":"{hello}","variables":{"x":"' + b"x" * (20 << 20) + b'"}}'
    answer = await live.http.post("/graphql", content=body, headers=await live.headers())
    assert answer.status_code == 413


async def test_large_body_of_unknown_length_is_refused(live: Live) -> None:
    async def chunks() -> Any:
        for _ in range(20):
            yield b" " * (1 << 20)

    answer = await live.http.post("/graphql", content=chunks(), headers=await live.headers())
    assert answer.status_code == 413


@pytest.mark.parametrize("query", ["{" + "hello " * 200_000 + "}", "{hello} #" + "x" * 1_000_000])
async def test_long_document_is_refused(live: Live, query: str) -> None:
    answer = await live.ask(query)
    assert (answer.status_code, code_of(answer)) == (422, "QUERY_TOO_COMPLEX")


async def test_text_of_two_megabytes_passes(live: Live) -> None:
    text = 'é"\n' * 700_000
    answer = await live.ask("query($n:String!){hello(name:$n)}", {"n": text})
    assert answer.json()["data"]["hello"] == f"hello {text}"


# 5. bytes


@pytest.mark.parametrize(
    "body",
    [
        b'{"query":"{hello(name:\\"\xff\xfe\\")}"}',
        b'{"query":"query($n:String){hello(name:$n)}","variables":{"n":"\\ud800"}}',
        '{"query":"{hello}"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"query":"{hello}"}',
        b"[" * 100_000,
        b'{"query":"{hello}","variables":{"n":' + b"1" * 5000 + b"}}",
        b'{"query":"{hello}","variables":{"n":NaN}}',
        b"",
        b"{",
    ],
)
async def test_body_that_is_not_json_in_utf_8_is_refused(live: Live, body: bytes) -> None:
    answer = await live.http.post("/graphql", content=body, headers=await live.headers())
    assert (answer.status_code, code_of(answer)) == (400, "BAD_REQUEST")


# 6. shapes


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"null", "BAD_REQUEST"),
        (b"1", "BAD_REQUEST"),
        (b'"x"', "BAD_REQUEST"),
        (b"{}", "BAD_REQUEST"),
        (b"[]", "BATCHING_NOT_SUPPORTED"),
        (b'[{"query":"{hello}"},{"query":"{hello}"}]', "BATCHING_NOT_SUPPORTED"),
        (b'{"query":1}', "BAD_REQUEST"),
        (b'{"query":""}', "BAD_REQUEST"),
        (b'{"query":null}', "BAD_REQUEST"),
        (b'{"query":"{hello}","variables":[1]}', "BAD_REQUEST"),
        (b'{"query":"{hello}","variables":"{}"}', "BAD_REQUEST"),
        (b'{"query":"{hello}","operationName":1}', "BAD_REQUEST"),
        (b'{"query":"{hello}","extensions":[]}', "BAD_REQUEST"),
        (b'{"documentId":1}', "BAD_REQUEST"),
    ],
)
async def test_body_of_another_shape_is_refused(live: Live, body: bytes, code: str) -> None:
    answer = await live.http.post("/graphql", content=body, headers=await live.headers())
    assert (answer.status_code, code_of(answer)) == (422, code)


# 7. methods and media types


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "text/html", "*/*"])
async def test_nothing_runs_over_get(live: Live, accept: str) -> None:
    answer = await live.http.get(
        "/graphql", params={"query": "mutation{bump{bumps}}"}, headers=await live.headers(accept=accept)
    )
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert witness.bumps == 0


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "HEAD"])
async def test_other_methods_are_refused(live: Live, method: str) -> None:
    answer = await live.http.request(method, "/graphql", headers=await live.headers())
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "application/json; charset=utf-16",
        "application/graphql",
        "",
    ],
)
async def test_only_json_in_utf_8_is_a_request(live: Live, content_type: str) -> None:
    answer = await live.http.post(
        "/graphql",
        content=b'{"query":"mutation{bump{bumps}}"}',
        headers=await live.headers(content_type=content_type),
    )
    assert (answer.status_code, code_of(answer)) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert witness.bumps == 0


@pytest.mark.parametrize("content_type", ["application/json; charset=UTF-8", 'Application/JSON;charset="utf-8"'])
async def test_spellings_of_json_in_utf_8_are_accepted(live: Live, content_type: str) -> None:
    assert (await live.ask("{hello}", content_type=content_type)).status_code == 200


# 8. duplicates


async def test_of_two_equal_keys_the_last_counts(live: Live) -> None:
    answer = await live.http.post(
        "/graphql", content=b'{"query":"mutation{bump{bumps}}","query":"{hello}"}', headers=await live.headers()
    )
    assert answer.json()["data"] == {"hello": "hello you"}
    assert witness.bumps == 0


@pytest.mark.parametrize("query", ['{hello(name:"a",name:"b")}', '{ask(input:{q:"a",q:"b"})}'])
async def test_duplicate_names_in_a_document_are_refused(live: Live, query: str) -> None:
    answer = await live.ask(query)
    assert answer.status_code in (400, 422)
    assert code_of(answer) in ("GRAPHQL_VALIDATION_FAILED", "GRAPHQL_PARSE_FAILED")


@pytest.mark.parametrize("name", [None, "", "C"])
async def test_no_operation_runs_that_nobody_chose(live: Live, name: str | None) -> None:
    body = {"query": "mutation A{bump{bumps}} query B{hello}", "operationName": name}
    answer = await live.http.post("/graphql", json=body, headers=await live.headers())
    assert (answer.status_code, code_of(answer)) == (422, "OPERATION_RESOLUTION_FAILURE")
    assert witness.bumps == 0


async def test_the_chosen_operation_runs(live: Live) -> None:
    body = {"query": "mutation A{bump{bumps}} query B{hello}", "operationName": "B"}
    answer = await live.http.post("/graphql", json=body, headers=await live.headers())
    assert answer.json()["data"] == {"hello": "hello you"}


async def test_empty_operation_name_is_none(live: Live) -> None:
    body = {"query": "{hello}", "operationName": ""}
    assert (await live.http.post("/graphql", json=body, headers=await live.headers())).status_code == 200


# 9. variables


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        ("query($t:[String!]!){tags(t:$t)}", {"t": ["a", None]}),
        ("query($t:[String!]!){tags(t:$t)}", {}),
        ("query($i:Question!){ask(input:$i)}", {"i": {"q": "a", "n": True}}),
        ("query($i:Question!){ask(input:$i)}", {"i": {"q": "a", "n": 1.5}}),
        ("query($i:Question!){ask(input:$i)}", {"i": {"q": "a", "n": 99_999_999_999}}),
        ("query($i:Question!){ask(input:$i)}", {"i": {"q": "a", "z": 1}}),
        ("query($i:Question!){ask(input:$i)}", {"i": {}}),
        ("query($a:DateTime!){at(at:$a)}", {"a": "2026"}),
        ("query($a:DateTime!){at(at:$a)}", {"a": "2026-01-01T00:00:00"}),
        ('{at(at:"2026-W48")}', None),
        ("query($v:JSON!){echo(value:$v)}", {"v": json.loads("[" * 40 + "]" * 40)}),
    ],
)
async def test_variable_of_the_wrong_type_is_bad_input(
    live: Live, query: str, variables: dict[str, Any] | None
) -> None:
    answer = await live.ask(query, variables)
    assert (answer.status_code, code_of(answer)) == (422, "BAD_USER_INPUT")
    assert "Traceback" not in answer.text
    assert "object at 0x" not in answer.text


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        ("query($i:Question!){ask(input:$i)}", {"i": None}),
        ("query($i:Question!){ask(input:$i)}", {"i": {"q": None, "n": True}}),
        ("query($i:Question!){ask(input:$i)}", {"i": True}),
        ("query($n:Int!){leaf{many(first:$n){a}}}", {"n": False}),
        ("query($n:[String!]!){tags(t:$n)}", {"n": [None]}),
        ("query($n:Int){leaf{many(first:$n){a}}}", {"n": None}),
        ("query($a:DateTime!){at(at:$a)}", {"a": 7}),
        ("query($a:DateTime!){at(at:$a)}", {"a": True}),
        ("{ask(input:null)}", None),
        ("{at(at:null)}", None),
        ("{at(at:7)}", None),
        ("{hello(name:null)}", None),
        ("{leaf{many(first:null){a}}}", None),
        ("{ask(input:{q:true})}", None),
    ],
)
async def test_what_was_found_is_told_in_the_words_of_json(
    live: Live, query: str, variables: dict[str, Any] | None
) -> None:
    for error in (await live.ask(query, variables)).json()["errors"]:
        assert not re.search(r"\b(None|True|False|int|float|str|bool|list|dict|NoneType)\b", error["message"])


async def test_unknown_extra_variable_is_ignored(live: Live) -> None:
    assert (await live.ask("{hello}", {"zzz": 1})).json()["data"] == {"hello": "hello you"}


@pytest.mark.parametrize("first", [-5, 0, 101, 2_000_000_000])
async def test_page_size_out_of_range_is_bad_input(live: Live, first: int) -> None:
    answer = await live.ask("query($n:Int!){leaf{many(first:$n){a}}}", {"n": first})
    error = answer.json()["errors"][0]
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "path": ["first"]}


# 10. introspection, streams, disconnects (sockets: test_ws.py)


async def test_introspection_is_for_members(live: Live) -> None:
    answer = await live.ask(get_introspection_query())
    assert answer.json()["data"]["__schema"]["queryType"]["name"] == "Query"
    anonymous = await live.http.post(
        "/graphql",
        json={"query": get_introspection_query()},
        headers={"accept": "application/graphql-response+json"},
    )
    assert (anonymous.status_code, code_of(anonymous)) == (401, "UNAUTHENTICATED")


async def test_introspection_in_circles_is_refused(live: Live) -> None:
    nested = "{__schema{types{" + "fields{type{" * 4 + "name" + "}}" * 4 + "}}}"
    answer = await live.ask(nested)
    assert answer.status_code == 422


async def test_query_ends_with_its_client(live: Live) -> None:
    headers = await live.headers()
    asking = asyncio.create_task(live.http.post("/graphql", json={"query": "{slow(seconds:0.9)}"}, headers=headers))
    await until(lambda: witness.lingering == 1)
    asking.cancel()
    await until(lambda: witness.cancelled == 1)
    assert witness.finished == 0


async def test_mutation_outlives_its_client(live: Live) -> None:
    headers = await live.headers()
    body = {"query": "mutation{slowBump(seconds:0.4)}"}
    asking = asyncio.create_task(live.http.post("/graphql", json=body, headers=headers))
    await until(lambda: witness.lingering == 1)
    asking.cancel()
    await until(lambda: witness.bumps == 1)
    assert witness.cancelled == 0


async def test_query_out_of_time_is_cancelled(live: Live) -> None:
    answer = await live.ask("{slow(seconds:5)}")
    assert (answer.status_code, code_of(answer)) == (504, "TIMEOUT")
    await until(lambda: witness.cancelled == 1)


async def test_mutation_out_of_time_says_that_it_may_still_take_effect(live: Live) -> None:
    answer = await live.ask("mutation{slowBump(seconds:1.2)}")
    assert (answer.status_code, code_of(answer)) == (504, "TIMEOUT")
    assert "may still take effect" in answer.json()["errors"][0]["message"]
    await until(lambda: witness.bumps == 1)


async def test_other_requests_are_served_during_a_bomb(live: Live) -> None:
    headers = await live.headers()
    bombs = [live.http.post("/graphql", json={"query": fragment_bomb(50)}, headers=headers) for _ in range(20)]
    answers = await asyncio.gather(*bombs, live.http.post("/graphql", json={"query": "{hello}"}, headers=headers))
    assert answers[-1].json()["data"] == {"hello": "hello you"}


# What an answer may tell


@pytest.mark.parametrize(("query", "status"), [("{boom}", 200), ("{boomAtRoot}", 200), ("{wrongType}", 200)])
async def test_message_of_an_unexpected_error_stays_inside(
    live: Live, query: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await live.ask(query)
    error = answer.json()["errors"][0]
    assert answer.status_code == status
    assert error["extensions"] == {"code": "INTERNAL_SERVER_ERROR", "ref": answer.headers["x-request-id"]}
    assert SECRET_TEXT not in answer.text
    logged = [record for record in caplog.records if getattr(record, "ref", "") == answer.headers["x-request-id"]]
    assert any(record.levelname == "ERROR" for record in logged)
    assert not any(SECRET_TEXT in str(vars(record)) for record in logged)


async def test_expected_error_of_a_query_has_its_code(live: Live) -> None:
    answer = await live.ask("{missing}")
    assert answer.status_code == 200
    assert answer.json()["data"] == {"missing": None}
    assert code_of(answer) == "NOT_FOUND"


async def test_expected_error_of_a_mutation_is_in_its_payload(live: Live) -> None:
    answer = await live.ask(
        "mutation{bump(to:-1){bumps errors{__typename code message ...on Conflict{currentVersion}}}}"
    )
    assert answer.json()["data"]["bump"] == {
        "bumps": None,
        "errors": [{"__typename": "Conflict", "code": "CONFLICT", "message": "Stale.", "currentVersion": 0}],
    }


async def test_role_comes_from_the_graph(live: Live) -> None:
    who = await live.member(role=Role.PROJECT_MANAGER)
    assert (await live.ask("{role}", token=live.token(who))).json()["data"] == {"role": "PROJECT_MANAGER"}
