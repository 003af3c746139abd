"""A few records in a big database are found: in each leg, with every kind of filter."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from graph_mem.core.model import Principal, RecordKind
from graph_mem.core.retrieval import LegState, Query, RetrievalMode, ScopeName, SearchPage, Span
from graph_mem.services import Deps, capture, recall
from graph_mem.services.capture import NewMemory
from graph_mem.store.db import Database
from tests.encoders import Fault, FaultyEncoder
from tests.people import Company, company, deps_on, work_off

MANY = 2_000
TEXT = "The turbine of hall nine vibrates"
FLOOD = """
MATCH (m:Memory {id: $id})<-[:PART_OF]-(c:Chunk)
UNWIND range(1, $many) AS n
CREATE (copy:Memory) SET copy = m {.*, id: m.id + '-' + n, dedupKey: null}
CREATE (part:Chunk)-[:PART_OF]->(copy) SET part = c {.*, id: c.id + '-' + n, memoryId: copy.id}
"""


@dataclass(frozen=True)
class Crowd:
    """One organization with many near texts, and two others who have three each: another one, and one member alone."""

    deps: Deps
    big: Company
    small: Company
    alice: Principal


@pytest.fixture(scope="module")
async def crowd(database: Database) -> AsyncIterator[Crowd]:
    async with deps_on(database) as deps:
        big, small = await company(deps), await company(deps)
        alice = await big.member("alice")
        first = await capture.accept(deps, big.owner, NewMemory(text=f"{TEXT}."))
        await work_off(deps, big.id)
        await deps.db.run(FLOOD, id=first.memory.id, many=MANY)
        for n in range(3):
            text = f"{TEXT} at {n} o'clock, it is said somewhere in a longer sentence."
            await capture.accept(deps, small.owner, NewMemory(text=text, label="decision", source_uri=f"file:{n}"))
            await capture.accept(deps, alice, NewMemory(text=text, label="decision", private=True))
        await capture.accept(deps, alice, NewMemory(text=f"{TEXT}.", private=True))
        await work_off(deps, small.id)
        await work_off(deps, big.id)
        await deps.db.run("CALL db.awaitIndexes(60)")
        yield Crowd(deps, big, small, alice)


async def ask(deps: Deps, who: Principal, **given: object) -> SearchPage:
    return await recall.search_page(deps, who, Query(TEXT, **given), first=3)  # pyright: ignore[reportArgumentType]


FILTERS = {
    "none": {},
    "label": {"labels": ("decision",)},
    "kind": {"kinds": (RecordKind.MEMORY,)},
    "scope": {"scope": ScopeName()},
    "archived too": {"include_archived": True},
}


@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
async def test_the_three_of_another_organization_are_found_by_both_legs(crowd: Crowd, filters: dict) -> None:
    page = await ask(crowd.deps, crowd.small.owner, **filters)
    assert len(page.hits) == 3
    assert {hit.record.place.org_id for hit in page.hits} == {crowd.small.id}
    assert page.trace.mode is RetrievalMode.HYBRID
    assert [(leg.state, leg.candidates) for leg in page.trace.legs] == [(LegState.RAN, 3)] * 2


async def test_the_three_of_a_private_partition_are_found_beside_many_shared(crowd: Crowd) -> None:
    page = await ask(crowd.deps, crowd.alice, labels=("decision",))
    assert {hit.record.place.owner_id for hit in page.hits} == {crowd.alice.user_id}
    assert len(page.hits) == 3


async def test_ones_own_comes_before_many_shared_of_the_same_words(crowd: Crowd) -> None:
    page = await recall.search_page(crowd.deps, crowd.alice, Query(TEXT), first=3)
    assert page.hits[0].record.place.owner_id == crowd.alice.user_id


async def test_the_three_are_found_by_words_alone(crowd: Crowd, database: Database) -> None:
    encoder = FaultyEncoder()
    async with deps_on(database, load=lambda: encoder) as deps:
        encoder.fault = Fault.RAISES
        page = await ask(deps, crowd.small.owner)
    assert page.trace.mode is RetrievalMode.LEXICAL
    assert len(page.hits) == 3


async def test_the_three_are_found_by_meaning_alone(crowd: Crowd) -> None:
    """A question of words that are in no index, near to the texts all the same."""
    page = await recall.search_page(crowd.deps, crowd.small.owner, Query("The of the"), first=3)
    assert page.trace.mode is RetrievalMode.VECTOR
    assert page.trace.legs[0].candidates == 3


async def test_the_three_are_found_within_their_time(crowd: Crowd) -> None:
    now = crowd.deps.clock()
    page = await ask(crowd.deps, crowd.small.owner, created=Span(now - timedelta(hours=1), now + timedelta(hours=1)))
    assert len(page.hits) == 3


async def test_one_source_is_found(crowd: Crowd) -> None:
    page = await ask(crowd.deps, crowd.small.owner, source_uri="file:1")
    assert len(page.hits) == 1


async def test_the_many_are_found_too(crowd: Crowd) -> None:
    page = await ask(crowd.deps, crowd.big.owner)
    assert len(page.hits) == 3
    assert {hit.record.place.org_id for hit in page.hits} == {crowd.big.id}
