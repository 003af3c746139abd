"""Faults that users of such systems reported, each with the sibling that must still be found."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from graph_mem.core.retrieval import Query
from graph_mem.services import health, recall, upkeep
from tests.acceptance.service import Client, Service
from tests.guards.opened import Seen

SEARCH = """query($i: SearchInput!, $n: Int = 10) { search(input: $i, first: $n) {
  mode passedOver hits { node { id } } } }"""
CAPTURE = "mutation($i: CaptureMemoryInput!) { captureMemory(input: $i) { memory { id } errors { code message } } }"
FACT = "mutation($i: SaveFactInput!) { saveFact(input: $i) { fact { id validFrom validTo } errors { code message } } }"
FACTS = "query($at: DateTime, $known: DateTime) { facts(asOf: $at, knownAt: $known) { nodes { id } } }"
MEMORIES = "query($created: TimeRange) { memories(created: $created) { totalCount nodes { id } } }"


async def found(who: Client, text: str, *, first: int = 10, **filters: Any) -> list[str]:
    page = await who.must(SEARCH, i={"text": text, **filters}, n=first)
    return [hit["node"]["id"] for hit in page["hits"]]


@pytest.fixture(params=["Asia/Tokyo", "America/Los_Angeles"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The service runs where clocks show another day."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
async def test_a_date_means_the_same_wherever_the_service_runs(service: Service) -> None:
    owner = service.owner
    days = [f"2026-03-0{day}T00:30:00+01:00" for day in (1, 2, 3)]
    ids = [(await owner.must(CAPTURE, i={"text": "Board met.", "occurredAt": day, "title": day})) for day in days[:1]]
    ids += [(await owner.must(CAPTURE, i={"text": f"Board met on {day}.", "occurredAt": day})) for day in days[1:]]
    told = [
        (await owner.must(FACT, i={"subject": "Ana", "relation": f"r{n}", "statement": f"Fact {n}.", "validFrom": day}))
        for n, day in enumerate(days)
    ]
    await service.settled()
    second = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"}
    memories = [one["memory"]["id"] for one in ids]
    assert await found(owner, "board met", occurred=second, kinds=["MEMORY"]) == memories[1:2]
    assert set(await found(owner, "board met", kinds=["MEMORY"])) == set(memories)
    held = await owner.must(FACTS, at="2026-03-02T00:00:00Z")
    assert {node["id"] for node in held["nodes"]} == {one["fact"]["id"] for one in told[:2]}


async def test_a_date_without_an_offset_is_refused_wherever_one_is_taken(service: Service) -> None:
    owner, naive = service.owner, "2026-03-01T10:00"
    fact = {"subject": "Ana", "relation": "job", "statement": "Ana is CTO."}
    for query, given in (
        (CAPTURE, {"i": {"text": "hello", "occurredAt": naive}}),
        (FACT, {"i": {**fact, "validFrom": naive}}),
        (FACT, {"i": {**fact, "validTo": naive}}),
        (FACTS, {"at": naive}),
        (FACTS, {"known": naive}),
        (MEMORIES, {"created": {"from": naive}}),
        (SEARCH, {"i": {"text": "x", "occurred": {"to": naive}}}),
        (SEARCH, {"i": {"text": "x", "asOf": naive}}),
    ):
        assert await owner.refused(query, **given) == "BAD_USER_INPUT"
    assert (await owner.must(MEMORIES))["totalCount"] == 0


async def test_the_first_and_the_last_year_are_dates_like_any_other(service: Service) -> None:
    owner, first, last = service.owner, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
    old, mid, late = [
        (await owner.must(CAPTURE, i={"text": f"The comet of {at}.", "occurredAt": at}))["memory"]["id"]
        for at in (first, "2026-03-01T10:00:00+09:00", last)
    ]
    fact = {"subject": "Comet", "relation": "orbit", "statement": "It comes back.", "validFrom": first, "validTo": last}
    saved = (await owner.must(FACT, i=fact))["fact"]
    assert saved["validFrom"] == "0001-01-01T00:00:00.000Z"
    await service.settled()
    only = {"kinds": ["MEMORY"]}
    assert set(await found(owner, "comet", **only)) == {old, mid, late}
    assert set(await found(owner, "comet", occurred={"from": first, "to": last}, **only)) == {old, mid}
    assert await found(owner, "comet", occurred={"to": "2026-03-01T01:00:00Z"}, **only) == [old]
    assert await found(owner, "comet", occurred={"from": "2026-03-01T01:00:01Z"}, **only) == [late]
    for at in (first, last):
        answer = await owner.ask(FACTS, at=at)
        assert not answer.get("errors"), answer
        assert await found(owner, "comet", asOf=at) is not None
        assert await found(owner, "comet", knownAt=at) is not None


async def test_titles_that_differ_in_letters_that_are_not_ascii_are_two(service: Service) -> None:
    titles = ("报告一", "报告二", "Größe", "Grüße")
    ids = [await service.owner.capture(f"{title}: the text.", title=title) for title in titles]
    await service.settled()
    query = "query($id: ID!) { memory(id: $id) { title standing } }"
    for id, title in zip(ids, titles, strict=True):
        assert await service.owner.must(query, id=id) == {"title": title, "standing": "CURRENT"}
        assert (await found(service.owner, title))[0] == id


class WithoutGds(Seen):
    """A server on which nobody installed Graph Data Science."""

    def seen(self, statement: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        return statement.replace("'gds.version'", "'gds.nowhere'"), given


async def test_without_graph_data_science_health_and_trace_say_so_and_search_ranks(service: Service) -> None:
    id = await service.owner.capture("The lighthouse keeper is called Ulrika.")
    await service.settled()
    bare = replace(service.deps, db=WithoutGds(service.deps.db))
    told = {check.name: check for check in (await health.check(bare)).checks}["centrality"]
    assert (told.state, "Graph Data Science" in (told.detail or "")) == (health.ServiceState.DEGRADED, True)
    assert await upkeep.refresh_centrality(bare) == 0
    page = await recall.search_page(bare, service.org.owner, Query("lighthouse keeper"), first=5)
    assert [hit.record.id for hit in page.hits] == [id]
    assert any("Centrality" in note for note in page.trace.notes)
