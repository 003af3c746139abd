"""Clocks an hour apart, and clocks that jump, on one database: one order of writes, each piece of work once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from graph_mem.app import HANDLERS
from graph_mem.core.model import RecordId, Standing
from graph_mem.services import Deps, capture, facts, history, nightly, upkeep, utc_now
from graph_mem.services.capture import PROCESS, NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.worker import Worker, reschedule
from graph_mem.store import centrality, leases
from graph_mem.store.db import Tx
from graph_mem.store.jobs import Job
from tests.people import Company, FixedClock


def off(deps: Deps, hours: float) -> Deps:
    """The same process, its clock wrong by some hours."""
    return replace(deps, clock=lambda: utc_now() + timedelta(hours=hours))


async def test_what_was_said_last_holds_whoever_took_it(deps: Deps, org: Company) -> None:
    ids: list[RecordId] = []
    for number, hours in enumerate((1, -1, 0, 1, 0, -1)):
        new = NewFact(subject="Ana", relation="salary", statement=f"{number}00k.")
        saved = (await facts.save(off(deps, hours), org.owner, new)).fact
        assert saved
        ids.append(saved.id)
    chain = await history.chain(deps, org.owner, ids[-1])
    assert chain
    assert [record.id for record in chain.records] == ids
    assert [record.standing for record in chain.records] == [Standing.SUPERSEDED] * 5 + [Standing.CURRENT]
    at = [link.at for link in chain.links]
    assert at == sorted(at)


async def test_a_key_is_known_to_a_process_of_another_hour(deps: Deps, org: Company) -> None:
    new = NewMemory(text="It is kept in the cellar.")
    first = await capture.accept(off(deps, -1), org.owner, new, idempotency_key="once")
    again = await capture.accept(off(deps, 1), org.owner, new, idempotency_key="once")
    assert (again.memory.id, again.replayed) == (first.memory.id, True)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_worker_whose_clock_jumps_loses_no_job_and_shares_none(deps: Deps, org: Company, hours: int) -> None:
    id = (await capture.accept(deps, org.owner, NewMemory(text="The lease is kept."))).memory.id
    clock, done = FixedClock(utc_now()), list[tuple[str, RecordId]]()

    def at(name: str, working: Deps, *, jumps: float = 0) -> Worker:
        async def run(deps: Deps, batch: Sequence[Job], *, lease: str) -> None:
            clock.move(hours=jumps)
            if jumps:
                assert not await at("other", off(deps, hours)).work_once()
                assert not await at("other", off(deps, -hours)).work_once()
            await HANDLERS[PROCESS].run(deps, batch, lease=lease)
            done.extend((name, job.record_id) for job in batch)

        return Worker(working, {PROCESS: replace(HANDLERS[PROCESS], run=run)}, org_ids=[org.id])

    assert await at("jumping", replace(deps, clock=clock), jumps=hours).work_once()
    assert not await at("other", deps).work_once()
    assert done == [("jumping", id)]
    (found,) = await deps.db.run(
        "MATCH (m:Memory {id: $id})<-[:PART_OF]-(c:Chunk) RETURN m.processing AS processing, count(c) AS passages",
        id=id,
    )
    assert (found["processing"], found["passages"]) == ("READY", 1)


async def test_a_retry_that_the_databases_clock_put_off_by_hours_comes_back(deps: Deps, org: Company) -> None:
    waits = {"leased": 3_630_000, "put off": 4_200_000, "the longest": 600_000, "a lease": 30_000}
    for name in waits:
        await capture.accept(deps, org.owner, NewMemory(text=name))
    # What Neo4j has written by its own clock an hour ago, as that clock says it now.
    await deps.db.run(
        """MATCH (j:Job {org: $org}) MATCH (m:Memory {id: j.recordId})
        SET j.runAfter = datetime.realtime().epochMillis + $waits[m.text], j.lease = 'somebody'""",
        org=org.id,
        waits=waits,
    )
    assert await reschedule(deps) >= 2
    again = Worker(deps, HANDLERS, org_ids=[org.id])
    assert await again.work_once() == 2
    assert await again.work_once() == 0


async def test_a_lease_taken_before_the_databases_clock_was_set_back_is_free(deps: Deps) -> None:
    name, partition = deps.new_id("job"), deps.new_id("org")
    await deps.db.write(lambda tx: leases.acquire(tx, name, holder="dead", for_ms=3_660_000))
    assert (await deps.db.write(lambda tx: leases.acquire(tx, name, holder="next", for_ms=60_000))).mine
    assert not (await deps.db.write(lambda tx: leases.acquire(tx, name, holder="third", for_ms=60_000))).mine

    async def claim(tx: Tx, minutes: int) -> object:
        return await centrality.claim(tx, partition, holder="job", lease=timedelta(minutes=minutes))

    assert await deps.db.write(lambda tx: claim(tx, 61)) is not None
    assert await deps.db.write(lambda tx: claim(tx, 10)) is not None
    assert await deps.db.write(lambda tx: claim(tx, 10)) is None


@dataclass(frozen=True)
class Nights:
    """Workers asked whether the cycle of 02:00 is due, at the hours that their clocks show."""

    deps: Deps

    async def run_at(self, *hours: float) -> list[bool]:
        """Which of them ran it, in turn; 0 is midnight of one day, 24 of the next."""
        midnight = datetime(2027, 3, 1, tzinfo=UTC)
        clocks = [FixedClock(midnight + timedelta(hours=one)) for one in hours]
        return [await nightly.run_if_due(replace(self.deps, clock=clock)) is not None for clock in clocks]


@pytest.fixture
def nights(deps: Deps, org: Company, monkeypatch: pytest.MonkeyPatch) -> Nights:
    async def only_mine(tx: Tx) -> list[str]:
        return [org.id]

    monkeypatch.setattr(nightly, "_organizations", only_mine)
    monkeypatch.setattr(nightly, "_LEASE", deps.new_id("job"))
    return Nights(deps)


async def test_a_night_is_run_once_by_workers_whose_clocks_are_an_hour_apart(nights: Nights) -> None:
    assert await nights.run_at(1, 0, 2) == [False, False, True], "the count begins; the worker ahead is first"
    assert await nights.run_at(1.5, 2.5, 0.5) == [False] * 3
    assert await nights.run_at(2.1, 3.1, 1.1, 3, 4, 2) == [False] * 6
    assert await nights.run_at(25, 26, 24) == [False, True, False]
    assert await nights.run_at(26.1, 27.1, 25.1) == [False] * 3


async def test_a_clock_set_back_across_the_night_does_not_run_it_again(nights: Nights) -> None:
    assert await nights.run_at(1, 2.1) == [False, True]
    assert await nights.run_at(1.5, 1.9, 2.1, 3) == [False] * 4
    assert await nights.run_at(26) == [True]


async def test_a_clock_that_was_a_year_ahead_takes_no_night_from_the_others(nights: Nights) -> None:
    assert await nights.run_at(1, 24 * 365 + 3) == [False, True]
    assert await nights.run_at(1.1, 1.9, 2, 3, 26) == [False, False, True, False, True]


@pytest.mark.parametrize(("hours", "expected"), [(1, False), (-1, False), (-6, True), (24 * 365, True)])
def test_centrality_is_computed_once_in_its_period_by_clocks_an_hour_apart(hours: int, expected: bool) -> None:
    now = utc_now()
    assert upkeep.due(centrality.run(10, now + timedelta(hours=hours)), 10, now=now) is expected
