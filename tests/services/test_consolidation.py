"""The cycle: it files proposals and changes nothing else, none twice, by one leader, and keeps only what it may."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from graph_mem.core.lifecycle import ArchiveMode
from graph_mem.core.model import Page, RecordId, Standing
from graph_mem.core.proposals import Decision, Proposal, ProposalKind, ProposalState
from graph_mem.core.retrieval import Query
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.errors import Forbidden, ServiceUnavailable
from graph_mem.models.claims import StatedClaim
from graph_mem.models.judge import Judged
from graph_mem.services import Deps, capture, consolidation, lifecycle, nightly, recall, review, scanning, settings
from graph_mem.services.capture import NewMemory
from graph_mem.store import leases
from graph_mem.store.db import Tx, rows
from graph_mem.store.reviews import Filter
from tests.people import Company, FixedClock, deps_on, work_off
from tests.services.lives import everything, proposed, saved, stored

KINDS = tuple(ProposalKind)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def then(org: Company, clock: FixedClock) -> AsyncIterator[Deps]:
    """The use cases under a clock that can be moved."""
    async with deps_on(org.deps.db, clock=clock) as made:
        yield made


async def used(deps: Deps, id: RecordId, *, times: int, kinds: int) -> None:
    """As if searches had returned the memory so often, for so many kinds of question."""

    async def work(tx: Tx) -> None:
        statement = (
            "MATCH (m:Memory {id: $id}) SET m.retrievals = $times, m.queryKinds = $kinds, m.lastRetrievedAt = $at"
        )
        at = int(deps.clock().timestamp() * 1000)
        await rows(tx, statement, id=id, times=times, kinds=[f"k{i}" for i in range(kinds)], at=at)

    await deps.db.write(work)


async def queue(deps: Deps, org: Company, *kinds: ProposalKind, state: str = "PENDING") -> list[Proposal]:
    wanted = Filter(kinds or None, (ProposalState(state),))
    return await review.queue(deps, org.owner, wanted, Page(100))


async def test_the_cycle_changes_no_record_and_files_nothing_twice(then: Deps, org: Company, clock: FixedClock) -> None:
    strong, _weak = await saved(then, org, "Ana Garcia works at Acme as CTO.", "The coffee was cold on Tuesday.")
    await used(then, strong, times=12, kinds=6)
    clock.move(days=400)
    first = await consolidation.consolidate(then, org.owner)
    assert first.filed == sum(first.by_kind.values()) > 0
    before = await everything(then, org)
    assert (await consolidation.consolidate(then, org.owner)).filed == 0
    clock.move(days=1)
    assert (await consolidation.consolidate(then, org.owner)).filed == 0
    assert await everything(then, org) == before


async def test_each_kind_of_candidate_is_proposed_with_evidence_and_numbers(
    then: Deps, org: Company, clock: FixedClock
) -> None:
    rising, weak, saturated = await saved(
        then, org, "Pilots convert when the champion is in finance.", "The coffee was cold.", "Please see below."
    )
    await saved(then, org, "Ana Garcia: hello.", "Ana García: hello again.", "We decided for 185.", label="decision")
    await used(then, rising, times=15, kinds=7)
    clock.move(days=300)
    await used(then, saturated, times=60, kinds=1)
    await consolidation.consolidate(then, org.owner)
    clock.move(days=2)
    await consolidation.consolidate(then, org.owner)
    found = {kind: await queue(then, org, kind) for kind in KINDS}
    assert [one.subject_ids for one in found[ProposalKind.PROMOTE_MEMORY]] == [(rising,)]
    assert (weak,) in [one.subject_ids for one in found[ProposalKind.ARCHIVE]]
    assert [one.subject_ids for one in found[ProposalKind.DEMOTE]] == [(saturated,)]
    assert len(found[ProposalKind.MERGE_ENTITIES]) == 1
    assert len(found[ProposalKind.MERGE_ENTITIES][0].evidence_ids) == 2
    assert len(found[ProposalKind.REVALIDATE]) == 3
    (promotion,) = found[ProposalKind.PROMOTE_MEMORY]
    assert promotion.signals["retrievals"] == 15
    assert 0 < promotion.signals["recurrence"] < 1
    assert "threshold" in promotion.gate


async def test_counts_name_the_searches_they_come_from_to_whoever_may_see_those(
    then: Deps, org: Company, clock: FixedClock
) -> None:
    (rising,) = await saved(then, org, "Pilots convert when the champion is in finance.")
    mia = await org.member("Mia")
    await saved(then, org, "Pilots are a mystery to me.", by=mia, private=True)
    traced: dict[str, list[str]] = {"owner": [], "mia": []}
    for turn in range(9):
        who, name = (mia, "mia") if turn % 3 == 0 else (org.owner, "owner")
        clock.move(minutes=1)
        found = await recall.search_page(then, who, Query(text=f"pilots {turn} {'why' * (turn % 2)}"), first=5)
        assert rising in {hit.record.id for hit in found.hits}
        traced[name].insert(0, found.trace.id)
    await recall.search_page(then, org.owner, Query(text="pilots", include_archived=True), first=5)
    await then.traces.flush()
    await used(then, rising, times=9, kinds=7)
    await consolidation.consolidate(then, org.owner)
    clock.move(minutes=1)
    await recall.search_page(then, org.owner, Query(text="pilots later"), first=5)
    await then.traces.flush()
    (one,) = await queue(then, org, ProposalKind.PROMOTE_MEMORY)
    assert await review.retrievals(then, org.owner, [one]) == [traced["owner"]]
    assert await review.retrievals(then, mia, [one]) == [traced["mia"]]


async def test_claims_become_provisional_facts_that_nothing_finds_until_kept(then: Deps, org: Company) -> None:
    (source,) = await saved(then, org, "Ana Garcia works at Acme.")
    await consolidation.consolidate(then, org.owner)
    (one,) = await queue(then, org, ProposalKind.PROMOTE_FACT)
    assert one.evidence_ids == (source,)
    assert one.shape == "fact [extracted]"
    assert one.reason == "Stated by 1 memory, which was retrieved 0 times."
    kept = await review.decide(then, org.owner, one.id, Decision.KEEP)
    assert kept.state is ProposalState.KEPT
    assert (await consolidation.consolidate(then, org.owner)).filed == 0


async def test_more_texts_than_one_cycle_reads_are_read_by_the_next(
    then: Deps, org: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "_TEXTS", 2)
    new = [NewMemory(text=f"{name} works at Acme.") for name in ("Ana Garcia", "Tom Baker", "Li Wei", "Mia Chen")]
    await capture.accept_all(then, org.owner, new, rank=0)
    await work_off(then, org.id)
    filed = [(await consolidation.consolidate(then, org.owner)).by_kind.get("PROMOTE_FACT", 0) for _ in range(4)]
    assert filed == [2, 2, 0, 0]


async def test_a_declined_claim_is_not_proposed_again_from_another_text(then: Deps, org: Company) -> None:
    await saved(then, org, "Ana Garcia works at Acme.")
    await consolidation.consolidate(then, org.owner)
    (one,) = await queue(then, org, ProposalKind.PROMOTE_FACT)
    await review.decide(then, org.owner, one.id, Decision.REVERT)
    await saved(then, org, "As everybody knows: Ana Garcia works at Acme.", "Ana Garcia works at Acme.")
    await consolidation.consolidate(then, org.owner)
    assert [p.subject_ids for p in await queue(then, org, ProposalKind.PROMOTE_FACT) if p.id != one.id] == []


async def test_private_records_are_proposed_to_their_owner_alone(then: Deps, org: Company, clock: FixedClock) -> None:
    member = await org.member("Mia")
    await saved(then, org, "My own cold coffee.", by=member, private=True)
    clock.move(days=400)
    assert (await consolidation.consolidate(then, org.owner)).filed == 0
    assert (await consolidation.cycle(then, org.id)).by_kind == {"ARCHIVE": 1}
    assert await queue(then, org) == []
    assert len(await review.queue(then, member, Filter(None, (ProposalState.PENDING,)), Page(10))) == 1


async def test_trusted_low_risk_changes_are_kept_unasked_and_undone_into_the_queue(
    then: Deps, org: Company, clock: FixedClock
) -> None:
    await settings.update_lifecycle(
        then, org.owner, expected_version=0, changes={"auto_keep": True, "trust_minimum": 3}
    )
    ids = await saved(then, org, *(f"Cold coffee number {i}." for i in range(5)))
    for id in ids[:3]:
        one = await proposed(then, org, ProposalKind.ARCHIVE, id)
        await review.decide(then, org.owner, one.id, Decision.KEEP)
    await saved(then, org, "We decided for cold coffee.", label="decision")
    clock.move(days=400)
    before = (await review.trusted(then, org.owner))[0].count
    report = await consolidation.consolidate(then, org.owner)
    assert report.auto_kept == 2
    kept = await queue(then, org, ProposalKind.ARCHIVE, state="AUTO_KEPT")
    assert {one.subject_ids[0] for one in kept} == set(ids[3:])
    assert (await review.trusted(then, org.owner))[0].count == before
    undone = await review.decide(then, org.owner, kept[0].id, Decision.REVERT)
    assert undone.state is ProposalState.PENDING
    assert (await stored(then, org, RecordId(kept[0].subject_ids[0]))).standing is Standing.CURRENT
    stat = (await review.trusted(then, org.owner))[0]
    assert (stat.count.kept, stat.count.reverted, stat.auto_keep) == (3, 1, False)


async def test_the_archive_is_automatic_only_where_the_organization_chose_it(
    then: Deps, org: Company, clock: FixedClock
) -> None:
    (weak,) = await saved(then, org, "Cold coffee.")
    await saved(then, org, "We decided for cold coffee.", label="decision")
    clock.move(days=400)
    await settings.update_lifecycle(then, org.owner, expected_version=0, changes={"archive": ArchiveMode.OFF})
    await consolidation.consolidate(then, org.owner)
    assert await queue(then, org, ProposalKind.ARCHIVE) == []
    await settings.update_lifecycle(then, org.owner, expected_version=1, changes={"archive": ArchiveMode.AUTO})
    assert (await consolidation.consolidate(then, org.owner)).auto_kept == 1
    assert (await stored(then, org, weak)).standing is Standing.ARCHIVED


async def test_only_owner_and_admin_run_the_cycle(deps: Deps, org: Company) -> None:
    with pytest.raises(Forbidden):
        await consolidation.consolidate(deps, await org.member("Mia"))


class Grader:
    """A judge that finds everything worth keeping."""

    async def judge(self, text: str) -> Judged:
        return Judged(centrality=0.9, confidence=0.9, worth=0.9)


class Broken:
    async def claims(self, text: str, *, vocabulary: Vocabulary) -> tuple[StatedClaim, ...]:
        raise ServiceUnavailable("the model is away")


async def test_a_judge_can_lift_a_record_over_the_gate_that_counting_alone_does_not(then: Deps, org: Company) -> None:
    (id,) = await saved(then, org, "Pilots convert in finance.")
    await used(then, id, times=2, kinds=1)
    await consolidation.consolidate(then, org.owner)
    assert await queue(then, org, ProposalKind.PROMOTE_MEMORY) == []
    await consolidation.consolidate(replace(then, judge=Grader()), org.owner)
    (one,) = await queue(then, org, ProposalKind.PROMOTE_MEMORY)
    assert one.signals["worth"] == 0.9


async def test_a_model_that_is_away_costs_its_claims_and_nothing_else(
    then: Deps, org: Company, clock: FixedClock
) -> None:
    await saved(then, org, "Ana Garcia works at Acme. The coffee was cold.")
    clock.move(days=400)
    report = await consolidation.consolidate(replace(then, claims=Broken()), org.owner)
    assert report.by_kind == {"ARCHIVE": 1}


async def test_what_nobody_could_keep_any_more_leaves_the_queue(then: Deps, org: Company, clock: FixedClock) -> None:
    gone, stays = await saved(then, org, "Cold coffee.", "Warm coffee.")
    clock.move(days=400)
    await consolidation.consolidate(then, org.owner)
    assert len(await queue(then, org, ProposalKind.ARCHIVE)) == 2
    await lifecycle.archive(then, org.owner, gone)
    assert (await consolidation.consolidate(then, org.owner)).filed == 0
    assert [one.subject_ids for one in await queue(then, org, ProposalKind.ARCHIVE)] == [(stays,)]


def test_the_latest_turn_is_the_last_one_that_passed() -> None:
    at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert nightly.latest_turn(nightly.NIGHTLY, at) == datetime(2026, 11, 30, 2, tzinfo=UTC)
    assert nightly.latest_turn(nightly.NIGHTLY, at.replace(hour=1)) == datetime(2026, 11, 29, 2, tzinfo=UTC)
    assert nightly.latest_turn("0 2 1 * *", at) == datetime(2026, 11, 1, 2, tzinfo=UTC)


async def test_one_holder_has_the_lease_and_a_finished_turn_is_remembered(deps: Deps) -> None:
    name, turn = deps.new_id("job"), datetime(2026, 11, 30, 2, tzinfo=UTC)

    async def acquire(holder: str) -> leases.Held:
        return await deps.db.write(lambda tx: leases.acquire(tx, name, holder=holder, for_ms=60_000))

    held = await asyncio.gather(*(acquire(f"holder {i}") for i in range(8)))
    assert sum(one.mine for one in held) == 1
    leader = f"holder {next(i for i, one in enumerate(held) if one.mine)}"
    assert (await acquire(leader)).mine
    await deps.db.write(lambda tx: leases.done(tx, name, holder=leader, turn=turn))
    after = await acquire("another")
    assert (after.mine, after.done_at) == (True, turn)
    assert not (await acquire(leader)).mine


async def test_a_lease_whose_holder_died_is_taken_over(deps: Deps) -> None:
    name = deps.new_id("job")
    await deps.db.write(lambda tx: leases.acquire(tx, name, holder="dead", for_ms=1))
    await asyncio.sleep(0.05)
    assert (await deps.db.write(lambda tx: leases.acquire(tx, name, holder="next", for_ms=60_000))).mine


async def test_missed_nights_are_made_up_once_by_one_of_several_workers(
    then: Deps, org: Company, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def only_mine(tx: Tx) -> list[str]:
        return [org.id]

    monkeypatch.setattr(nightly, "_organizations", only_mine)
    monkeypatch.setattr(nightly, "_LEASE", then.new_id("job"))
    await saved(then, org, "Cold coffee.")
    assert await nightly.run_if_due(then) is None
    assert await nightly.run_if_due(then) is None
    clock.move(days=400)
    reports = await asyncio.gather(*(nightly.run_if_due(then) for _ in range(4)))
    done = [report for report in reports if report is not None]
    assert [report.filed for report in done] == [1]
    assert await nightly.run_if_due(then) is None
    clock.move(hours=24)
    again = await nightly.run_if_due(then)
    assert again is not None
    assert again.filed == 0


async def test_a_leader_that_dies_leaves_the_turn_to_the_next(
    then: Deps, org: Company, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(deps: Deps, org_id: str) -> None:
        raise RuntimeError("killed")

    async def only_mine(tx: Tx) -> list[str]:
        return [org.id]

    monkeypatch.setattr(nightly, "_organizations", only_mine)
    monkeypatch.setattr(nightly, "_LEASE", then.new_id("job"))
    monkeypatch.setattr(nightly, "_LEASE_MS", 50)
    await nightly.run_if_due(then)
    clock.move(days=2)
    with monkeypatch.context() as broken:
        broken.setattr(consolidation, "cycle", dies)
        with pytest.raises(RuntimeError):
            await nightly.run_if_due(then)
    await asyncio.sleep(0.1)
    assert await nightly.run_if_due(then) is not None
    assert timedelta(0) < clock.now - nightly.latest_turn(nightly.NIGHTLY, clock.now)
