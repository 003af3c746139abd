"""Search with parts missing: it answers with what is left, says why, and comes back by itself."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from graph_mem.core.model import RecordKind
from graph_mem.core.retrieval import LegState, Query, RetrievalMode, SearchPage, Span
from graph_mem.services import Deps, recall
from graph_mem.store import search
from graph_mem.store.db import Database
from tests.encoders import Fault, FaultyEncoder
from tests.people import Company, company, deps_on
from tests.services.test_recall import found, save

TEXT = "The lighthouse keeper is called Ulrika."


@pytest.fixture
async def shaky(database: Database) -> AsyncIterator[tuple[Deps, FaultyEncoder, Company]]:
    """An organization with one memory, whose embedding model can be broken."""
    encoder = FaultyEncoder(slow_s=3.0)
    async with deps_on(database, load=lambda: encoder) as deps:
        org = await company(deps)
        await save(deps, org.owner, TEXT)
        yield deps, encoder, org


async def ask(deps: Deps, org: Company, text: str = "lighthouse keeper") -> SearchPage:
    return await recall.search_page(deps, org.owner, Query(text), first=5)


@pytest.mark.parametrize("fault", [Fault.RAISES, Fault.SLOW, Fault.WRONG_DIMENSION, Fault.NOT_FINITE, Fault.ZERO])
async def test_without_the_model_words_answer_and_say_why(
    shaky: tuple[Deps, FaultyEncoder, Company], fault: Fault
) -> None:
    deps, encoder, org = shaky
    encoder.fault = fault
    started = time.monotonic()
    page = await ask(deps, org)
    assert time.monotonic() - started < 4
    assert page.trace.mode is RetrievalMode.LEXICAL
    assert page.trace.degraded_reason
    assert {leg.name: leg.state for leg in page.trace.legs} == {"vector": LegState.FAILED, "lexical": LegState.RAN}
    assert len(page.hits) == 1
    assert page.hits[0].score.vector is None


async def test_a_dead_model_costs_one_time_out_and_heals_by_itself(
    shaky: tuple[Deps, FaultyEncoder, Company],
) -> None:
    deps, encoder, org = shaky
    encoder.fault = Fault.RAISES
    await ask(deps, org)
    asked = len(encoder.calls)
    started = time.monotonic()
    for i in range(5):
        assert (await ask(deps, org, f"lighthouse {i}")).trace.mode is RetrievalMode.LEXICAL
    assert len(encoder.calls) - asked <= (time.monotonic() - started) / 2 + 2, "no more than the probes"
    encoder.fault = Fault.NONE
    for i in range(100):
        if (await ask(deps, org, f"keeper {i}")).trace.mode is RetrievalMode.HYBRID:
            return
        await asyncio.sleep(0.1)
    pytest.fail("the model came back and search did not notice")


async def test_without_the_full_text_index_meaning_answers(
    shaky: tuple[Deps, FaultyEncoder, Company], monkeypatch: pytest.MonkeyPatch
) -> None:
    deps, _, org = shaky
    monkeypatch.setattr(search, "WORDS_INDEX", "no_such_index")
    page = await ask(deps, org)
    assert page.trace.mode is RetrievalMode.VECTOR
    assert "full-text index" in (page.trace.degraded_reason or "")
    assert len(page.hits) == 1
    monkeypatch.undo()
    assert (await ask(deps, org)).trace.mode is RetrievalMode.HYBRID


async def test_without_the_vector_index_words_answer(
    shaky: tuple[Deps, FaultyEncoder, Company], monkeypatch: pytest.MonkeyPatch
) -> None:
    deps, _, org = shaky
    broken = {form: statement.replace("passages", "no_such_index") for form, statement in search.MEANING.items()}
    monkeypatch.setattr(search, "MEANING", broken)
    page = await ask(deps, org)
    assert page.trace.mode is RetrievalMode.LEXICAL
    assert "vector index" in (page.trace.degraded_reason or "")
    assert len(page.hits) == 1


async def test_without_either_leg_substrings_are_looked_for(
    shaky: tuple[Deps, FaultyEncoder, Company], monkeypatch: pytest.MonkeyPatch
) -> None:
    deps, encoder, org = shaky
    encoder.fault = Fault.RAISES
    monkeypatch.setattr(search, "WORDS_INDEX", "no_such_index")
    page = await ask(deps, org, "ulrika")
    assert page.trace.mode is RetrievalMode.SUBSTRING
    assert found(page)
    assert [leg.state for leg in page.trace.legs] == [LegState.FAILED, LegState.FAILED, LegState.RAN]
    assert found(await ask(deps, org, "nowhere")) == []
    long_ago = datetime(2020, 2, 1, tzinfo=UTC)
    for filters in (
        {"labels": ("decision",)},
        {"kinds": (RecordKind.FACT,)},
        {"source_uri": "https://nowhere.example"},
        {"entity_ids": ("ent_01ARZ3NDEKTSV4RRFFQ69G5FAV",)},
        {"created": Span(None, long_ago)},
        {"occurred": Span(None, long_ago)},
        {"as_of": long_ago},
        {"known_at": long_ago},
    ):
        page = await recall.search_page(deps, org.owner, Query("ulrika", **filters), first=10)
        assert (page.trace.mode, found(page)) == (RetrievalMode.SUBSTRING, []), filters


async def test_a_query_of_stop_words_alone_is_answered_by_meaning(
    shaky: tuple[Deps, FaultyEncoder, Company],
) -> None:
    deps, _, org = shaky
    page = await ask(deps, org, "the is")
    assert page.trace.mode is RetrievalMode.VECTOR
    assert page.trace.legs[1].state is LegState.SKIPPED
    assert page.trace.degraded_reason
