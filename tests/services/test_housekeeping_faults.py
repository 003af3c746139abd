"""Decisions, archive, restore and erasure broken off before each of their statements: all or nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count

import pytest

from graph_mem.core.proposals import Decision, ProposalKind
from graph_mem.core.retrieval import Query
from graph_mem.services import Deps, erasure, facts, lifecycle, recall, review
from graph_mem.services.facts import NewFact
from graph_mem.store.db import Tx, rows
from tests.people import Company
from tests.services.lives import everything, proposed, saved, stored
from tests.services.test_faults import BreakingDatabase, Broken

WORDS = "Zebulon Quux: I earn 314159 doubloons a month."


async def broken_everywhere(deps: Deps, org: Company, act: Callable[[Deps], Awaitable[object]]) -> int:
    """How often `act` was broken off, each time with everything as before, until it got through."""
    before = await everything(deps, org)
    for at in count():
        try:
            await act(replace(deps, db=BreakingDatabase(deps.db, at)))
        except Broken:
            assert await everything(deps, org) == before, f"broken off before statement {at}, something stayed"
        else:
            return at
    raise AssertionError


@pytest.mark.parametrize("kind", [ProposalKind.ARCHIVE, ProposalKind.PROMOTE_MEMORY])
async def test_a_decision_is_all_or_nothing_both_ways(deps: Deps, org: Company, kind: ProposalKind) -> None:
    (id,) = await saved(deps, org, WORDS)
    one = await proposed(deps, org, kind, id)
    for decision in (Decision.KEEP, Decision.REVERT):

        async def decide(broken: Deps, decision: Decision = decision) -> object:
            return await review.decide(broken, org.owner, one.id, decision)

        assert await broken_everywhere(deps, org, decide) > 5


async def test_archive_and_restore_are_all_or_nothing(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, WORDS)
    assert await broken_everywhere(deps, org, lambda broken: lifecycle.archive(broken, org.owner, id)) > 3
    assert await broken_everywhere(deps, org, lambda broken: lifecycle.restore(broken, org.owner, id)) > 3


async def test_erasing_is_all_or_nothing(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, WORDS)
    new = NewFact(subject="Zebulon", relation="pay", statement="He earns 314159.", source_ids=(id,))
    await facts.save(deps, org.owner, new)

    async def act(broken: Deps) -> object:
        return await erasure.erase(broken, org.owner, id, confirm_id=id, reason="asked to")

    assert await broken_everywhere(deps, org, act) > 15
    assert await erasure.remnants(deps, [WORDS, "He earns 314159."], org_id=org.id) == []


async def test_a_trace_that_is_written_after_the_erasure_holds_no_query(deps: Deps, org: Company) -> None:
    id, sibling = await saved(deps, org, WORDS, "Ana Garcia: I earn some.")
    await deps.traces.flush()
    page = await recall.search_page(deps, org.owner, Query(text="how many doubloons does Zebulon earn"), first=5)
    late = deps.traces
    await erasure.erase(deps, org.owner, id, confirm_id=id, reason="asked to")
    await late.flush()

    async def work(tx: Tx) -> list[object]:
        found = await rows(tx, "MATCH (t:Trace {id: $id}) RETURN t.query AS query", id=page.trace.id)
        return [row["query"] for row in found]

    assert await deps.db.read(work) == [None]
    other = await recall.search_page(deps, org.owner, Query(text="what does Ana earn"), first=5)
    assert [hit.record.id for hit in other.hits] == [sibling]


async def test_erasing_while_others_decide_and_archive_leaves_nothing(deps: Deps, org: Company) -> None:
    for number in range(4):
        (id,) = await saved(deps, org, f"{WORDS} Number {number}.")
        one = await proposed(deps, org, ProposalKind.PROMOTE_MEMORY, id)
        await asyncio.gather(
            review.decide(deps, org.owner, one.id, Decision.KEEP),
            lifecycle.archive(deps, org.owner, id),
            erasure.erase(deps, org.owner, id, confirm_id=id, reason="asked to"),
            return_exceptions=True,
        )
        if await erasure.remnants(deps, [f"{WORDS} Number {number}."], org_id=org.id):
            assert (await stored(deps, org, id)).text
            await erasure.erase(deps, org.owner, id, confirm_id=id, reason="asked to")
        assert await erasure.remnants(deps, [f"{WORDS} Number {number}."], org_id=org.id) == []
