"""SPEC 4 through GraphQL: one active fact per slot, two clocks, the gate, rejections."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from graph_mem.core.model import Role
from tests.acceptance.service import Client, Service

SAVE = """mutation($i: SaveFactInput!) { saveFact(input: $i) {
  fact { id standing statement validFrom validTo } outcome revoked { id standing revokedAt } replayed
  errors { code message path } } }"""
RETRACT = """mutation($i: RetractFactInput!) { retractFact(input: $i) {
  fact { id standing validTo } outcome revoked { id } errors { code message } } }"""
FACTS = """query($s: String, $r: String, $standing: [Standing!], $asOf: DateTime, $knownAt: DateTime) {
  facts(subject: $s, relation: $r, standing: $standing, asOf: $asOf, knownAt: $knownAt, first: 100) {
    totalCount nodes { id statement standing } } }"""
FACT = """query($id: ID!) { fact(id: $id) { id standing statement subject relation confidence private version createdAt
  validFrom validTo revokedAt scope { level } supersedes { id } supersededBy { id } entity { name }
  sources { nodes { id } } strength { value } recall { count } } }"""
CHAIN = """query($id: ID!) { supersessionChain(id: $id) { records { id standing } heads { id }
  links { relation { id kind state by at retires } older { id } newer { id } } } }"""
HISTORY = "query($id: ID!) { history(id: $id) { nodes { kind version by detail } pageInfo { hasNextPage } } }"
SEARCH = """query($t: String!, $n: Int = 10, $asOf: DateTime) { search(input: {text: $t, asOf: $asOf}, first: $n) {
  passedOver hits { tier node { id ... on Fact { statement } ... on Memory { text } } } } }"""


async def say(who: Client, statement: str, **input: Any) -> dict[str, Any]:
    return await who.must(SAVE, i={"subject": "Ana", "relation": "job", "statement": statement, **input})


async def listed(who: Client, **filter: Any) -> list[str]:
    return [node["statement"] for node in (await who.must(FACTS, **filter))["nodes"]]


async def hits(who: Client, words: str, **more: Any) -> list[str]:
    page = await who.must(SEARCH, t=words, **more)
    return [hit["node"].get("statement") or hit["node"]["text"] for hit in page["hits"]]


async def test_32_writers_leave_one_fact_and_a_linear_chain(service: Service) -> None:
    await asyncio.gather(*(say(service.owner, f"Ana has job number {n}.") for n in range(32)))
    (active,) = (await service.owner.must(FACTS, s="ana", r="JOB"))["nodes"]
    chain = await service.owner.must(CHAIN, id=active["id"])
    ids = [record["id"] for record in chain["records"]]
    assert len(ids) == 32
    assert [(link["older"]["id"], link["newer"]["id"]) for link in chain["links"]] == list(pairwise(ids))
    assert [head["id"] for head in chain["heads"]] == [active["id"]]
    times = [link["relation"]["at"] for link in chain["links"]]
    assert times == sorted(times)


async def test_works_at_a_then_b_gives_b_now_and_a_last_month(service: Service) -> None:
    a = await say(service.owner, "Ana works at Aurora.", validFrom="2025-01-01T00:00:00Z")
    b = await say(service.owner, "Ana works at Borealis.", validFrom="2026-11-01T00:00:00Z")
    assert (a["outcome"], b["outcome"], b["revoked"]["id"]) == ("CREATED", "SUPERSEDED", a["fact"]["id"])
    await service.settled()
    assert await hits(service.owner, "where does Ana work") == ["Ana works at Borealis."]
    assert await listed(service.owner) == ["Ana works at Borealis."]
    for month in ("2026-10-15T12:00:00Z", "2026-10-15T21:00:00+09:00"):
        assert await listed(service.owner, asOf=month) == ["Ana works at Aurora."]
        assert await hits(service.owner, "where does Ana work", asOf=month) == ["Ana works at Aurora."]
    old = await service.owner.must(FACT, id=a["fact"]["id"])
    assert (old["standing"], old["supersededBy"]["id"]) == ("SUPERSEDED", b["fact"]["id"])
    assert old["validTo"] == b["fact"]["validFrom"]
    new = await service.owner.must(FACT, id=b["fact"]["id"])
    assert (new["supersedes"]["id"], new["validTo"], new["version"]) == (a["fact"]["id"], None, 1)


async def test_a_fact_superseded_60_times_is_found_by_its_present_value_only(service: Service) -> None:
    for n in range(61):
        await say(service.owner, f"Ana lives in street number {n}.", relation="address")
    for n in range(4):
        await say(service.owner, f"Ana lives with pet number {n}.", relation=f"pet {n}")
    await service.settled()
    page = await service.owner.must(SEARCH, t="Ana lives in street number", n=5)
    found = [hit["node"]["statement"] for hit in page["hits"]]
    assert found[0] == "Ana lives in street number 60."
    assert len(found) == 5
    assert all("pet" in statement for statement in found[1:])
    assert page["passedOver"] == 60


async def test_the_outcome_says_what_happened(service: Service) -> None:
    agent = await service.member("bot", Role.AGENT)
    first = await say(service.owner, "Ana is CTO.")
    assert (await say(service.owner, "ana is  CTO. "))["outcome"] == "DEDUPLICATED"
    assert (await say(agent, "Ana is CEO."))["outcome"] == "PROVISIONAL"
    assert await listed(service.owner) == ["Ana is CTO."]
    gone = await service.owner.must(RETRACT, i={"id": first["fact"]["id"], "reason": "never was", "reject": True})
    assert (gone["fact"]["standing"], gone["outcome"]) == ("REJECTED", None)
    again = await say(agent, "Аna is CTO")
    assert (again["outcome"], again["fact"]["id"]) == ("REJECTED_BEFORE", first["fact"]["id"])
    by_hand = await say(service.owner, "Ana is CTO.")
    assert by_hand["outcome"] == "CREATED"
    (event,) = (await service.owner.must(HISTORY, id=by_hand["fact"]["id"]))["nodes"]
    assert event["detail"]["liftsRejection"] is True


async def test_a_provisional_fact_is_neither_found_nor_in_the_chain(service: Service) -> None:
    member = await service.member("mia")
    active = await say(service.owner, "Ana earns one hundred.")
    claim = await say(member, "Ana earns two hundred.")
    await service.settled()
    assert claim["fact"]["standing"] == "PROVISIONAL"
    for who in (member, service.owner):
        assert await hits(who, "what Ana earns") == ["Ana earns one hundred."]
        assert len((await who.must(CHAIN, id=active["fact"]["id"]))["records"]) == 1
        assert await listed(who, standing=["PROVISIONAL"]) == ["Ana earns two hundred."]


async def test_every_role_lands_where_the_table_says(service: Service) -> None:
    await service.member("x", client="acme", deal="crm")
    people = {
        Role.SOLUTIONS_ENGINEER: await service.member("s", Role.SOLUTIONS_ENGINEER, client="acme", deal="crm"),
        Role.PROJECT_MANAGER: await service.member("p", Role.PROJECT_MANAGER, client="acme"),
        Role.MEMBER: await service.member("m", client="acme", deal="crm"),
    }
    deal = "{ viewer { assignments { level clientId dealId } } }"
    found = (await people[Role.SOLUTIONS_ENGINEER].must(deal))["assignments"]
    scope = next({"dealId": one["dealId"]} for one in found if one["dealId"])
    landed = {
        role: ((await say(who, "Ana.", scope=scope))["fact"]["standing"], (await say(who, "B."))["fact"]["standing"])
        for role, who in reversed(people.items())
    }
    assert landed == {
        Role.MEMBER: ("PROVISIONAL", "PROVISIONAL"),
        Role.PROJECT_MANAGER: ("CURRENT", "PROVISIONAL"),
        Role.SOLUTIONS_ENGINEER: ("CURRENT", "PROVISIONAL"),
    }


async def test_private_facts_of_two_users_never_meet(service: Service) -> None:
    alice, bob = await service.member("alice"), await service.member("bob")
    theirs = {
        who: await say(client, f"Ana told {who}.", private=True) for who, client in (("alice", alice), ("bob", bob))
    }
    await service.settled()
    assert await hits(alice, "what Ana told") == ["Ana told alice."]
    assert await hits(bob, "what Ana told") == ["Ana told bob."]
    assert await hits(service.owner, "what Ana told") == []
    for query in (FACT, CHAIN, HISTORY):
        unknown = (await bob.ask(query, id="fact_01ARZ3NDEKTSV4RRFFQ69G5FAV"))["data"]
        assert (await bob.ask(query, id=theirs["alice"]["fact"]["id"]))["data"] == unknown
    assert await bob.refused(RETRACT, i={"id": theirs["alice"]["fact"]["id"], "reason": "x"}) == "NOT_FOUND"


@pytest.mark.parametrize(
    "input",
    [
        {"statement": ""},
        {"subject": "x" * 40_000},
        {"relation": "ü" * 20_000},
        {"confidence": -1},
        {"sourceIds": ["mem_01ARZ3NDEKTSV4RRFFQ69G5FAV"]},
        {"scope": {"dealId": "deal_01ARZ3NDEKTSV4RRFFQ69G5FAV"}},
        {"validFrom": "2026-01-02T00:00:00Z", "validTo": "2026-01-01T00:00:00Z"},
        {"validFrom": "2026-01-02T00:00:00"},
        {"idempotencyKey": "k" * 129},
    ],
    ids="-".join,
)
async def test_a_bad_fact_is_a_typed_error_and_stores_nothing(service: Service, input: dict[str, Any]) -> None:
    given = {"subject": "Ana", "relation": "job", "statement": "Ana is CTO.", **input}
    assert await service.owner.refused(SAVE, i=given) in ("BAD_USER_INPUT", "NOT_FOUND")
    assert await listed(service.owner) == []


async def test_an_idempotent_repetition_is_marked_and_does_nothing(service: Service) -> None:
    first = await say(service.owner, "Ana is CTO.", idempotencyKey="k")
    await say(service.owner, "Ana is CEO.")
    again = await say(service.owner, "Ana is CTO.", idempotencyKey="k")
    assert (again["replayed"], again["outcome"], again["fact"]["id"]) == (True, "CREATED", first["fact"]["id"])
    assert await listed(service.owner) == ["Ana is CEO."]
    given = {"subject": "Ana", "relation": "job", "statement": "Ana is CFO.", "idempotencyKey": "k"}
    assert await service.owner.refused(SAVE, i=given) == "IDEMPOTENCY_KEY_REUSED"


async def test_facts_are_paged_without_gap_or_repetition(service: Service) -> None:
    for n in range(7):
        await say(service.owner, f"Fact {n}.", relation=f"r{n}")
    query = """query($a: String) { facts(first: 3, after: $a) {
      totalCount nodes { statement } pageInfo { hasNextPage endCursor } } }"""
    seen: list[str] = []
    after = None
    while True:
        page = await service.owner.must(query, a=after)
        seen += [node["statement"] for node in page["nodes"]]
        assert page["totalCount"] == 7
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = page["pageInfo"]["endCursor"]
    assert seen == [f"Fact {n}." for n in reversed(range(7))]


async def test_a_fact_names_its_sources_and_a_memory_its_facts(service: Service) -> None:
    source = await service.owner.capture("Ana said that she is CTO now.")
    saved = await say(service.owner, "Ana is CTO.", sourceIds=[source])
    found = await service.owner.must(FACT, id=saved["fact"]["id"])
    assert found["sources"]["nodes"] == [{"id": source}]
    memory = await service.owner.must("query($id: ID!) { memory(id: $id) { facts { nodes { id } } } }", id=source)
    assert memory["facts"]["nodes"] == [{"id": saved["fact"]["id"]}]
