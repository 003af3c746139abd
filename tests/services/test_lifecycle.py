"""Archive, restore, validate: out of every everyday answer, and back as if it had never left."""

from datetime import timedelta

import pytest

from graph_mem.core.model import Page, RecordId, Role, Standing
from graph_mem.core.proposals import ProposalKind, ProposalState
from graph_mem.core.retrieval import Query
from graph_mem.errors import Conflict, Forbidden, NotFound
from graph_mem.services import Deps, facts, history, lifecycle, pins, recall, records, relations, review
from graph_mem.services.facts import NewFact
from graph_mem.services.pins import NewPin
from graph_mem.store.reviews import Filter
from tests.people import Company, FixedClock, company, deps_on
from tests.services.lives import everything, saved, stored

VOLATILE = {"version", "keys", "retrievals", "lastRetrievedAt", "queryKinds"}
PENDING = Filter(None, (ProposalState.PENDING,))


async def ranked(deps: Deps, org: Company, text: str, **given: bool) -> list[RecordId]:
    page = await recall.search_page(deps, org.owner, Query(text=text, **given), first=10)
    return [hit.record.id for hit in page.hits]


async def test_archived_is_found_by_no_everyday_search_and_its_sibling_is(deps: Deps, org: Company) -> None:
    gone, sibling = await saved(deps, org, "The rate of Northwind is 185 euros.", "The rate of Southwind is 185 euros.")
    await lifecycle.archive(deps, org.owner, gone)
    assert await ranked(deps, org, "rate of Northwind") == [sibling]
    assert set(await ranked(deps, org, "rate of Northwind", include_archived=True)) == {gone, sibling}
    assert (await stored(deps, org, gone)).standing is Standing.ARCHIVED


async def test_restored_is_as_if_it_had_never_left(deps: Deps, org: Company) -> None:
    older, id, _ = await saved(
        deps, org, "The rate was 170 euros.", "The rate is 185 euros, says Ana Garcia.", "The rate of others is 90."
    )
    await relations.relate(deps, org.owner, from_id=id, to_id=older, kind="SUPERSEDES", reason="raised")
    await pins.pin(deps, org.owner, NewPin(memory_id=id, slot="rates"))
    before, rank = await everything(deps, org), await ranked(deps, org, "rate in euros")
    chain = await history.chain(deps, org.owner, id)
    await lifecycle.archive(deps, org.owner, id)
    assert id not in await ranked(deps, org, "rate in euros")
    await lifecycle.restore(deps, org.owner, id)
    assert await ranked(deps, org, "rate in euros") == rank
    assert _steady(await everything(deps, org)) == _steady(before)
    again = await history.chain(deps, org.owner, id)
    assert chain is not None
    assert again is not None
    assert [r.id for r in again.records] == [r.id for r in chain.records]
    assert again.links == chain.links


def _steady(found: dict[str, tuple[dict[str, object], object]]) -> dict[str, object]:
    """What must not differ: all but the count of changes and what this test's searches counted; `keys` are a set."""
    return {
        id: ({k: v for k, v in node.items() if k not in VOLATILE}, sorted(node.get("keys", ())), edges)  # type: ignore[call-overload] # keys are strings
        for id, (node, edges) in found.items()
    }


async def test_a_record_superseded_in_the_archive_comes_back_superseded(deps: Deps, org: Company) -> None:
    old, new = await saved(deps, org, "Rate 170 for Acme.", "Rate 185 for Acme.")
    await lifecycle.archive(deps, org.owner, old)
    await relations.relate(deps, org.owner, from_id=new, to_id=old, kind="SUPERSEDES", reason="raised")
    restored = await lifecycle.restore(deps, org.owner, old)
    assert restored.standing is Standing.SUPERSEDED


async def test_a_copy_saved_meanwhile_folds_into_the_restored_one(deps: Deps, org: Company) -> None:
    (first,) = await saved(deps, org, "Saved, archived, saved again.")
    await lifecycle.archive(deps, org.owner, first)
    (second,) = await saved(deps, org, "Saved, archived, saved again.")
    assert (await stored(deps, org, second)).standing is Standing.CURRENT
    await lifecycle.restore(deps, org.owner, first)
    standings = [(await stored(deps, org, id)).standing for id in (first, second)]
    assert standings == [Standing.CURRENT, Standing.FOLDED]


async def test_an_archived_fact_leaves_its_slot_and_comes_back_to_it_if_it_is_free(deps: Deps, org: Company) -> None:
    rate = NewFact(subject="Acme", relation="rate", statement="Acme pays 185.")
    fact = (await facts.save(deps, org.owner, rate)).fact
    assert fact is not None
    await lifecycle.archive(deps, org.owner, fact.id)
    assert (await lifecycle.restore(deps, org.owner, fact.id)).standing is Standing.CURRENT
    await lifecycle.archive(deps, org.owner, fact.id)
    await facts.save(deps, org.owner, NewFact(subject="Acme", relation="rate", statement="Acme pays 200."))
    with pytest.raises(Conflict, match="active fact of its slot"):
        await lifecycle.restore(deps, org.owner, fact.id)


async def test_only_what_is_current_is_archived_and_only_what_is_archived_restored(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "Archived once.")
    with pytest.raises(Conflict, match="CURRENT, expected ARCHIVED"):
        await lifecycle.restore(deps, org.owner, id)
    await lifecycle.archive(deps, org.owner, id, expected_version=1)
    with pytest.raises(Conflict, match="ARCHIVED, expected CURRENT"):
        await lifecycle.archive(deps, org.owner, id)
    with pytest.raises(Conflict, match="version 2, expected 1"):
        await lifecycle.restore(deps, org.owner, id, expected_version=1)


async def test_whoever_may_not_see_it_gets_not_found_and_whoever_may_not_change_it_forbidden(
    deps: Deps, org: Company
) -> None:
    (id,) = await saved(deps, org, "The owner's note.")
    member, stranger = await org.member("Mia"), (await company(deps)).owner
    with pytest.raises(Forbidden):
        await lifecycle.archive(deps, member, id)
    for asked in (id, deps.new_id("mem"), "mem_x"):
        with pytest.raises(NotFound):
            await lifecycle.archive(deps, stranger, asked)
    (mine,) = await saved(deps, org, "The member's own note.", by=member)
    assert (await lifecycle.archive(deps, member, mine)).standing is Standing.ARCHIVED
    agent = await org.member("Robo", Role.AGENT)
    (its,) = await saved(deps, org, "What an agent wrote.", by=agent)
    with pytest.raises(Forbidden):
        await lifecycle.archive(deps, agent, its)


async def test_history_tells_of_archive_and_restore_with_the_strength(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "A note with a history.")
    await lifecycle.archive(deps, org.owner, id, reason="old")
    await lifecycle.restore(deps, org.owner, id)
    events = [e for e in await history.history(deps, org.owner, id, Page(20)) if e.kind in ("archived", "restored")]
    assert [event.kind for event in events] == ["archived", "restored"]
    assert events[0].detail == {"reason": "old"}
    assert all(event.strength is not None for event in events)


async def test_high_stakes_records_are_rehearsed_by_themselves_at_growing_distances(org: Company) -> None:
    clock = FixedClock()
    async with deps_on(org.deps.db, clock=clock) as deps:
        position, _ = await saved(deps, org, "We decided for 185.", label="decision"), await saved(deps, org, "A note.")
        id = position[0]
        assert await review.due(deps, org.owner, only_due=True, page=Page(10)) == []
        for days, box in ((1, 1), (3, 2), (7, 3), (21, 4), (60, 5), (60, 5)):
            clock.move(days=days)
            (due,) = await review.due(deps, org.owner, only_due=True, page=Page(10))
            assert (due.record_id, due.rehearsal.box) == (id, box)
            await lifecycle.validate(deps, org.owner, id, holds=True)
            assert await review.due(deps, org.owner, only_due=True, page=Page(10)) == []
        (later,) = await review.due(deps, org.owner, only_due=False, page=Page(10))
        assert later.rehearsal.due_at == clock.now + timedelta(days=60)
        assert (await stored(deps, org, id)).signals.last_validated_at == clock.now


async def test_a_refuted_record_goes_to_box_one_and_to_the_queue(org: Company) -> None:
    clock = FixedClock()
    async with deps_on(org.deps.db, clock=clock) as deps:
        (id,) = await saved(deps, org, "We decided for 185.", label="decision")
        await review.due(deps, org.owner, only_due=True, page=Page(10))
        await lifecycle.validate(deps, org.owner, id, holds=True)
        refuted = await lifecycle.validate(deps, org.owner, id, holds=False, reason="no more")
        assert refuted.standing is Standing.CURRENT
        (due,) = await review.due(deps, org.owner, only_due=False, page=Page(10))
        assert (due.rehearsal.box, due.rehearsal.due_at) == (1, clock.now + timedelta(days=1))
        await lifecycle.validate(deps, org.owner, id, holds=False)
        (proposal,) = await review.queue(deps, org.owner, PENDING, Page(10))
        assert (proposal.kind, proposal.subject_ids, proposal.shape) == (
            ProposalKind.ARCHIVE, (id,), "decision [refuted, position]"
        )  # fmt: skip


async def test_records_by_id_still_answer_for_the_archived(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "Still readable by id.")
    await lifecycle.archive(deps, org.owner, id)
    assert id in await records.by_ids(deps, org.owner, [id])
