"""GraphQL over HTTP: statuses, media types, tokens, trusted documents, server-sent events."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import orjson
import pytest

from graph_mem.api.brake import Brake
from graph_mem.api.documents import digest
from graph_mem.api.limits import Budget, RateLimiter
from graph_mem.api.request import GRAPHQL, JSON, Refused, negotiate
from graph_mem.core.people import DocumentPolicy
from graph_mem.services import admin
from tests.api.conftest import ORIGIN, TRUSTED, Live
from tests.api.toy import until, witness


def code_of(answer: httpx.Response) -> str:
    return answer.json()["errors"][0]["extensions"]["code"]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (None, JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (JSON, JSON),
        (GRAPHQL, GRAPHQL),
        (f"{JSON}, {GRAPHQL}", GRAPHQL),
        (f"{JSON}, {GRAPHQL};q=0.5", JSON),
        (f"{GRAPHQL};q=0, */*", JSON),
        (f"text/html, {GRAPHQL.upper()}; charset=utf-8", GRAPHQL),
        ("application/json, multipart/mixed", JSON),
    ],
)
def test_answer_is_in_the_media_type_the_client_prefers(accept: str | None, media: str) -> None:
    assert negotiate(accept) == media


@pytest.mark.parametrize("accept", ["text/html", "application/xml", f"{JSON};q=0", f"{JSON};q=x"])
def test_client_that_accepts_nothing_of_ours_is_told_so(accept: str) -> None:
    with pytest.raises(Refused) as refused:
        negotiate(accept)
    assert refused.value.status == 406


@pytest.mark.parametrize(
    ("query", "new_media", "old_media"),
    [
        ("{hello}", 200, 200),
        ("{hello", 400, 200),
        ("{nope}", 422, 200),
        ("query($a:DateTime!){at(at:$a)}", 422, 200),
        ("{missing}", 200, 200),
        ("subscription{count(to:1)}", 422, 200),
        ("{slow(seconds:9)}", 504, 504),
    ],
)
async def test_status_depends_on_the_media_type(live: Live, query: str, new_media: int, old_media: int) -> None:
    new, old = await asyncio.gather(live.ask(query), live.ask(query, accept="application/json"))
    assert (new.status_code, old.status_code) == (new_media, old_media)
    assert new.headers["content-type"] == f"{GRAPHQL}; charset=utf-8"
    assert old.headers["content-type"] == f"{JSON}; charset=utf-8"


async def test_data_is_absent_where_nothing_ran_and_null_where_something_did(live: Live) -> None:
    assert "data" not in (await live.ask("{nope}")).json()
    assert (await live.ask("{boomAtRoot}")).json()["data"] is None


# Tokens


@pytest.mark.parametrize("authorization", ["Basic eDp5", "Bearer", "x", "Bearer gm_unknown", "Bearer a.b.c"])
@pytest.mark.parametrize("query", ["{hello}", "{health}"])
async def test_credential_that_is_none_of_ours_is_refused(live: Live, authorization: str, query: str) -> None:
    answer = await live.ask(query, authorization=authorization)
    assert (answer.status_code, code_of(answer)) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_without_a_token_health_is_all_there_is(live: Live) -> None:
    for query, status in [("{health}", 200), ("{health __typename}", 200), ("{health hello}", 401), ("{h:hello}", 401)]:
        answer = await live.http.post("/graphql", json={"query": query}, headers={"accept": GRAPHQL})
        assert answer.status_code == status, query


async def test_fragments_do_not_widen_what_is_public(live: Live) -> None:
    query = "{...F} fragment F on Query {health hello}"
    answer = await live.http.post("/graphql", json={"query": query}, headers={"accept": GRAPHQL})
    assert answer.status_code == 401


async def test_expired_token_is_refused(live: Live) -> None:
    token = live.token(await live.member(), lifetime=timedelta(seconds=-60))
    assert (await live.ask("{hello}", token=token)).status_code == 401


async def test_removed_user_is_a_stranger_within_seconds(live: Live) -> None:
    who = await live.member()
    token = live.token(who)
    await admin.create_key(live.desk, organization=who.org_id, user=who.user_id, name="other")
    other = await admin.ensure_principal(
        live.desk, organization=await _name_of(live, who.org_id), user=f"owner of {who.org_id}", role=who.role.OWNER
    )
    assert other.org_id == who.org_id
    assert (await live.ask("{me}", token=token)).status_code == 200
    await admin.remove_member(live.desk, organization=who.org_id, user=who.user_id)
    await asyncio.sleep(0.3)
    assert (await live.ask("{me}", token=token)).status_code == 401


async def test_revoked_key_opens_nothing(live: Live) -> None:
    who = await live.member()
    made = await admin.create_key(live.desk, organization=who.org_id, user=who.user_id, name="ci")
    assert (await live.ask("{me}", token=made.secret)).json()["data"] == {"me": who.user_id}
    await admin.revoke_key(live.desk, organization=who.org_id, key_id=made.key.id)
    await asyncio.sleep(0.3)
    assert (await live.ask("{me}", token=made.secret)).status_code == 401


async def test_use_of_a_key_is_noted(live: Live) -> None:
    who = await live.member()
    made = await admin.create_key(live.desk, organization=who.org_id, user=who.user_id, name="ci")
    await live.ask("{me}", token=made.secret)
    (listed,) = await admin.list_keys(live.desk, organization=who.org_id)
    assert listed.last_used_at is not None


# Budgets


async def test_caller_over_budget_is_told_when_to_come_back(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.edge, "limiter", RateLimiter(Budget(burst=100, per_second=10)))
    spender, other = live.token(await live.member()), live.token(await live.member())
    expensive = "{leaf{many(first:90){a}}}"
    assert (await live.ask(expensive, token=spender)).status_code == 200
    refused = await live.ask(expensive, token=spender)
    assert (refused.status_code, code_of(refused)) == (429, "RATE_LIMITED")
    assert int(refused.headers["retry-after"]) >= 1
    assert (await live.ask(expensive, token=other)).status_code == 200
    assert (await live.ask(expensive, token=spender, accept="application/json")).status_code == 429


async def test_new_document_pays_for_its_validation(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.edge, "limiter", RateLimiter(Budget(burst=100, per_second=0.001)))
    token = live.token(await live.member())
    statuses = [
        (await live.ask("{hello(name:" + f'"{number}{"x" * 600}"' + ")}", token=token)).status_code
        for number in range(4)
    ]
    assert statuses == [200, 200, 429, 429]


async def test_address_that_guesses_is_soon_not_looked_at_but_who_is_known_goes_on(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.edge, "brake", Brake(Budget(burst=3, per_second=0.01)))
    known, new = live.token(await live.member()), live.token(await live.member())
    for _ in range(5):
        assert (await live.ask("{hello}", token=known)).status_code == 200
    guesses = await asyncio.gather(*(live.ask("{hello}", token=f"gm_{number:043}") for number in range(8)))
    assert sorted(guess.status_code for guess in guesses) == [401] * 3 + [429] * 5
    refused = await live.ask("{hello}", token=new)
    assert (refused.status_code, code_of(refused)) == (429, "RATE_LIMITED")
    assert int(refused.headers["retry-after"]) >= 1
    assert (await live.ask("{hello}", token=known)).status_code == 200


# Trusted documents


@pytest.mark.parametrize(
    "body",
    [
        {"documentId": f"sha256:{digest(TRUSTED)}"},
        {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": digest(TRUSTED)}}},
        {"query": TRUSTED},
        {"query": TRUSTED, "documentId": f"sha256:{digest(TRUSTED)}"},
    ],
)
async def test_key_for_the_manifest_runs_its_documents(live: Live, body: dict[str, Any]) -> None:
    who = await live.member()
    made = await admin.create_key(
        live.desk, organization=who.org_id, user=who.user_id, name="web", documents=DocumentPolicy.MANIFEST
    )
    answer = await live.http.post("/graphql", json=body, headers=await live.headers(token=made.secret))
    assert answer.json()["data"] == {"hello": "hello you"}


async def test_key_for_the_manifest_runs_nothing_else(live: Live) -> None:
    who = await live.member()
    made = await admin.create_key(
        live.desk, organization=who.org_id, user=who.user_id, name="web", documents=DocumentPolicy.MANIFEST
    )
    answer = await live.ask("query Trusted { hello } ", token=made.secret)
    assert (answer.status_code, code_of(answer)) == (403, "FORBIDDEN")


async def test_unknown_document_is_not_found(live: Live) -> None:
    body = {"documentId": "sha256:" + "0" * 64}
    answer = await live.http.post("/graphql", json=body, headers=await live.headers())
    assert (answer.status_code, code_of(answer)) == (422, "PERSISTED_QUERY_NOT_FOUND")
    assert "documentId" in answer.json()["errors"][0]["message"]
    body = {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}}
    answer = await live.http.post("/graphql", json=body, headers=await live.headers())
    assert (answer.status_code, code_of(answer)) == (422, "PERSISTED_QUERY_NOT_FOUND")
    assert answer.json()["errors"][0]["message"] == "PersistedQueryNotFound"


async def test_document_that_does_not_have_its_hash_is_refused(live: Live) -> None:
    body = {"query": "{hello}", "documentId": f"sha256:{digest(TRUSTED)}"}
    answer = await live.http.post("/graphql", json=body, headers=await live.headers())
    assert (answer.status_code, code_of(answer)) == (422, "BAD_REQUEST")


async def test_key_without_introspection_learns_no_names(live: Live) -> None:
    who = await live.member()
    made = await admin.create_key(live.desk, organization=who.org_id, user=who.user_id, name="web", introspection=False)
    answer = await live.ask("{__schema{queryType{name}}}", token=made.secret)
    assert (answer.status_code, code_of(answer)) == (422, "INTROSPECTION_DISABLED")
    typo = await live.ask("{helo}", token=made.secret)
    assert "Did you mean" not in typo.text
    assert "Did you mean" in (await live.ask("{helo}")).text


# Server-sent events


async def events_of(live: Live, query: str, **changed: str) -> list[tuple[str, Any]]:
    """The events of one operation, until the stream ends."""
    headers = await live.headers(accept="text/event-stream", **changed)
    answer = await live.http.post("/graphql", json={"query": query}, headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    found: list[tuple[str, Any]] = []
    for block in answer.text.split("\n\n"):
        lines = dict(line.partition(":")[::2] for line in block.splitlines() if not line.startswith(":"))
        if "event" in lines:
            data = lines["data"].strip()
            found.append((lines["event"].strip(), orjson.loads(data) if data else None))
    return found


async def test_subscription_over_sse_ends_with_complete(live: Live) -> None:
    events = await events_of(live, "subscription{count(to:3)}")
    assert [event for event, _ in events] == ["next", "next", "next", "complete"]
    assert [data["data"]["count"] for _, data in events[:3]] == [1, 2, 3]


async def test_query_over_sse_is_one_event(live: Live) -> None:
    assert (await events_of(live, "{hello}"))[0][1]["data"] == {"hello": "hello you"}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{hello", "GRAPHQL_PARSE_FAILED"),
        ("{nope}", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription A{count(to:1)} query B{hello}", "OPERATION_RESOLUTION_FAILURE"),
        ("subscription{breaks}", "INTERNAL_SERVER_ERROR"),
        ("{slow(seconds:9)}", "TIMEOUT"),
    ],
)
async def test_failure_over_sse_is_an_event_then_complete(live: Live, query: str, code: str) -> None:
    events = await events_of(live, query)
    assert [event for event, _ in events][-2:] == ["next", "complete"]
    assert events[-2][1]["errors"][0]["extensions"]["code"] == code
    assert "acquisition" not in str(events)


async def test_stream_ends_when_its_user_is_removed(live: Live) -> None:
    who = await live.member()
    token = live.token(who)
    watching = asyncio.create_task(events_of(live, "subscription{silence}", token=token))
    await until(lambda: witness.lingering == 1)
    owner = f"owner of {who.org_id}"
    await admin.save_member(live.desk, organization=who.org_id, user=owner, role=who.role.OWNER)
    await admin.remove_member(live.desk, organization=who.org_id, user=who.user_id)
    events = await asyncio.wait_for(watching, 10)
    assert [event for event, _ in events] == ["next", "complete"]
    assert events[0][1]["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
    assert witness.cancelled == 1


async def test_stream_ends_when_its_token_expires(live: Live) -> None:
    token = live.token(await live.member(), lifetime=timedelta(seconds=1))
    events = await asyncio.wait_for(events_of(live, "subscription{silence}", token=token), 5)
    assert events[0][1]["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


async def test_silent_stream_is_kept_alive(live: Live) -> None:
    headers = await live.headers(accept="text/event-stream")
    body = {"query": "subscription{silence}"}
    async with live.http.stream("POST", "/graphql", json=body, headers=headers) as answer:
        assert await anext(answer.aiter_bytes()) == b":\n\n"
    await until(lambda: witness.cancelled == 1)


async def test_subscription_ends_with_its_client(live: Live) -> None:
    headers = await live.headers(accept="text/event-stream")
    body = {"query": "subscription{silence}"}
    async with live.http.stream("POST", "/graphql", json=body, headers=headers) as answer:
        await anext(answer.aiter_bytes())
    await until(lambda: witness.cancelled == 1)


# Headers


async def test_every_answer_is_hardened(live: Live) -> None:
    for answer in (await live.ask("{hello}"), await live.http.get("/graphql"), await live.http.get("/nowhere")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert (await live.ask("{hello}")).headers["cache-control"] == "no-store"
    assert "server" not in (await live.ask("{hello}")).headers


async def test_pages_of_a_chosen_origin_may_call_and_no_others(live: Live) -> None:
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    friend = await live.http.options("/graphql", headers={"origin": ORIGIN} | asking)
    assert (friend.status_code, friend.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert "access-control-allow-credentials" not in friend.headers
    stranger = await live.http.options("/graphql", headers={"origin": "https://evil.example"} | asking)
    assert stranger.status_code == 400
    assert "access-control-allow-origin" not in stranger.headers


async def _name_of(live: Live, org_id: str) -> str:
    return next(one.name for one in await admin.list_organizations(live.desk) if one.id == org_id)
