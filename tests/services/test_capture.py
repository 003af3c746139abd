"""Accepting texts and making them READY, on a real Neo4j."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from graph_mem.app import HANDLERS
from graph_mem.core.model import Memory, Processing, RecordId, Role
from graph_mem.errors import Conflict, IdempotencyKeyReused, InvalidInput, NotFound
from graph_mem.services import Deps, capture, records, worker
from graph_mem.services.capture import NewMemory
from graph_mem.services.worker import Duty, Worker
from graph_mem.store.db import Database, Tx
from tests.encoders import Fault, FaultyEncoder
from tests.people import Company, company, deps_on, work_off


async def stored(deps: Deps, org: Company, id: RecordId) -> Memory:
    found = (await records.by_ids(deps, org.owner, [id]))[id]
    assert isinstance(found, Memory)
    return found


async def test_capture_is_acknowledged_before_any_model_is_asked(deps: Deps, org: Company) -> None:
    accepted = await capture.accept(deps, org.owner, NewMemory(text="Northwind pays 185 euros an hour."))
    assert accepted.memory.processing is Processing.SAVED
    assert (await stored(deps, org, accepted.memory.id)).text == "Northwind pays 185 euros an hour."


async def test_worker_makes_a_memory_ready_and_links_its_speaker(deps: Deps, org: Company) -> None:
    id = (await capture.accept(deps, org.owner, NewMemory(text="Caroline: I went to the lake."))).memory.id
    await work_off(deps, org.id)
    assert (await stored(deps, org, id)).processing is Processing.READY
    links = (await records.entity_links(deps, org.owner, [id]))[id]
    assert [(link.entity.name, link.role) for link in links] == [("Caroline", "PARTICIPANT")]


@pytest.mark.parametrize(
    "text",
    ["", "   \n\t", "a\0b", "\ud800", "x" * (2 * 1024 * 1024 + 1)],
    ids=["empty", "blank", "nul", "surrogate", "huge"],
)
async def test_a_text_that_cannot_be_stored_is_refused_and_nothing_is_stored(
    deps: Deps, org: Company, text: str
) -> None:
    with pytest.raises(InvalidInput):
        await capture.accept(deps, org.owner, NewMemory(text=text))
    assert await records.pending(deps, org.owner) == 0


async def test_two_megabytes_are_stored_byte_for_byte_in_many_chunks(deps: Deps, org: Company) -> None:
    text = "\r\n".join(f"Line {i}: the rate of client {i} is {i * 3} euros." for i in range(42_000))[: 2 * 1024 * 1024]
    id = (await capture.accept(deps, org.owner, NewMemory(text=text, label="document"))).memory.id
    await work_off(deps, org.id)
    found = await stored(deps, org, id)
    assert (found.text, found.processing) == (text, Processing.READY)


async def test_unknown_label_and_unknown_scope_are_refused(deps: Deps, org: Company) -> None:
    with pytest.raises(InvalidInput, match="Unknown label 'gossip'"):
        await capture.accept(deps, org.owner, NewMemory(text="hello", label="gossip"))
    with pytest.raises(NotFound):
        await capture.accept(deps, org.owner, NewMemory(text="hello", client_id="cli_01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    assert await records.pending(deps, org.owner) == 0


async def test_a_client_that_one_may_not_read_is_no_scope(deps: Deps, org: Company) -> None:
    insider = await org.member("in", client="Northwind")
    outsider = await org.member("out")
    (client_id,) = insider.client_ids
    with pytest.raises(NotFound):
        await capture.accept(deps, outsider, NewMemory(text="hello", client_id=client_id))
    assert (await capture.accept(deps, insider, NewMemory(text="hello", client_id=client_id))).memory


async def test_the_same_idempotency_key_stores_once(deps: Deps, org: Company) -> None:
    new = NewMemory(text="Once only.")
    first = await capture.accept(deps, org.owner, new, idempotency_key="k1")
    again = await asyncio.gather(*(capture.accept(deps, org.owner, new, idempotency_key="k1") for _ in range(8)))
    assert {one.memory.id for one in again} == {first.memory.id}
    assert all(one.replayed for one in again)
    with pytest.raises(IdempotencyKeyReused):
        await capture.accept(deps, org.owner, NewMemory(text="Another."), idempotency_key="k1")


async def test_a_failing_embedder_says_failed_with_its_reason_and_a_retry_heals_it(org: Company) -> None:
    faulty = FaultyEncoder()
    async with deps_on(org.deps.db, load=lambda: faulty) as deps:
        mine = await company(deps)
        faulty.fault = Fault.RAISES
        id = (await capture.accept(deps, mine.owner, NewMemory(text="The embedder is away."))).memory.id
        while (found := await stored(deps, mine, id)).processing is not Processing.FAILED:
            await sooner(deps, mine, id)
        assert found.failure
        faulty.fault = Fault.NONE
        await capture.retry(deps, mine.owner, id)
        async with asyncio.timeout(20):
            while (await stored(deps, mine, id)).processing is not Processing.READY:
                await work_off(deps, mine.id)
                await asyncio.sleep(0.1)
        with pytest.raises(Conflict):
            await capture.retry(deps, mine.owner, id)


async def sooner(deps: Deps, org: Company, id: RecordId) -> None:
    """Try again without waiting for the delay."""
    await deps.db.run("MATCH (j:Job {recordId: $id}) SET j.runAfter = 0", id=id)
    await work_off(deps, org.id)


async def test_workers_side_by_side_do_no_memory_twice(deps: Deps, org: Company) -> None:
    texts = [f"Note {i} of the parallel run." for i in range(60)]
    ids = [(await capture.accept(deps, org.owner, NewMemory(text=text))).memory.id for text in texts]
    workers = [Worker(deps, HANDLERS, org_ids=[org.id]) for _ in range(4)]
    await asyncio.gather(*(drained(worker) for worker in workers))
    found = await deps.db.run(
        "MATCH (c:Chunk) WHERE c.memoryId IN $ids RETURN c.memoryId AS id, count(*) AS n", ids=ids
    )
    assert {row["n"] for row in found} == {1}
    assert len(found) == len(ids)


async def drained(worker: Worker) -> None:
    while await worker.work_once():
        pass


async def test_a_member_lists_only_what_is_readable(deps: Deps, org: Company) -> None:
    insider = await org.member("in", Role.MEMBER, client="Northwind")
    (client_id,) = insider.client_ids
    await capture.accept(deps, org.owner, NewMemory(text="for the client", client_id=client_id))
    await capture.accept(deps, org.owner, NewMemory(text="for everybody"))
    await capture.accept(deps, org.owner, NewMemory(text="for me alone", private=True))
    outsider = await org.member("out")
    assert [await records.pending(deps, who) for who in (org.owner, insider, outsider)] == [3, 2, 1]


async def test_a_note_does_not_wait_behind_another_organizations_flood(deps: Deps, org: Company) -> None:
    other = await company(deps)
    flood = [(await capture.accept(deps, other.owner, NewMemory(text=f"Flood {i}."))).memory.id for i in range(80)]
    note = (await capture.accept(deps, org.owner, NewMemory(text="One note."))).memory.id
    await Worker(deps, HANDLERS, org_ids=[org.id, other.id]).work_once()
    assert (await stored(deps, org, note)).processing is Processing.READY
    waiting = await records.pending(deps, other.owner)
    assert 0 < waiting < len(flood)


async def test_a_duty_under_way_does_not_keep_a_worker_from_stopping(deps: Deps, org: Company) -> None:
    begun = asyncio.Event()

    async def endless(_: Deps) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = Worker(deps, HANDLERS, duties=[Duty("endless", 60.0, endless)], org_ids=[org.id])
    running = asyncio.create_task(worker.run())
    await begun.wait()
    worker.stop()
    await asyncio.wait_for(running, 30)


class Stumbling(Database):
    """A database that answers the first write with an error nobody thought of."""

    stumbled = False

    async def write(self, work: Callable[[Tx], Awaitable[Any]], *, timeout_s: float | None = None) -> Any:
        if not self.stumbled:
            self.stumbled = True
            raise RuntimeError("nobody thought of this")
        return await super().write(work, timeout_s=timeout_s)


async def test_a_worker_goes_on_after_an_error_nobody_thought_of(
    deps: Deps, org: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_AWAY_S", 0.01)
    database = Stumbling(deps.db.driver, database=deps.db.name)
    memory = (await capture.accept(deps, org.owner, NewMemory(text="It waits."))).memory
    one = Worker(replace(deps, db=database), HANDLERS, org_ids=[org.id])
    running = asyncio.create_task(one.run())
    async with asyncio.timeout(30):
        while (await stored(deps, org, memory.id)).processing is not Processing.READY:  # noqa: ASYNC110 # polled
            await asyncio.sleep(0.05)
    one.stop()
    await running
    assert database.stumbled
