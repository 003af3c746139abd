"""Processes whose clocks are an hour apart, on one database: one order of writes, one answer to one key."""

from dataclasses import replace
from datetime import timedelta

from graph_mem.core.model import RecordId, Standing
from graph_mem.services import Deps, capture, facts, history, utc_now
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from tests.people import Company


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
