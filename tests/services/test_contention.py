"""Many who write and erase the same few things at once: all finish, nothing is lost, nobody waits for another in a
ring."""

import asyncio
import random
from typing import Any, LiteralString

from graph_mem.app import HANDLERS
from graph_mem.core.model import RecordId
from graph_mem.errors import Conflict, InvalidInput, NotFound
from graph_mem.services import Deps, capture, erasure, facts, relations
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.worker import Worker
from graph_mem.store.db import Tx, rows
from tests.people import Company, work_off
from tests.services.lives import saved

WRITERS = 20
ERASERS = 10
NAMES = ("ana@acme.example", "tom@acme.example", "zeb@acme.example", "mia@acme.example", "ivo@acme.example")
REFUSED = (NotFound, Conflict, InvalidInput)


def text_of(turn: int, *, of: random.Random) -> str:
    """A sentence that names all of NAMES, in some order."""
    first, *others = of.sample(NAMES, len(NAMES))
    return f"{first} wrote to {', '.join(others)} in thread {turn}."


async def found(deps: Deps, statement: LiteralString, **given: Any) -> list[Any]:
    async def work(tx: Tx) -> list[Any]:
        return [list(one.values()) for one in await rows(tx, statement, **given)]

    return await deps.db.read(work)


async def drained(deps: Deps, org: Company) -> None:
    worker = Worker(deps, HANDLERS, org_ids=[org.id])
    while await worker.work_once():
        pass


async def write(deps: Deps, org: Company, turn: int, *, doomed: RecordId) -> RecordId:
    """A memory that names all, processed here or by another writer's worker; a fact about one; links to the doomed."""
    of = random.Random(turn)  # noqa: S311  an order, no secret
    made = (await capture.accept(deps, org.owner, NewMemory(text=text_of(turn, of=of), source_uri="mail:acme"))).memory
    await drained(deps, org)
    name = of.choice(NAMES)
    says = NewFact(
        subject=name, relation=f"says {turn}", statement=f"{name} says {turn}.", source_ids=(made.id, doomed)
    )
    try:
        await facts.save(deps, org.owner, says)
        await relations.relate(deps, org.owner, from_id=made.id, to_id=doomed, kind="supports")
    except REFUSED:
        pass  # the erasure came before
    await drained(deps, org)
    return made.id


async def test_writers_that_name_the_same_entities_and_erasers_all_finish(deps: Deps, org: Company) -> None:
    of = random.Random(7)  # noqa: S311  an order, no secret
    doomed = await saved(deps, org, *(text_of(100 + n, of=of) for n in range(ERASERS)), source_uri="mail:acme")
    before = deps.db.load.retries
    writing = [write(deps, org, turn, doomed=doomed[turn % ERASERS]) for turn in range(WRITERS)]
    erasing = [erasure.erase(deps, org.owner, id, confirm_id=id, reason="asked to") for id in doomed]
    made, _ = await asyncio.gather(asyncio.gather(*writing), asyncio.gather(*erasing))
    await work_off(deps, org.id)
    linked = "MATCH (m:Memory {id: $id})-[:MENTIONS]->(e:Entity) RETURN e.name AS name"
    for id in made:
        names = [name for (name,) in await found(deps, linked, id=id)]
        assert sorted(names) == sorted(NAMES)
    about = "MATCH (f:Fact {org: $org, standing: 'CURRENT'}) RETURN f.subject, [(f)-[:ABOUT]->(e) | e.name]"
    said = await found(deps, about, org=org.id)
    assert said
    assert all(names == [subject] for subject, names in said)
    entities = await found(deps, "MATCH (e:Entity {org: $org}) RETURN e.name", org=org.id)
    assert sorted(name for (name,) in entities) == sorted(NAMES)
    jobs = await found(deps, "MATCH (j:Job {org: $org}) RETURN j.id, j.attempts", org=org.id)
    assert jobs == []
    assert await erasure.remnants(deps, [f"thread {100 + n}." for n in range(ERASERS)], org_id=org.id) == []
    assert deps.db.load.retries - before <= 5  # locks are taken in one order: hardly anybody is sent back


async def test_an_entity_erased_while_another_text_names_it_is_there_afterwards(deps: Deps, org: Company) -> None:
    for turn in range(6):
        name = f"rita{turn}@acme.example"
        (gone,) = await saved(deps, org, f"{name} wrote first.")
        made = (await capture.accept(deps, org.owner, NewMemory(text=f"{name} wrote again."))).memory

        async def later(seconds: float) -> None:
            await asyncio.sleep(seconds)
            await work_off(deps, org.id)

        erasing = erasure.erase(deps, org.owner, gone, confirm_id=gone, reason="asked to")
        await asyncio.gather(erasing, later(turn * 0.01))
        await work_off(deps, org.id)
        linked = "MATCH (m:Memory {id: $id})-[:MENTIONS]->(e:Entity) RETURN e.name"
        assert await found(deps, linked, id=made.id) == [[name]]


async def test_a_new_version_takes_the_entity_along_that_nothing_names_any_more(deps: Deps, org: Company) -> None:
    filler = " ".join(f"Line {n} of the minutes says nothing new." for n in range(60))
    (first,) = await saved(deps, org, f"rita@acme.example wrote. tom@acme.example too. {filler}", source_uri="mail:one")
    await saved(deps, org, f"zoe@acme.example wrote. tom@acme.example too. {filler}", source_uri="mail:one")
    names = await found(deps, "MATCH (e:Entity {org: $org}) RETURN e.name ORDER BY e.name", org=org.id)
    assert names == [["tom@acme.example"], ["zoe@acme.example"]]
    linked = "MATCH (m:Memory {id: $id})-[:MENTIONS]->(e:Entity) RETURN e.name ORDER BY e.name"
    assert await found(deps, linked, id=first) == names
