"""What happens at the moment of an erasure: it is refused, or the erasure takes it too; never does a word come back."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from graph_mem.core.lifecycle import ReingestPolicy
from graph_mem.core.model import RecordId
from graph_mem.core.proposals import Decision, ProposalKind
from graph_mem.core.retrieval import Query, ScopeName
from graph_mem.errors import Conflict, InvalidInput, NotFound
from graph_mem.services import Deps, capture, erasure, facts, recall, review, scratch, settings
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.relations import NewRelation
from graph_mem.services.tracing import TraceWriter
from graph_mem.store.db import Tx, rows
from tests.people import Company, work_off
from tests.services.lives import proposed, saved

ROUNDS = 4
REFUSED = (NotFound, Conflict, InvalidInput)


async def erase(deps: Deps, org: Company, id: RecordId) -> None:
    await erasure.erase(deps, org.owner, id, confirm_id=id, reason="asked to")


async def tried(work: Awaitable[object]) -> None:
    """`work`, which the erasure may have come before."""
    try:
        await work
    except REFUSED:
        return


async def later(turn: int, work: Awaitable[object]) -> None:
    """`work`, a little later in each round, so that it meets every step of the other."""
    await asyncio.sleep(turn * 0.006)
    await work


def cite(deps: Deps, org: Company, id: RecordId, words: str) -> Awaitable[object]:
    new = NewFact(subject=f"S {words}", relation="pay", statement=f"It says: {words}", source_ids=(id,))
    return facts.save(deps, org.owner, new)


async def cite_again(deps: Deps, org: Company, id: RecordId, words: str) -> None:
    """A second source to a fact that the memory has already."""
    await facts.save(deps, org.owner, NewFact(subject=words, relation="pay", statement=words, source_ids=(id,)))
    await facts.save(deps, org.owner, NewFact(subject=words, relation="pay", statement=f"{words} 2", source_ids=(id,)))


def relate(deps: Deps, org: Company, id: RecordId, words: str) -> Awaitable[object]:
    link = NewRelation("supports", id, reason=f"because {words}")
    return capture.accept(deps, org.owner, NewMemory(text="Ana agrees with that.", relations=(link,)))


@pytest.mark.parametrize("attach", [cite, cite_again, relate], ids=["fact", "second fact", "relation"])
async def test_what_is_attached_while_erasing_is_refused_or_goes_too(
    deps: Deps, org: Company, attach: Callable[[Deps, Company, RecordId, str], Awaitable[object]]
) -> None:
    texts = [f"Zebulon earns {n}{n}{n}314159 doubloons a month." for n in range(ROUNDS)]
    ids = await saved(deps, org, *texts)
    for turn, (id, words) in enumerate(zip(ids, texts, strict=True)):
        await asyncio.gather(later(turn, erase(deps, org, id)), *(tried(attach(deps, org, id, words)) for _ in "ab"))
    await work_off(deps, org.id)
    assert await erasure.remnants(deps, texts, org_id=org.id) == []


async def test_a_copy_saved_while_erasing_goes_too_or_stands_by_itself(deps: Deps, org: Company) -> None:
    texts = [f"Zebulon earns {n}{n}{n}314159 doubloons a month." for n in range(ROUNDS)]
    ids = await saved(deps, org, *texts)
    for turn, (id, words) in enumerate(zip(ids, texts, strict=True)):
        copying = capture.accept(deps, org.owner, NewMemory(text=words))
        made, _ = await asyncio.gather(copying, later(turn, erase(deps, org, id)))
        await asyncio.gather(work_off(deps, org.id), *([tried(erase(deps, org, made.memory.id))] if turn % 2 else []))
    lost = """
        MATCH (m:Memory {org: $org, standing: 'FOLDED'})
        WHERE m.text IS NOT NULL AND NOT EXISTS { (m)-[:FOLDED_INTO]->({standing: 'CURRENT'}) } RETURN count(*) AS n"""
    assert (await deps.db.read(lambda tx: rows(tx, lost, org=org.id)))[0]["n"] == 0
    left = {one.id for one in await erasure.remnants(deps, texts, org_id=org.id)}
    assert not left & set(ids)


def copy(deps: Deps, org: Company, words: str) -> Awaitable[object]:
    return capture.accept(deps, org.owner, NewMemory(text=words))


async def promote(deps: Deps, org: Company, words: str) -> None:
    note = await scratch.add(deps, org.owner, run_id="run", text=words)
    await scratch.promote(deps, org.owner, id=note.id, label="note", scope=ScopeName(), private=False)


@pytest.mark.parametrize("bring", [copy, promote])
async def test_what_is_not_to_come_again_does_not_come_while_it_is_being_erased(
    deps: Deps, org: Company, bring: Callable[[Deps, Company, str], Awaitable[object]]
) -> None:
    refuse = {"after_erase": ReingestPolicy.REFUSE}
    await settings.update_lifecycle(deps, org.owner, expected_version=0, changes=refuse)
    texts = [f"Zebulon earns {n}{n}{n}314159 doubloons a month." for n in range(3 * ROUNDS)]
    ids = await saved(deps, org, *texts)
    for turn, (id, words) in enumerate(zip(ids, texts, strict=True)):
        coming = (later(n * 3, tried(bring(deps, org, words))) for n in range(8))
        await asyncio.gather(later(turn % ROUNDS, erase(deps, org, id)), *coming)
    await work_off(deps, org.id)
    left = await erasure.remnants(deps, texts, org_id=org.id)
    assert {one.what for one in left} <= {"ScratchNote"}


async def test_a_fact_of_two_memories_goes_with_the_second_when_both_are_erased_at_once(
    deps: Deps, org: Company
) -> None:
    for turn in range(ROUNDS):
        words = f"Zebulon earns {turn}{turn}314159 doubloons."
        ids = await saved(deps, org, f"Ana says {turn}.", f"Tom says {turn}.")
        new = NewFact(subject="Zebulon", relation=f"pay {turn}", statement=words, source_ids=tuple(ids))
        fact = (await facts.save(deps, org.owner, new)).fact
        assert fact is not None
        await asyncio.gather(*(erase(deps, org, id) for id in ids))
        assert await erasure.remnants(deps, [words], org_id=org.id) == []


async def test_a_fact_being_embedded_leaves_no_entity_behind(deps: Deps, org: Company) -> None:
    for turn in range(ROUNDS):
        name = f"Zebulon{'abcdef'[turn]} Quux"
        new = NewFact(subject=name, relation="pay", statement=f"{name} earns 314159 doubloons.")
        fact = (await facts.save(deps, org.owner, new)).fact
        assert fact is not None
        await asyncio.gather(work_off(deps, org.id), later(turn, erase(deps, org, fact.id)))
        await work_off(deps, org.id)
        left = await erasure.remnants(deps, [name], org_id=org.id)
        assert [one.what for one in left] in ([], ["Event"])  # the name that history keeps


async def test_a_trace_that_waited_in_another_process_comes_without_its_query(deps: Deps, org: Company) -> None:
    secret = "Zebulon Quux earns exactly 314159 doubloons a month."
    id, sibling = await saved(deps, org, secret, "Ana earns her salary every month.")
    member = await org.member("Mia")
    (hers,) = await saved(deps, org, secret, by=member, private=True)
    elsewhere = replace(deps, traces=TraceWriter(deps.db, every_s=600.0))
    seen = await recall.search_page(elsewhere, org.owner, Query(text=f"{secret} Really?"), first=10)
    blind = await recall.search_page(elsewhere, org.owner, Query(text=secret, labels=("playbook",)), first=10)
    assert {hit.record.id for hit in seen.hits} == {id, sibling}
    assert blind.hits == ()
    await erase(deps, org, id)
    after = await recall.search_page(elsewhere, org.owner, Query(text="salary"), first=10)
    await elsewhere.traces.aclose()
    queries = {trace.id: (await _query(deps, trace.id)) for page in (seen, blind, after) if (trace := page.trace)}
    assert list(queries.values()) == [None, None, "salary"]
    assert {one.id.partition("/")[0] for one in await erasure.remnants(deps, [secret], org_id=org.id)} == {hers}


async def _query(deps: Deps, id: str) -> str | None:
    async def work(tx: Tx) -> str | None:
        return (await rows(tx, "MATCH (t:Trace {id: $id}) RETURN t.query AS query", id=id))[0]["query"]

    return await deps.db.read(work)


async def test_a_decision_taken_back_at_that_moment_answers_conflict_or_is_done(deps: Deps, org: Company) -> None:
    for turn in range(ROUNDS):
        (id,) = await saved(deps, org, f"Zebulon earns {turn}{turn}314159 doubloons.")
        one = await proposed(deps, org, ProposalKind.DEMOTE, id)
        await review.decide(deps, org.owner, one.id, Decision.KEEP)
        back = review.decide(deps, org.owner, one.id, Decision.REVERT)
        await asyncio.gather(tried(back), later(turn, erase(deps, org, id)))
        with pytest.raises(Conflict):
            await review.decide(deps, org.owner, one.id, Decision.REVERT)
