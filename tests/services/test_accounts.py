"""Traces: everything that made a page, for whoever may see it; and what retrieval strengthens."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import pytest

from graph_mem.core.model import ORGANIZATION, Page, Place, Principal, Role
from graph_mem.core.retrieval import LegState, RetrievalMode, SearchPage
from graph_mem.errors import Conflict, Forbidden, InvalidInput
from graph_mem.services import Deps, accounts, capture, lifecycle, records, settings
from graph_mem.services.capture import NewMemory
from graph_mem.services.settings import SettingsCache
from graph_mem.services.tracing import Retrieval, TraceWriter
from graph_mem.store import traces
from graph_mem.store.db import Database, Tx
from graph_mem.store.traces import Between, Saved
from tests.people import Company, company
from tests.services.test_recall import ask, found, save

ALL = Between()
T = TypeVar("T")


async def test_trace_tells_everything_that_made_the_page(deps: Deps, org: Company) -> None:
    await save(deps, org.owner, "The harbour opens at six.", "The harbour closes at nine.")
    page = await ask(deps, org.owner, "when does the harbour open")
    kept = await accounts.trace(deps, org.owner, page.trace.id)
    assert kept is not None
    trace, served = kept
    assert served == len(page.hits) == 2
    assert trace.query == "when does the harbour open"
    assert trace.by == org.owner.user_id
    assert trace.mode is RetrievalMode.HYBRID
    assert [(leg.name, leg.state) for leg in trace.legs] == [("vector", LegState.RAN), ("lexical", LegState.RAN)]
    assert [hit.record_id for hit in trace.hits] == found(page)
    for mine, theirs in zip(trace.hits, page.trace.hits, strict=True):
        assert mine.tier is theirs.tier
        assert mine.score.final == pytest.approx(theirs.score.final, abs=1e-5)
        assert mine.score.lexical == pytest.approx(theirs.score.lexical, abs=1e-5)
    assert trace.config.tier_high == page.trace.config.tier_high
    assert trace.diversified
    assert any("Centrality" in note for note in trace.notes)


async def test_an_empty_page_says_why(deps: Deps, org: Company) -> None:
    page = await ask(deps, org.owner, "anything at all")
    kept = await accounts.trace(deps, org.owner, page.trace.id)
    assert kept is not None
    assert (kept[0].fused_candidates, kept[0].below_floor, kept[0].passed_over) == (0, 0, 0)
    assert all(leg.candidates == 0 for leg in kept[0].legs)


async def test_a_trace_is_for_its_maker_and_those_who_may_see_all_it_names(deps: Deps, org: Company) -> None:
    alice, bob = await org.member("alice", client="Acme"), await org.member("bob", client="Acme")
    outsider = await org.member("outsider")
    (client,) = alice.client_ids
    await save(deps, org.owner, "Acme pays 185 euros.", client_id=client)
    shared = (await ask(deps, alice, "what does Acme pay")).trace.id
    await save(deps, alice, "Acme pays late, I think.", private=True, client_id=client)
    own = (await ask(deps, alice, "what does Acme pay")).trace.id

    async def sees(who: Principal, id: str) -> bool:
        return await accounts.trace(deps, who, id) is not None

    stranger = (await company(deps)).owner
    assert [await sees(who, shared) for who in (alice, bob, org.owner, outsider, stranger)] == [True] * 3 + [False] * 2
    assert [await sees(who, own) for who in (alice, bob, org.owner, outsider, stranger)] == [True] + [False] * 4
    listed = {trace.id for trace, _ in await accounts.traces(deps, bob, ALL, Page(50))}
    assert shared in listed
    assert own not in listed


async def test_counts_in_a_trace_tell_nobody_of_what_is_anothers_alone(deps: Deps, org: Company) -> None:
    alice, bob = await org.member("alice"), await org.member("bob")
    await save(deps, org.owner, "The harbour opens at six.")
    (quiet,) = await save(deps, alice, "The harbour is a secret.", private=True)
    await lifecycle.archive(deps, alice, quiet)
    passed = await ask(deps, alice, "harbour opens")
    await capture.accept(deps, alice, NewMemory(text="Something of mine", private=True))
    pending = await ask(deps, alice, "the is")
    assert (passed.trace.passed_over, passed.trace.pending, len(passed.hits)) == (1, 0, 1)
    assert pending.trace.pending == 1
    theirs = await ask(deps, bob, "harbour opens")
    assert (theirs.trace.passed_over, theirs.trace.pending) == (0, 0)
    for mine in (passed, pending):
        assert await accounts.trace(deps, alice, mine.trace.id) is not None
        assert await accounts.trace(deps, org.owner, mine.trace.id) is None
    assert await accounts.trace(deps, alice, theirs.trace.id) is not None


async def test_a_trace_names_what_its_later_pages_found(deps: Deps, org: Company) -> None:
    """A deeper page may find what is its maker's alone: from then on nobody else sees the trace."""
    alice = await org.member("alice")
    page = await ask(deps, alice, "harbour")
    await deps.traces.flush()
    assert await accounts.trace(deps, org.owner, page.trace.id) is not None
    own = Place(org.id, ORGANIZATION, alice.user_id).partition_token
    deeper = Saved(page.trace, org.id, (own,), (), everywhere=False, served=1)
    await deps.db.write(lambda tx: traces.write(tx, [deeper], []))
    assert await accounts.trace(deps, org.owner, page.trace.id) is None
    assert await accounts.trace(deps, alice, page.trace.id) is not None


async def test_access_log_keeps_the_mode(deps: Deps, org: Company) -> None:
    alice = await org.member("alice")
    await ask(deps, alice, "the is")
    await ask(deps, org.owner, "harbour")
    own = await accounts.access_log(deps, alice, ALL, Page(50))
    assert [(entry.by, entry.mode) for entry in own] == [(alice.user_id, RetrievalMode.VECTOR)]
    degraded = Between(modes=(RetrievalMode.VECTOR,))
    everyone = await accounts.access_log(deps, org.owner, degraded, Page(50))
    assert [entry.by for entry in everyone] == [alice.user_id]
    assert len(await accounts.access_log(deps, org.owner, ALL, Page(50))) == 2


async def test_retrieval_strengthens_once_and_an_audit_not_at_all(deps: Deps, org: Company) -> None:
    (mine,) = await save(deps, org.owner, "The harbour opens at six.")
    for text in ("when does the harbour open", "when does the harbour open", "who opens the harbour"):
        await ask(deps, org.owner, text)
    await ask(deps, org.owner, "harbour", include_archived=True)
    await ask(deps, org.owner, "harbour", known_at=deps.clock() + timedelta(hours=1))
    await deps.traces.flush()
    record = (await records.by_ids(deps, org.owner, [mine]))[mine]
    assert record.signals.retrievals == 3
    assert len(record.signals.query_kinds) == 2
    assert record.signals.last_retrieved_at is not None


async def test_nothing_is_lost_when_the_writer_is_closed(deps: Deps, org: Company, database: Database) -> None:
    writer = TraceWriter(database, every_s=3600, most=5)
    await save(deps, org.owner, "The harbour opens at six.")
    page = await ask(deps, org.owner, "harbour")
    await deps.traces.flush()
    again = [_copy(page, f"trc_{i:026d}", org) for i in range(12)]
    for one in again:
        await writer.put(one)
    assert writer.waiting <= 5
    await writer.aclose()
    assert (writer.waiting, writer.written) == (0, 12)


async def test_who_asks_for_a_trace_waits_for_no_search_that_comes_after(
    deps: Deps, org: Company, database: Database
) -> None:
    page = await ask(deps, org.owner, "harbour")
    searched = 0

    class Busy(Database):
        """A database that is searched during each of its writes."""

        async def write(self, work: Callable[[Tx], Awaitable[T]], *, timeout_s: float | None = None) -> T:
            nonlocal searched
            searched += 1
            await writer.put(_copy(page, f"trc_{searched:026d}", org))
            return await super().write(work, timeout_s=timeout_s)

    writer = TraceWriter(Busy(database.driver, database=database.name), every_s=3600)
    await writer.put(_copy(page, f"trc_{0:026d}", org))
    async with asyncio.timeout(10):
        await writer.flush()
    assert (writer.waiting, writer.written) == (1, 1)


def _copy(page: SearchPage, id: str, org: Company) -> Retrieval:
    saved = Saved(replace(page.trace, id=f"{id[:10]}{org.id[-20:]}"), org.id, (), (), everywhere=True, served=0)
    return Retrieval(saved, page.trace.at, "kind", ())


async def test_old_traces_end(deps: Deps, org: Company) -> None:
    page = await ask(deps, org.owner, "harbour")
    await deps.traces.flush()

    async def prune(tx: Tx) -> int:
        return await traces.prune(tx, org.id, before=page.trace.at + timedelta(seconds=1))

    assert await accounts.trace(deps, org.owner, page.trace.id) is not None
    assert await deps.db.write(prune) == 1
    assert await accounts.trace(deps, org.owner, page.trace.id) is None


async def test_configuration_is_versioned_checked_and_in_force_at_once(deps: Deps, org: Company) -> None:
    await save(deps, org.owner, "The harbour opens at six.")
    admin, member = await org.member("admin", Role.ADMIN), await org.member("member")
    changed = await settings.update_retrieval(deps, admin, expected_version=0, changes={"tier_high": 0.99})
    assert (changed.version, changed.tier_high, changed.updated_by) == (1, 0.99, admin.user_id)
    assert (await ask(deps, org.owner, "harbour")).trace.config.tier_high == 0.99
    with pytest.raises(Conflict):
        await settings.update_retrieval(deps, admin, expected_version=0, changes={"tier_high": 0.5})
    with pytest.raises(Forbidden):
        await settings.update_retrieval(deps, member, expected_version=1, changes={"tier_high": 0.5})
    with pytest.raises(InvalidInput):
        await settings.update_retrieval(deps, admin, expected_version=1, changes={"tier_high": 0.01})
    assert (await deps.settings.retrieval(org.id)).version == 1


async def test_another_process_sees_a_change_within_its_cache(deps: Deps, org: Company, database: Database) -> None:
    other = SettingsCache(database, ttl_s=0.2)
    assert (await other.retrieval(org.id)).mmr_lambda == 0.7
    await settings.update_retrieval(deps, org.owner, expected_version=0, changes={"mmr_lambda": 0.5})
    await asyncio.sleep(0.25)
    assert (await other.retrieval(org.id)).mmr_lambda == 0.5


async def test_every_setting_that_can_be_changed_is_in_the_trace(deps: Deps, org: Company) -> None:
    await settings.update_retrieval(deps, org.owner, expected_version=0, changes={"profile": "BLEND", "fusion": "RRF"})
    await save(deps, org.owner, "The harbour opens at six.")
    page = await ask(deps, org.owner, "harbour")
    kept = await accounts.trace(deps, org.owner, page.trace.id)
    assert kept is not None
    assert (kept[0].config.profile, kept[0].config.fusion) == ("BLEND", "RRF")
    assert page.hits[0].score.fused == pytest.approx(1.0)
