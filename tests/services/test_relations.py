"""Links between records on a real Neo4j: who retires whom, and what a correction restores."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from graph_mem.core.model import Fact, Memory, Page, Principal, Record, RecordId, RelationState, Role, Standing
from graph_mem.errors import Conflict, Forbidden, IdempotencyKeyReused, InvalidInput, NotFound
from graph_mem.services import Deps, capture, facts, history, records, relations, settings
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.relations import NewRelation, Related
from tests.people import Company, company, work_off

ALL = Page(first=100)


async def keep(deps: Deps, who: Principal, text: str, label: str = "note", **more: Any) -> RecordId:
    return (await capture.accept(deps, who, NewMemory(text=text, label=label, **more))).memory.id


async def link(deps: Deps, who: Principal, newer: str, older: str, kind: str = "SUPERSEDES", **more: Any) -> Related:
    return await relations.relate(deps, who, from_id=newer, to_id=older, kind=kind, **more)


async def read(deps: Deps, who: Principal, id: RecordId) -> Record:
    return (await records.by_ids(deps, who, [id]))[id]


async def standings(deps: Deps, who: Principal, *ids: RecordId) -> list[Standing]:
    return [(await read(deps, who, id)).standing for id in ids]


async def test_a_link_retires_the_older_memory_in_the_record_and_its_chunks(deps: Deps, org: Company) -> None:
    old = await keep(deps, org.owner, "The rate is 100.")
    await work_off(deps, org.id)
    new = await keep(deps, org.owner, "The rate is 120.")
    made = (await link(deps, org.owner, new, old, reason="raised in May")).relation
    assert (made.retires, made.reason, made.by) == (True, "raised in May", org.owner.user_id)
    assert await standings(deps, org.owner, new, old) == [Standing.CURRENT, Standing.SUPERSEDED]
    assert await chunk_standings(deps, old) == ["SUPERSEDED"]
    events = await history.history(deps, org.owner, old, ALL)
    assert [event.kind for event in events] == ["saved", "superseded"]
    assert events[-1].detail == {"relation": made.id, "kind": "SUPERSEDES", "record": new}


async def chunk_standings(deps: Deps, id: RecordId) -> list[str]:
    found = await deps.db.run("MATCH (c:Chunk {memoryId: $id}) RETURN c.standing AS standing", id=id)
    return [row["standing"] for row in found]


@pytest.mark.parametrize(
    ("newer", "older", "retires"),
    [("note", "note", True), ("note", "decision", False), ("decision", "note", True), ("decision", "decision", True)],
)
async def test_only_a_position_replaces_a_position(
    deps: Deps, org: Company, newer: str, older: str, retires: bool
) -> None:
    old, new = await keep(deps, org.owner, "Old.", older), await keep(deps, org.owner, "New.", newer)
    assert (await link(deps, org.owner, new, old)).relation.retires is retires
    assert await standings(deps, org.owner, old) == [Standing.SUPERSEDED if retires else Standing.CURRENT]
    assert len(await relations.of_record(deps, org.owner, old, ALL)) == 1


async def test_a_correction_restores_unless_another_link_retires(deps: Deps, org: Company) -> None:
    old = await keep(deps, org.owner, "Old.")
    await work_off(deps, org.id)
    first, second = await keep(deps, org.owner, "First."), await keep(deps, org.owner, "Second.")
    links = [(await link(deps, org.owner, newer, old)).relation for newer in (first, second)]
    await relations.correct(deps, org.owner, links[0].id, reason="not the same")
    assert await standings(deps, org.owner, old) == [Standing.SUPERSEDED]
    corrected = await relations.correct(deps, org.owner, links[1].id, reason="nor this")
    assert corrected.state is RelationState.RETRACTED
    memory = await read(deps, org.owner, old)
    assert memory.standing is Standing.CURRENT
    assert len(memory.interval.gaps) == 1
    assert await chunk_standings(deps, old) == ["CURRENT"]
    with pytest.raises(Conflict):
        await relations.correct(deps, org.owner, links[1].id, reason="again")
    kinds = [event.kind for event in await history.history(deps, org.owner, old, ALL)]
    assert kinds == ["saved", "superseded", "linked", "restored"]
    chain = await history.chain(deps, org.owner, old)
    assert chain
    assert {one.state for one in chain.links} == {RelationState.RETRACTED}
    assert {record.id for record in chain.heads} == {old, first, second}


async def test_a_restored_memory_whose_text_was_saved_again_leads_to_the_copy(deps: Deps, org: Company) -> None:
    old, new = await keep(deps, org.owner, "Old."), await keep(deps, org.owner, "New.")
    await work_off(deps, org.id)
    made = (await link(deps, org.owner, new, old)).relation
    copy = await keep(deps, org.owner, "Old.")
    await work_off(deps, org.id)
    await relations.correct(deps, org.owner, made.id, reason="wrong")
    assert await standings(deps, org.owner, old, copy) == [Standing.FOLDED, Standing.CURRENT]
    assert (await records.lineage(deps, org.owner, [old]))[old].folded_into == copy


async def test_self_links_and_rings_are_refused(deps: Deps, org: Company) -> None:
    a, b, c = [await keep(deps, org.owner, text) for text in ("A.", "B.", "C.")]
    await link(deps, org.owner, b, a)
    made = (await link(deps, org.owner, c, b)).relation
    for newer, older in ((a, a), (a, b), (a, c)):
        with pytest.raises(InvalidInput):
            await link(deps, org.owner, newer, older)
    await relations.correct(deps, org.owner, made.id, reason="the wrong way round")
    assert (await link(deps, org.owner, b, c)).relation.retires


async def test_links_that_close_a_ring_together_do_not_both_pass(deps: Deps, org: Company) -> None:
    for _ in range(4):
        a, b, c, d = [await keep(deps, org.owner, f"{name} {deps.new_id('mem')}") for name in "ABCD"]
        await link(deps, org.owner, a, b)
        await link(deps, org.owner, c, d)
        tried = await asyncio.gather(link(deps, org.owner, b, c), link(deps, org.owner, d, a), return_exceptions=True)
        assert sum(isinstance(one, InvalidInput) for one in tried) == 1
        assert sum(isinstance(one, Related) for one in tried) == 1


async def test_a_private_record_retires_no_shared_one_nor_the_other_way_round(deps: Deps, org: Company) -> None:
    shared = await keep(deps, org.owner, "Shared.")
    private = await keep(deps, org.owner, "Private.", private=True)
    for newer, older in ((private, shared), (shared, private)):
        with pytest.raises(InvalidInput, match="partition"):
            await link(deps, org.owner, newer, older)
    with pytest.raises(InvalidInput, match="partition"):
        await keep(deps, org.owner, "X.", private=True, relations=(NewRelation("SUPERSEDES", shared),))
    assert await standings(deps, org.owner, shared, private) == [Standing.CURRENT] * 2


async def test_what_one_cannot_see_is_not_found_and_refuses_the_whole_capture(deps: Deps, org: Company) -> None:
    other, alice = await company(deps), await org.member("alice")
    mine = await keep(deps, org.owner, "Mine.")
    unseen = [
        await keep(deps, other.owner, "Foreign."),
        await keep(deps, alice, "Private.", private=True),
        RecordId(deps.new_id("mem")),
    ]
    for id in unseen:
        for newer, older in ((mine, id), (id, mine)):
            with pytest.raises(NotFound):
                await link(deps, org.owner, newer, older)
        wanted = (NewRelation("SUPERSEDES", mine), NewRelation("supports", id))
        with pytest.raises(NotFound):
            await keep(deps, org.owner, "Captured.", relations=wanted)
    assert await standings(deps, org.owner, mine) == [Standing.CURRENT]
    found = await deps.db.run("MATCH (m:Memory {org: $org}) RETURN collect(m.text) AS texts", org=org.id)
    assert sorted(found[0]["texts"]) == ["Mine.", "Private."]


async def test_relations_travel_with_a_capture(deps: Deps, org: Company) -> None:
    old = await keep(deps, org.owner, "We ship on Friday.", "decision")
    wanted = (NewRelation("SUPERSEDES", old, "moved"), NewRelation("supports", old), NewRelation("SUPERSEDES", old))
    new = await keep(deps, org.owner, "We ship on Monday.", "decision", relations=wanted)
    assert await standings(deps, org.owner, old, new) == [Standing.SUPERSEDED, Standing.CURRENT]
    assert sorted(one.kind for one in await relations.of_record(deps, org.owner, new, ALL)) == [
        "SUPERSEDES",
        "supports",
    ]


@pytest.mark.parametrize("kind", ["non-compliant", "für", "由...组成", "a`b'\"c}) DETACH DELETE n //"])
async def test_a_kind_is_a_property_never_a_type(deps: Deps, org: Company, kind: str) -> None:
    await settings.update_vocabulary(
        deps, org.owner, expected_version=0, change=lambda v: replace(v, relation_kinds=(kind,)), detail={}
    )
    a, b = await keep(deps, org.owner, "A."), await keep(deps, org.owner, "B.")
    assert (await link(deps, org.owner, a, b, kind)).relation.kind == kind
    (found,) = await relations.of_record(deps, org.owner, b, ALL)
    assert (found.kind, found.retires) == (kind, False)
    assert await standings(deps, org.owner, b) == [Standing.CURRENT]


async def test_an_unknown_kind_is_refused(deps: Deps, org: Company) -> None:
    a, b = await keep(deps, org.owner, "A."), await keep(deps, org.owner, "B.")
    with pytest.raises(InvalidInput, match="Unknown relation kind"):
        await link(deps, org.owner, a, b, "SUPERSEDED")


async def test_the_same_link_is_made_once_and_a_key_replays(deps: Deps, org: Company) -> None:
    a, b = await keep(deps, org.owner, "A."), await keep(deps, org.owner, "B.")
    made = await asyncio.gather(*(link(deps, org.owner, a, b, "supports") for _ in range(5)))
    assert len({one.relation.id for one in made}) == 1
    keyed = await link(deps, org.owner, b, a, "supports", idempotency_key="k")
    again = await link(deps, org.owner, b, a, "supports", idempotency_key="k")
    assert (again.relation, again.replayed) == (keyed.relation, True)
    with pytest.raises(IdempotencyKeyReused):
        await link(deps, org.owner, b, a, "supports", reason="other", idempotency_key="k")


async def test_superseding_a_folded_copy_retires_what_stands_for_it(deps: Deps, org: Company) -> None:
    first, copy = await keep(deps, org.owner, "Same."), await keep(deps, org.owner, "Same.")
    await work_off(deps, org.id)
    folded, standing_for_it = (copy, first) if (await standings(deps, org.owner, copy)) == [Standing.FOLDED] else (
        first, copy)  # fmt: skip
    new = await keep(deps, org.owner, "New.")
    assert (await link(deps, org.owner, new, folded)).relation.to_id == standing_for_it
    assert await standings(deps, org.owner, standing_for_it) == [Standing.SUPERSEDED]


async def say(deps: Deps, who: Principal, statement: str) -> Fact:
    saved = await facts.save(deps, who, NewFact(subject="Ana", relation="salary", statement=statement))
    assert saved.fact
    return saved.fact


async def test_correcting_a_replaced_fact_gives_it_its_seat_back(deps: Deps, org: Company) -> None:
    old, new = await say(deps, org.owner, "100k."), await say(deps, org.owner, "110k.")
    chain = await history.chain(deps, org.owner, new.id)
    assert chain
    await relations.correct(deps, org.owner, chain.links[0].id, reason="another Ana")
    assert await standings(deps, org.owner, old.id, new.id) == [Standing.CURRENT, Standing.SUPERSEDED]
    restored = await read(deps, org.owner, old.id)
    assert restored.interval.valid_to == old.interval.valid_to
    third = await say(deps, org.owner, "120k.")
    assert await standings(deps, org.owner, old.id, third.id) == [Standing.SUPERSEDED, Standing.CURRENT]
    await say(deps, org.owner, "130k.")
    longer = await history.chain(deps, org.owner, third.id)
    assert longer
    inner = next(one for one in longer.links if one.to_id == old.id and one.state is RelationState.ACTIVE)
    with pytest.raises(Conflict, match="active fact of its slot"):
        await relations.correct(deps, org.owner, inner.id, reason="no")
    assert await standings(deps, org.owner, old.id) == [Standing.SUPERSEDED]


async def test_a_memory_and_a_fact_do_not_supersede_each_other(deps: Deps, org: Company) -> None:
    fact, memory = await say(deps, org.owner, "100k."), await keep(deps, org.owner, "110k.")
    for newer, older in ((fact.id, memory), (memory, fact.id)):
        with pytest.raises(InvalidInput, match="supersedes its like"):
            await link(deps, org.owner, newer, older)
    assert (await link(deps, org.owner, memory, fact.id, "supports")).relation.kind == "supports"


async def test_a_fact_linked_by_hand_leaves_its_slot_and_needs_the_right_to_write_there(
    deps: Deps, org: Company
) -> None:
    a = await facts.save(deps, org.owner, NewFact(subject="Acme", relation="rate", statement="100."))
    b = await facts.save(deps, org.owner, NewFact(subject="Acme Corp", relation="rate", statement="120."))
    assert a.fact
    assert b.fact
    with pytest.raises(Forbidden):
        await link(deps, await org.member("mia", Role.MEMBER), b.fact.id, a.fact.id)
    await link(deps, org.owner, b.fact.id, a.fact.id)
    assert await standings(deps, org.owner, a.fact.id) == [Standing.SUPERSEDED]
    again = await facts.save(deps, org.owner, NewFact(subject="Acme", relation="rate", statement="130."))
    assert again.revoked is None


async def test_a_chain_of_memories_may_fork_and_join(deps: Deps, org: Company) -> None:
    a, b, c, d = [await keep(deps, org.owner, text) for text in ("A.", "B.", "C.", "D.")]
    for newer, older in ((b, a), (c, a), (d, b), (d, c)):
        await link(deps, org.owner, newer, older)
    chain = await history.chain(deps, org.owner, b)
    assert chain
    assert chain.records[0].id == a
    assert [record.id for record in chain.heads] == [d]
    assert len(chain.links) == 4
    assert all(isinstance(record, Memory) for record in chain.records)
