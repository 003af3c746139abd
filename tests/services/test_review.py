"""Deciding on proposals: what keeping changes, that reverting restores exactly, and that one of two deciders wins."""

import asyncio
import itertools
from dataclasses import replace

import pytest

from graph_mem.core.model import Entity, Page, Record, RecordId, Standing
from graph_mem.core.proposals import Decision, Proposal, ProposalKind, ProposalState
from graph_mem.core.slots import FactOutcome
from graph_mem.errors import Conflict, Forbidden, NotFound
from graph_mem.services import Deps, facts, filing, lifecycle, records, relations, review
from graph_mem.services.facts import NewFact
from graph_mem.store.reviews import Filter
from tests.people import Company, company, work_off
from tests.services.lives import everything, file, proposed, saved, stored

KEEP, REVERT = Decision.KEEP, Decision.REVERT
SIMPLE = [ProposalKind.ARCHIVE, ProposalKind.DEMOTE, ProposalKind.PROMOTE_MEMORY, ProposalKind.REVALIDATE]
PENDING = Filter(None, (ProposalState.PENDING,))


@pytest.mark.parametrize("kind", SIMPLE)
async def test_reverting_a_kept_proposal_restores_every_property_and_edge(
    deps: Deps, org: Company, kind: ProposalKind
) -> None:
    label = "decision" if kind is ProposalKind.REVALIDATE else "note"
    (id,) = await saved(deps, org, "Caroline: the rate is 185 euros.", label=label)
    await lifecycle.enrol(deps, org.owner, since=deps.clock().replace(year=2000))
    one = await proposed(deps, org, kind, id)
    before = await everything(deps, org)
    kept = await review.decide(deps, org.owner, one.id, KEEP)
    assert kept.state is ProposalState.KEPT
    assert await everything(deps, org) != before
    reverted = await review.decide(deps, org.owner, one.id, REVERT)
    assert reverted.state is ProposalState.REVERTED
    assert await everything(deps, org) == before


async def test_reverting_a_pending_proposal_changes_nothing(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "An ordinary note.")
    before = await everything(deps, org)
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    await review.decide(deps, org.owner, one.id, REVERT)
    assert await everything(deps, org) == before


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_three_decisions_on_one_record_are_reverted_in_any_order(
    deps: Deps, org: Company, order: tuple[int, ...]
) -> None:
    (id,) = await saved(deps, org, f"A note that is decided about three times, {order}.")
    before = await everything(deps, org)
    kept = []
    for kind in (ProposalKind.PROMOTE_MEMORY, ProposalKind.DEMOTE, ProposalKind.ARCHIVE):
        one = await proposed(deps, org, kind, id)
        kept.append(await review.decide(deps, org.owner, one.id, KEEP))
    for index in order:
        await review.decide(deps, org.owner, kept[index].id, REVERT)
    assert await everything(deps, org) == before


async def test_what_cannot_be_restored_exactly_is_refused_and_nothing_changes(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "A note that is restored by hand.")
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    await review.decide(deps, org.owner, one.id, KEEP)
    await lifecycle.restore(deps, org.owner, id)
    before = await everything(deps, org)
    with pytest.raises(Conflict, match="cannot be restored exactly"):
        await review.decide(deps, org.owner, one.id, REVERT)
    assert await everything(deps, org) == before


async def test_an_archived_record_that_was_superseded_since_comes_back_once_that_was_wrong(
    deps: Deps, org: Company
) -> None:
    (id,) = await saved(deps, org, "The rate is 185 euros.")
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    before = (await stored(deps, org, id)).interval
    await review.decide(deps, org.owner, one.id, KEEP)
    (newer,) = await saved(deps, org, "The rate is 210 euros.")
    link = (await relations.relate(deps, org.owner, from_id=newer, to_id=id, kind="SUPERSEDES")).relation
    with pytest.raises(Conflict, match="superseded meanwhile"):
        await review.decide(deps, org.owner, one.id, REVERT)
    assert (await stored(deps, org, id)).standing is Standing.ARCHIVED
    await relations.correct(deps, org.owner, link.id, reason="Another rate.")
    await review.decide(deps, org.owner, one.id, REVERT)
    back = await stored(deps, org, id)
    assert (back.standing, back.interval) == (Standing.CURRENT, before)


@pytest.mark.parametrize("second", [KEEP, REVERT])
async def test_of_two_deciders_one_wins_and_the_other_gets_conflict(deps: Deps, org: Company, second: Decision) -> None:
    (id,) = await saved(deps, org, f"A note that two decide about, {second}.")
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    outcomes = await asyncio.gather(
        review.decide(deps, org.owner, one.id, KEEP),
        review.decide(deps, org.owner, one.id, second),
        return_exceptions=True,
    )
    assert [isinstance(outcome, Conflict) for outcome in outcomes].count(True) == 1
    assert [isinstance(outcome, BaseException) for outcome in outcomes].count(True) == 1


async def test_a_stale_version_is_a_conflict_that_tells_the_current_one(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "A note with a stale decider.")
    one = await proposed(deps, org, ProposalKind.DEMOTE, id)
    await review.decide(deps, org.owner, one.id, KEEP, expected_version=1)
    with pytest.raises(Conflict) as refused:
        await review.decide(deps, org.owner, one.id, REVERT, expected_version=1)
    assert refused.value.current_version == 2


async def test_a_proposal_whose_subject_moved_on_cannot_be_kept(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "A note that is archived by hand first.")
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    await lifecycle.archive(deps, org.owner, id)
    with pytest.raises(Conflict, match="ARCHIVED by now, expected CURRENT"):
        await review.decide(deps, org.owner, one.id, KEEP)


async def test_keeping_promotes_with_the_blended_score_as_starting_strength(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "An observation worth more.")
    one = await proposed(deps, org, ProposalKind.PROMOTE_MEMORY, id)
    await review.decide(deps, org.owner, one.id, KEEP)
    memory = await stored(deps, org, id)
    assert (memory.label, memory.importance, memory.signals.starting_strength) == ("insight", 0.6, 0.7)


async def test_a_filed_proposal_is_filed_once(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "A note that is proposed twice.")
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    again = replace(one, id=deps.new_id("prop"))
    assert await file(deps, again) == []
    assert [p.id for p in await review.queue(deps, org.owner, PENDING, Page(10))] == [one.id]


async def test_another_organization_gets_the_answer_for_an_unknown_id(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "A note of one organization.")
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    stranger = (await company(deps)).owner
    for asked in (one.id, deps.new_id("prop"), "nonsense"):
        with pytest.raises(NotFound):
            await review.decide(deps, stranger, asked, KEEP)
    assert await review.queue(deps, stranger, PENDING, Page(10)) == []
    assert await review.count(deps, org.owner, PENDING) == 1


async def test_a_member_sees_the_queue_and_decides_nothing(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "A note that a member cannot decide about.")
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    member = await org.member("Mia")
    assert [p.id for p in await review.queue(deps, member, PENDING, Page(10))] == [one.id]
    with pytest.raises(Forbidden):
        await review.decide(deps, member, one.id, KEEP)


async def test_a_proposal_about_a_private_record_is_its_owners_alone(deps: Deps, org: Company) -> None:
    member = await org.member("Mia")
    (id,) = await saved(deps, org, "My own note.", by=member, private=True)
    refuted = await lifecycle.validate(deps, member, id, holds=False)
    assert refuted.standing is Standing.CURRENT
    assert await review.queue(deps, org.owner, PENDING, Page(10)) == []
    (one,) = await review.queue(deps, member, PENDING, Page(10))
    assert (await review.decide(deps, member, one.id, KEEP)).state is ProposalState.KEPT


async def test_human_decisions_alone_make_trust(deps: Deps, org: Company) -> None:
    ids = await saved(deps, org, *(f"Weak note number {i}." for i in range(3)))
    for id, decision in zip(ids, (KEEP, KEEP, REVERT), strict=True):
        await review.decide(deps, org.owner, (await proposed(deps, org, ProposalKind.ARCHIVE, id)).id, decision)
    (stat,) = await review.trusted(deps, org.owner)
    assert (stat.count.shape, stat.count.kept, stat.count.reverted, stat.auto_keep) == ("note", 2, 1, False)


async def test_the_queue_is_followed_as_it_changes(deps: Deps, org: Company) -> None:
    (id,) = await saved(deps, org, "A note whose proposal is followed.")
    events = review.watch(deps, org.owner, None, since=deps.clock())
    coming = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0.05)
    one = await proposed(deps, org, ProposalKind.ARCHIVE, id)
    filed = await asyncio.wait_for(coming, 5)
    assert (filed.proposal.id, filed.remaining) == (one.id, 1)
    await review.decide(deps, org.owner, one.id, KEEP)
    decided = await asyncio.wait_for(anext(events), 5)
    assert (decided.proposal.state, decided.remaining) == (ProposalState.KEPT, 0)


async def test_a_provisional_fact_waits_in_the_queue_and_touches_nothing(deps: Deps, org: Company) -> None:
    active, proposal = await _rate_and_proposal(deps, org)
    found = (await facts_of(deps, org, active, proposal.subject_ids[0])).values()
    assert [fact.standing for fact in found] == [Standing.CURRENT, Standing.PROVISIONAL]
    assert proposal.kind is ProposalKind.PROMOTE_FACT


async def test_keeping_a_promotion_supersedes_and_reverting_restores_both_exactly(deps: Deps, org: Company) -> None:
    active, proposal = await _rate_and_proposal(deps, org)
    before = await everything(deps, org)
    await review.decide(deps, org.owner, proposal.id, KEEP)
    kept = await facts_of(deps, org, active, proposal.subject_ids[0])
    assert [fact.standing for fact in kept.values()] == [Standing.SUPERSEDED, Standing.CURRENT]
    await review.decide(deps, org.owner, proposal.id, REVERT)
    assert await everything(deps, org) == before


async def test_a_reverted_promotion_is_not_brought_back_by_extraction_and_is_by_a_person(
    deps: Deps, org: Company
) -> None:
    _, proposal = await _rate_and_proposal(deps, org)
    await review.decide(deps, org.owner, proposal.id, KEEP)
    await review.decide(deps, org.owner, proposal.id, REVERT)
    again = NewFact(subject="Northwind", relation="rate", statement="Northwind pays 210 euros.")
    extracted = await facts.save(deps, org.owner, replace(again, extracted=True))
    assert extracted.outcome is FactOutcome.REJECTED_BEFORE
    assert (await facts.save(deps, org.owner, again)).outcome is FactOutcome.SUPERSEDED


async def test_a_declined_fact_is_rejected_and_the_active_one_stays(deps: Deps, org: Company) -> None:
    active, proposal = await _rate_and_proposal(deps, org)
    await review.decide(deps, org.owner, proposal.id, REVERT)
    found = await facts_of(deps, org, active, proposal.subject_ids[0])
    assert [fact.standing for fact in found.values()] == [Standing.CURRENT, Standing.REJECTED]


async def test_a_promotion_that_was_superseded_since_cannot_be_reverted(deps: Deps, org: Company) -> None:
    _, proposal = await _rate_and_proposal(deps, org)
    await review.decide(deps, org.owner, proposal.id, KEEP)
    await facts.save(deps, org.owner, NewFact(subject="Northwind", relation="rate", statement="It pays 230 euros."))
    with pytest.raises(Conflict, match="cannot be restored exactly"):
        await review.decide(deps, org.owner, proposal.id, REVERT)


async def _rate_and_proposal(deps: Deps, org: Company) -> tuple[RecordId, Proposal]:
    """The active rate of a client, and the pending proposal of another one by a member."""
    rate = NewFact(subject="Northwind", relation="rate", statement="Northwind pays 185 euros.")
    active = await facts.save(deps, org.owner, rate)
    member = await org.member("Mia")
    saved = await facts.save(deps, member, replace(rate, statement="Northwind pays 210 euros."))
    assert active.fact is not None
    assert saved.outcome is FactOutcome.PROVISIONAL
    await work_off(deps, org.id)
    (proposal,) = await review.queue(deps, org.owner, PENDING, Page(10))
    return active.fact.id, proposal


async def facts_of(deps: Deps, org: Company, *ids: str) -> dict[RecordId, Record]:
    found = await records.by_ids(deps, org.owner, [RecordId(id) for id in ids])
    return {RecordId(id): found[RecordId(id)] for id in ids}


async def test_merged_entities_are_one_and_reverting_takes_them_apart_exactly(deps: Deps, org: Company) -> None:
    first, second = await saved(deps, org, "Ana Garcia: the rate is 185.", "Ana García: we ship on Monday.")
    heir, gone = [(await entity_of(deps, org, id)) for id in (first, second)]
    before = await everything(deps, org)
    one = filing.proposal(
        deps, heir.place, ProposalKind.MERGE_ENTITIES, [heir.id, gone.id],
        shape="person", score=0.9, gate="a test", reason="Alike.", basis=(),
    )  # fmt: skip
    await file(deps, one)
    await review.decide(deps, org.owner, one.id, KEEP)
    assert (await entity_of(deps, org, second)).id == heir.id
    (third,) = await saved(deps, org, "Ana García: and I said it again.")
    assert (await entity_of(deps, org, third)).id == heir.id
    await review.decide(deps, org.owner, one.id, REVERT)
    after = await everything(deps, org)
    touched = {key for key in before if before[key] != after[key]}
    assert {key.partition(" ")[0] for key in touched} <= {"Entity"}
    assert (await entity_of(deps, org, second)).id == gone.id


async def entity_of(deps: Deps, org: Company, id: RecordId) -> Entity:
    (link,) = (await records.entity_links(deps, org.owner, [id]))[id]
    return link.entity
