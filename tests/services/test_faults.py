"""Every write path broken off before each of its statements, and by the death of its process: all or nothing."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any, LiteralString, cast

import pytest

from graph_mem.core.model import Fact, Memory, Page, RecordId, Standing
from graph_mem.services import Deps, capture, fact_lists, facts, folding, history, promotion, records, relations
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.relations import NewRelation
from graph_mem.store.db import Database, Tx, rows
from tests.people import Company, work_off

GRAPH = """
MATCH (n {org: $org})
OPTIONAL MATCH (n)-[r]->(m)
WITH n, collect(type(r) + coalesce(m.id, m.key, '') + coalesce(r.state, '') + coalesce(r.id, '')) AS links
RETURN collect(coalesce(n.id, n.key, '') + ' ' + coalesce(n.standing, '') + ' ' + coalesce(n.version, 0) + ' '
  + coalesce(n.activeKey, '') + ' ' + coalesce(n.dedupKey, '') + ' ' + coalesce(n.validTo, 0) + ' '
  + coalesce(n.foldCount, 0) + ' ' + coalesce(n.processing, '') + ' '
  + reduce(all = '', link IN links | all + ' ' + link)) AS lines
"""


class Broken(Exception):
    """The connection broke off here."""


@dataclass
class Breaking:
    """A transaction that breaks off before statement number `at`."""

    tx: Tx
    at: int
    ran: int = 0

    async def run(self, statement: LiteralString, parameters: Any) -> Any:
        if self.ran == self.at:
            raise Broken
        self.ran += 1
        return await self.tx.run(statement, parameters)


class BreakingDatabase(Database):
    """A database whose write transactions break off before statement number `at`."""

    def __init__(self, inner: Database, at: int) -> None:
        super().__init__(inner.driver, database=inner.name)
        self.at = at

    async def write(self, work: Callable[[Tx], Awaitable[Any]], *, timeout_s: float | None = None) -> Any:
        async def breaking(tx: Tx) -> Any:
            return await work(cast("Tx", Breaking(tx, self.at)))

        return await super().write(breaking, timeout_s=timeout_s)


async def graph(deps: Deps, org: Company) -> list[str]:
    async def work(tx: Tx) -> list[str]:
        return sorted((await rows(tx, GRAPH, org=org.id))[0]["lines"])

    return await deps.db.read(work)


async def break_everywhere(deps: Deps, org: Company, act: Callable[[Deps], Awaitable[object]]) -> int:
    """Do `act`, broken off before each of its statements in turn until it gets through; how often it broke."""
    before = await graph(deps, org)
    for at in count():
        try:
            await act(replace(deps, db=BreakingDatabase(deps.db, at)))
        except Broken:
            assert await graph(deps, org) == before, f"broken off before statement {at}, something stayed"
        else:
            assert await graph(deps, org) != before
            return at
    raise AssertionError


def fact(statement: str, **more: Any) -> NewFact:
    return NewFact(subject="Ana", relation="salary", statement=statement, **more)


async def saved(deps: Deps, org: Company, statement: str, **more: Any) -> Fact:
    found = (await facts.save(deps, org.owner, fact(statement, **more))).fact
    assert found
    return found


async def keep(deps: Deps, org: Company, text: str, **more: Any) -> Memory:
    return (await capture.accept(deps, org.owner, NewMemory(text=text, **more))).memory


async def test_saving_a_fact_that_supersedes(deps: Deps, org: Company) -> None:
    source = await keep(deps, org, "She said so.")
    await saved(deps, org, "100k.")
    new = fact("110k.", source_ids=(source.id,))
    breaks = await break_everywhere(deps, org, lambda d: facts.save(d, org.owner, new, idempotency_key="k"))
    assert breaks >= 3
    filter = await fact_lists.list_filter(deps, org.owner)
    assert [one.statement for one in await fact_lists.page(deps, org.owner, filter, Page(10))] == ["110k."]


@pytest.mark.parametrize("reject", [False, True])
async def test_taking_a_fact_back(deps: Deps, org: Company, reject: bool) -> None:
    there = await saved(deps, org, "100k.")
    await break_everywhere(deps, org, lambda d: facts.retract(d, org.owner, there.id, reason="wrong", reject=reject))


async def test_promoting_a_fact(deps: Deps, org: Company) -> None:
    await saved(deps, org, "100k.")
    claim = await saved(deps, org, "110k.", extracted=True)
    rules = await facts.rules_of(deps, org.owner)

    async def promote(d: Deps) -> None:
        await d.db.write(lambda tx: promotion.promote(tx, d, org.owner, claim.id, rules=rules))

    assert await break_everywhere(deps, org, promote) >= 8


async def test_a_late_fact(deps: Deps, org: Company) -> None:
    first = await saved(deps, org, "100k.")
    second = await saved(deps, org, "110k.")
    start, end = first.interval.valid_from, second.interval.valid_from
    late = fact("1k.", valid_from=start.replace(year=2020), valid_to=end.replace(year=2021))
    await break_everywhere(deps, org, lambda d: facts.save(d, org.owner, late))


async def test_a_capture_that_supersedes(deps: Deps, org: Company) -> None:
    old = await keep(deps, org, "Old.")
    await work_off(deps, org.id)
    new = NewMemory(text="New.", relations=(NewRelation("SUPERSEDES", old.id), NewRelation("supports", old.id)))
    assert await break_everywhere(deps, org, lambda d: capture.accept(d, org.owner, new)) >= 8


async def test_relating_and_correcting(deps: Deps, org: Company) -> None:
    old, new = await keep(deps, org, "Old."), await keep(deps, org, "New.")
    await work_off(deps, org.id)

    async def relate(d: Deps) -> None:
        await relations.relate(d, org.owner, from_id=new.id, to_id=old.id, kind="SUPERSEDES", idempotency_key="k")

    await break_everywhere(deps, org, relate)
    (link,) = await relations.of_record(deps, org.owner, old.id, Page(10))
    await break_everywhere(deps, org, lambda d: relations.correct(d, org.owner, link.id, reason="wrong"))
    assert (await standing_of(deps, org, old.id)) is Standing.CURRENT


async def test_correcting_a_replaced_fact(deps: Deps, org: Company) -> None:
    old, new = await saved(deps, org, "100k."), await saved(deps, org, "110k.")
    (link,) = await relations.of_record(deps, org.owner, old.id, Page(10))
    await break_everywhere(deps, org, lambda d: relations.correct(d, org.owner, link.id, reason="wrong"))
    assert [await standing_of(deps, org, one.id) for one in (old, new)] == [Standing.CURRENT, Standing.SUPERSEDED]


async def test_folding_a_copy_and_an_edition(deps: Deps, org: Company) -> None:
    text = "\n\n".join(f"Paragraph {n}. " + f"It tells of topic {n} in some words of its own. " * 5 for n in range(12))
    await keep(deps, org, "Same.")
    await keep(deps, org, text)
    await work_off(deps, org.id)
    copy, edition = await keep(deps, org, "Same."), await keep(deps, org, text.replace("topic 3", "theme 3"))
    for one in (copy, edition):
        mark = folding.text_hash(one.text or "")
        await break_everywhere(deps, org, lambda d, one=one, mark=mark: folding.fold(d, one, text_hash=mark))
        assert await standing_of(deps, org, one.id) is Standing.FOLDED


async def standing_of(deps: Deps, org: Company, id: RecordId) -> Standing:
    return (await records.by_ids(deps, org.owner, [id]))[id].standing


WRITER = """
import asyncio, os, sys
from graph_mem.core.model import OrganizationId, Principal, Role, UserId
from graph_mem.services import facts
from graph_mem.store.db import Database
from tests.people import deps_on

async def main():
    database = Database.connect(sys.argv[1], user=sys.argv[2], password=sys.argv[3], database=sys.argv[4])
    owner = Principal(OrganizationId(sys.argv[5]), UserId(sys.argv[6]), Role.OWNER)
    async with deps_on(database) as deps:
        async def writer(w):
            for n in range(10_000):
                new = facts.NewFact(subject="Ana", relation="salary", statement=f"{w}: {n}.")
                print((await facts.save(deps, owner, new)).fact.id, flush=True)
        await asyncio.gather(*map(writer, range(4)))

asyncio.run(main())
"""


async def test_a_killed_writer_leaves_one_active_fact_and_no_lock(deps: Deps, org: Company, neo4j_address: Any) -> None:
    where = (neo4j_address.uri, neo4j_address.user, neo4j_address.password, deps.db.name)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WRITER,
        *where,
        org.id,
        org.owner.user_id,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout
    acknowledged = [(await process.stdout.readline()).decode().strip() for _ in range(12)]
    process.send_signal(signal.SIGKILL)
    await process.wait()
    last = await asyncio.wait_for(saved(deps, org, "After the kill."), timeout=10)
    chain = await history.chain(deps, org.owner, last.id)
    assert chain
    ids = [record.id for record in chain.records]
    assert set(acknowledged) <= set(ids)
    assert [record.standing for record in chain.records] == [Standing.SUPERSEDED] * (len(ids) - 1) + [Standing.CURRENT]
    assert [(link.to_id, link.from_id) for link in chain.links] == list(pairwise(ids))
