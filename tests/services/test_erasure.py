"""Erasing: the words are nowhere, what does not depend on them stays, and nothing brings them back."""

import asyncio
from collections.abc import Sequence

import pytest

from graph_mem.core.lifecycle import ReingestPolicy
from graph_mem.core.model import Page, RecordId, Standing
from graph_mem.core.proposals import Decision, ProposalKind
from graph_mem.core.retrieval import Query
from graph_mem.errors import Conflict, Forbidden, InvalidInput, NotFound
from graph_mem.services import (
    Deps,
    canon,
    capture,
    erasure,
    facts,
    history,
    lifecycle,
    pins,
    recall,
    records,
    relations,
    review,
    scratch,
    settings,
)
from graph_mem.services.canon import NewPolicy, NewValue
from graph_mem.services.capture import NewMemory
from graph_mem.services.erasure import Erased
from graph_mem.services.facts import NewFact
from graph_mem.store.db import Tx, rows
from graph_mem.store.remnants import Remnant
from tests.people import Company, work_off
from tests.services.lives import everything, proposed, saved, stored

SECRET = "Zebulon Quux earns exactly 314159 doubloons a month, strictly between us."
SIBLING = "Ana earns her salary every month, as everybody knows."


async def erase(deps: Deps, org: Company, id: RecordId, **given: bool) -> Erased:
    return await erasure.erase(deps, org.owner, id, confirm_id=id, reason="asked to", **given)


async def remnants(deps: Deps, org: Company, needles: Sequence[str]) -> list[Remnant]:
    return await erasure.remnants(deps, needles, org_id=org.id)


async def test_erased_words_are_in_no_property_of_any_node_or_edge(deps: Deps, org: Company) -> None:
    id, sibling = await saved(deps, org, SECRET, SIBLING)
    other = await capture.accept(deps, org.owner, NewMemory(text=SECRET + " And more."), idempotency_key="once")
    await recall.search_page(deps, org.owner, Query(text=SECRET), first=10)
    await deps.traces.flush()
    await relations.relate(deps, org.owner, from_id=sibling, to_id=id, kind="supports", reason=f"because {SECRET}")
    one = await proposed(deps, org, ProposalKind.PROMOTE_MEMORY, id, reason=f"He said: {SECRET}")
    await review.decide(deps, org.owner, one.id, Decision.KEEP, reason=SECRET)
    await proposed(deps, org, ProposalKind.DEMOTE, id)
    await lifecycle.archive(deps, org.owner, id, reason=SECRET)
    before = await remnants(deps, org, [SECRET])
    assert {remnant.what for remnant in before} >= {"Memory", "Chunk", "Trace", "RELATES", "Event"}
    erased = await erase(deps, org, id)
    left = await remnants(deps, org, erased.needles)
    assert {remnant.id for remnant in left} == {other.memory.id}


async def test_the_same_words_elsewhere_are_named_to_whoever_may_read_them_and_stay(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, SECRET)
    policy = await canon.save_policy(deps, org.owner, NewPolicy(name="Pay", text=f"Never say: {SECRET}"))
    variable = await canon.set_variable(deps, org.owner, NewValue(name="pay", value=SECRET))
    quoting, cited, sibling = await saved(deps, org, f"He said: {SECRET}", "His pay is known.", SIBLING)
    said = NewFact(subject="Zebulon", relation="pay", statement=SECRET, source_ids=(id, cited))
    fact = (await facts.save(deps, org.owner, said)).fact
    assert fact is not None
    await pins.pin(deps, org.owner, pins.NewPin(memory_id=sibling, slot=SECRET))
    mia = await org.member("Mia")
    (hers,) = await saved(deps, org, SECRET, by=mia, private=True)
    note, her_note = [(await scratch.add(deps, who, run_id="r1", text=SECRET)).id for who in (org.owner, mia)]
    dry = await erase(deps, org, id, dry_run=True)
    done = await erase(deps, org, id)
    assert (dry.elsewhere, dry.counts) == (done.elsewhere, done.counts)
    named = {(one.what, one.id.partition("/")[0], one.property) for one in done.elsewhere}
    assert {(policy.id, "text"), (variable.id, "value"), (quoting, "text"), (fact.id, "statement"), (note, "text")} <= {
        (id, property) for _, id, property in named
    }
    assert {what for what, _, _ in named} == {
        "Memory",
        "Fact",
        "Policy",
        "PolicyVersion",
        "Variable",
        "VariableVersion",
        "Pin",
        "ScratchNote",
    }
    assert done.counts["elsewhere"] == len(done.elsewhere)
    assert not {hers, her_note} & {one.id for one in done.elsewhere}
    assert {one.id for one in await remnants(deps, org, done.needles)} >= {
        policy.id,
        variable.id,
        quoting,
        fact.id,
        hers,
        note,
        her_note,
    }
    clean = await erase(deps, org, sibling)
    assert clean.elsewhere == ()


async def test_counts_of_an_erasure_are_of_what_the_eraser_may_see(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, SECRET)
    mia = await org.member("Mia")
    await saved(deps, org, f"{SECRET} So I heard.", by=mia, private=True)
    for who in (org.owner, mia):
        await recall.search_page(deps, who, Query(text=SECRET), first=10)
    await deps.traces.flush()
    assert (await erase(deps, org, id, dry_run=True)).counts["traces"] == 1
    done = await erase(deps, org, id)
    assert done.counts["traces"] == 1
    assert {one.what for one in await remnants(deps, org, [SECRET])} == {"Memory", "Chunk"}


async def test_erased_is_found_by_no_search_and_its_sibling_is(deps: Deps, org: Company) -> None:
    id, sibling = await saved(deps, org, SECRET, SIBLING)
    await erase(deps, org, id)
    for given in ({}, {"include_archived": True}):
        page = await recall.search_page(deps, org.owner, Query(text="earns every month doubloons", **given), first=10)
        assert [hit.record.id for hit in page.hits] == [sibling]
    assert await records.by_ids(deps, org.owner, [id]) == {}
    with pytest.raises(NotFound):
        await erase(deps, org, id)


async def test_a_dry_run_counts_what_erasing_touches_and_changes_nothing(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "Zebulon Quux: I earn 314159 doubloons.")
    before = await everything(deps, org)
    planned = await erase(deps, org, id, dry_run=True)
    assert await everything(deps, org) == before
    assert {name: planned.counts[name] for name in ("memories", "chunks", "entities", "events")} == {
        "memories": 1, "chunks": 1, "entities": 1, "events": 1
    }  # fmt: skip
    done = await erase(deps, org, id)
    assert (done.ids, done.counts) == (planned.ids, planned.counts)


async def test_history_still_answers_and_tells_the_name_unless_erased_strictly(deps: Deps, org: Company) -> None:
    first, second = await saved(deps, org, SECRET, title="Pay"), await saved(deps, org, SIBLING, title="Salary")
    await erase(deps, org, first[0])
    await erase(deps, org, second[0], strict=True)
    kept = await history.history(deps, org.owner, first[0], Page(10))
    assert [event.kind for event in kept] == ["saved", "erased"]
    assert kept[-1].detail == {"name": "Pay", "strict": False, "reason": "asked to"}
    assert (await history.history(deps, org.owner, second[0], Page(10)))[-1].detail == {
        "strict": True, "reason": "asked to"
    }  # fmt: skip
    assert not [one for one in await remnants(deps, org, ["Salary"]) if one.id == second[0]]


async def test_a_fact_with_another_source_stays_with_one_source_fewer_and_the_other_goes(
    deps: Deps, org: Company
) -> None:
    one, two = await saved(deps, org, SECRET, SIBLING)
    shared = NewFact(subject="Ana", relation="job", statement="Ana runs the bank.", source_ids=(one, two))
    alone = NewFact(subject="Zebulon", relation="pay", statement="Zebulon earns 314159.", source_ids=(one,))
    kept, gone = [(await facts.save(deps, org.owner, new)).fact for new in (shared, alone)]
    assert kept is not None
    assert gone is not None
    erased = await erase(deps, org, one)
    assert set(erased.ids) == {one, gone.id}
    found = await records.by_ids(deps, org.owner, [kept.id, gone.id])
    assert {id: fact.standing for id, fact in found.items()} == {kept.id: Standing.CURRENT}
    assert await _sources(deps, kept.id) == [two]
    assert await remnants(deps, org, ["Zebulon earns 314159."]) == []
    again = await facts.save(deps, org.owner, NewFact(subject="Zebulon", relation="pay", statement="It is 100."))
    assert again.fact is not None
    assert again.fact.standing is Standing.CURRENT


async def _sources(deps: Deps, id: RecordId) -> list[str]:
    async def work(tx: Tx) -> list[str]:
        found = await rows(tx, "MATCH (m:Memory)-[:STATES]->(:Fact {id: $id}) RETURN m.id AS id", id=id)
        return [row["id"] for row in found]

    return await deps.db.read(work)


async def test_the_entity_of_the_only_memory_about_it_goes_and_a_shared_one_stays(deps: Deps, org: Company) -> None:
    one, two = await saved(deps, org, "Zebulon Quux: hello Ana.\nAna Garcia: hello.", "Ana Garcia: I am here.")
    names = {link.entity.name for link in (await records.entity_links(deps, org.owner, [one]))[one]}
    assert names == {"Zebulon Quux", "Ana Garcia"}
    await erase(deps, org, one)
    left = await records.entity_page(deps, org.owner, query=None, label=None, page=Page(10))
    assert [entity.name for entity in left] == ["Ana Garcia"]
    assert [link.entity.name for link in (await records.entity_links(deps, org.owner, [two]))[two]] == ["Ana Garcia"]


async def test_every_exact_copy_goes_with_it(deps: Deps, org: Company) -> None:
    (one,) = await saved(deps, org, SECRET)
    (two,) = await saved(deps, org, SECRET)
    assert (await stored(deps, org, two)).standing is Standing.FOLDED
    assert set((await erase(deps, org, two)).ids) == {one, two}
    assert await remnants(deps, org, [SECRET]) == []


async def test_erased_may_be_saved_again_under_a_new_id_and_the_old_history_stays(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, SECRET, source_uri="file:///pay.txt")
    await erase(deps, org, id)
    (again,) = await saved(deps, org, SECRET, source_uri="file:///pay.txt")
    assert again != id
    assert (await stored(deps, org, again)).standing is Standing.CURRENT
    assert [event.kind for event in await history.history(deps, org.owner, id, Page(10))] == ["saved", "erased"]


async def test_where_the_organization_chose_so_what_was_erased_is_refused(deps: Deps, org: Company) -> None:
    await settings.update_lifecycle(deps, org.owner, expected_version=0, changes={"after_erase": ReingestPolicy.REFUSE})
    (id,) = await saved(deps, org, SECRET)
    await erase(deps, org, id)
    with pytest.raises(Conflict, match="erased"):
        await capture.accept(deps, org.owner, NewMemory(text=f"  {SECRET}  "))
    assert await saved(deps, org, SIBLING)


async def test_a_job_under_way_does_not_bring_it_back(deps: Deps, org: Company) -> None:
    id = (await capture.accept(deps, org.owner, NewMemory(text="Zebulon Quux: 314159 doubloons."))).memory.id
    await asyncio.gather(work_off(deps, org.id), erase(deps, org, id))
    await work_off(deps, org.id)
    left = await remnants(deps, org, ["314159 doubloons", "Zebulon Quux"])
    assert left == []


async def test_a_decision_on_an_erased_record_cannot_be_undone_and_says_so(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, SECRET)
    one = await proposed(deps, org, ProposalKind.DEMOTE, id)
    await review.decide(deps, org.owner, one.id, Decision.KEEP)
    await erase(deps, org, id)
    with pytest.raises(Conflict, match="erased"):
        await review.decide(deps, org.owner, one.id, Decision.REVERT)
    (stat,) = await review.trusted(deps, org.owner)
    assert stat.count.kept == 1


async def test_erasing_needs_the_id_twice_a_reason_and_the_right(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, SECRET)
    with pytest.raises(InvalidInput, match="confirmId"):
        await erasure.erase(deps, org.owner, id, confirm_id="mem_x", reason="r")
    with pytest.raises(InvalidInput, match="reason"):
        await erasure.erase(deps, org.owner, id, confirm_id=id, reason=" ")
    with pytest.raises(Forbidden):
        await erasure.erase(deps, await org.member("Mia"), id, confirm_id=id, reason="r")
    assert (await stored(deps, org, id)).text == SECRET


async def test_a_long_text_leaves_no_passage_behind(deps: Deps, org: Company) -> None:
    text = "\n\n".join(f"Paragraph {i} of Zebulon's diary: he counted {i * 314159} doubloons." for i in range(60))
    (id,) = await saved(deps, org, text, label="document")
    erased = await erase(deps, org, id)
    assert len(erased.needles) > 2
    assert await remnants(deps, org, erased.needles) == []
