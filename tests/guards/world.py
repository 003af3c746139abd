"""An organization with every kind of record in every kind of place, and people who may see some of it.

What is in a place says the place's mark: a word that stands nowhere else. What a person is shown may hold no mark and
no id of a place that this person may not read.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graph_mem.core.model import Place, Principal, RecordId, Role, Scope, ScopeLevel
from graph_mem.core.proposals import Decision, ProposalKind
from graph_mem.core.retrieval import Query, ScopeName
from graph_mem.services import (
    Deps,
    canon,
    capture,
    context,
    facts,
    filing,
    lifecycle,
    pins,
    recall,
    relations,
    review,
    scratch,
)
from graph_mem.services.canon import NewPolicy, NewValue
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.pins import NewPin
from graph_mem.services.relations import NewRelation
from graph_mem.store import reviews
from graph_mem.store.db import Tx, rows
from tests.people import Company, company, work_off

MARKS = {
    "organization": "Orgazelda",
    "client": "Clintonia",
    "deal": "Dealandra",
    "private": "Privalina",
    "foreign": "Fornicia",
}
"""A name for each place; its bearer speaks in the place's transcripts and is an entity of that place."""

READERS: Mapping[str, frozenset[str]] = {
    "organization": frozenset({"owner", "admin", "engineer", "manager", "member", "agent", "alice"}),
    "client": frozenset({"owner", "admin", "manager"}),
    "deal": frozenset({"owner", "admin", "manager", "engineer", "agent", "alice"}),
    "private": frozenset({"alice"}),
    "foreign": frozenset({"stranger"}),
}
"""Who reads a place: SPEC 8, written down by hand."""

VIEWERS = ("owner", "admin", "engineer", "manager", "member", "agent", "alice", "stranger", "nobody")

HERE = """
MATCH (n) WHERE n.org = $org AND n.partition = $partition AND n.scope = $scope AND n.id IS NOT NULL
RETURN n.id AS id
UNION
MATCH (n)-[r]-() WHERE n.org = $org AND n.partition = $partition AND n.scope = $scope AND r.id IS NOT NULL
RETURN r.id AS id
"""
ABOUT = """
MATCH (f:Fact {id: $fact}) MATCH (e:Entity {id: $entity})
MERGE (f)-[:ABOUT]->(e)
"""
STATE = """
MATCH (n) WHERE n.org IN $orgs AND n.partition IS NOT NULL
OPTIONAL MATCH (n)-[r]->(m)
WITH n, r, m ORDER BY type(r), elementId(m)
RETURN elementId(n) AS id, n {.*, embedding: null, lock: null, retrievals: null, lastRetrievedAt: null,
  queryKinds: null} AS properties, collect([type(r), elementId(m), properties(r)]) AS edges
"""


@dataclass
class World:
    deps: Deps
    org: Company
    other: Company
    people: dict[str, Principal]
    places: dict[str, Place]
    ids: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each place an id of each kind."""
    held: dict[str, frozenset[str]] = field(default_factory=dict)
    """For each place every id in it."""
    traces: dict[str, str] = field(default_factory=dict)
    """The account of a search by each person."""
    accounts: dict[str, str] = field(default_factory=dict)
    """The account of a context that was assembled for each person."""
    alien: str = ""
    """A client of the other organization."""

    def author(self, place: str) -> Principal:
        return self.people[{"private": "alice", "foreign": "stranger"}.get(place, "owner")]

    def hidden_from(self, viewer: str) -> list[str]:
        return [place for place, readers in READERS.items() if viewer not in readers]

    def leaks(self, viewer: str, answer: Any, *, asked: Iterable[str] = ()) -> list[str]:
        """What `answer` says of places that `viewer` may not read, apart from the ids that the viewer asked for."""
        text = json.dumps(answer, ensure_ascii=False, default=str)
        for id in sorted(asked):
            text = text.replace(id, "asked")
        named = set(re.findall(r"[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}", text))
        said = [f"{place}: {MARKS[place]}" for place in self.hidden_from(viewer) if MARKS[place] in text]
        return said + [f"{place}: {id}" for place in self.hidden_from(viewer) for id in named & self.held[place]]

    def shown(self, answer: Any) -> set[str]:
        """The places that `answer` says something of."""
        text = json.dumps(answer, ensure_ascii=False, default=str)
        return {
            place
            for place, held in self.held.items()
            if MARKS[place] in text or any(id in text for id in held)
        }  # fmt: skip

    async def state(self) -> dict[str, Any]:
        """Everything in every place, but for what searching strengthens."""

        async def work(tx: Tx) -> dict[str, Any]:
            found = await rows(tx, STATE, orgs=[self.org.id, self.other.id])
            return {one["id"]: (dict(one["properties"]), one["edges"]) for one in found}

        return await self.deps.db.read(work)


async def build(deps: Deps) -> World:
    """The world, its background work done."""
    org, other = await company(deps), await company(deps)
    people = {
        "owner": org.owner,
        "admin": await org.member("admin", Role.ADMIN),
        "engineer": await org.member("engineer", Role.SOLUTIONS_ENGINEER, client="Acme", deal="Roof"),
        "manager": await org.member("manager", Role.PROJECT_MANAGER, client="Acme"),
        "member": await org.member("member"),
        "agent": await org.member("agent", Role.AGENT, client="Acme", deal="Roof"),
        "alice": await org.member("alice", client="Acme", deal="Roof"),
        "stranger": other.owner,
    }
    people["manager"] = await org.member("manager", Role.PROJECT_MANAGER)  # now that the deal is there
    ((deal, client),) = people["engineer"].deals.items()
    places = {
        "organization": Place(org.id, Scope()),
        "client": Place(org.id, Scope(ScopeLevel.CLIENT, client)),
        "deal": Place(org.id, Scope(ScopeLevel.DEAL, client, deal)),
        "private": Place(org.id, Scope(), people["alice"].user_id),
        "foreign": Place(other.id, Scope()),
    }
    world = World(deps, org, other, people, places)
    (world.alien,) = (await other.member("ally", client="Alien")).client_ids
    for name in places:  # one after the other: what one work-off leases, another would not wait for
        await _fill(world, name)
    await _link_places(world)
    for name in places:
        await _leave_pending(world, name)
    for name, place in places.items():
        own = {id for kind, id in world.ids[name].items() if kind not in ("run", "scratch")}
        world.held[name] = await _held(deps, place) | own
    return world


async def _leave_pending(world: World, name: str) -> None:
    """A text that is still to be processed."""
    scope, private = world.places[name].scope, world.places[name].private
    text = f"{MARKS[name]} just said that the roof leaks."
    new = NewMemory(text=text, client_id=scope.client_id, deal_id=scope.deal_id, private=private)
    await capture.accept(world.deps, world.author(name), new)


async def _link_places(world: World) -> None:
    """Links from a place that many read to one that few read: what is beyond is told to nobody else."""
    deps, owner, ids = world.deps, world.people["owner"], world.ids
    reason = f"{MARKS['client']} says so"
    for kind, name in (("relates_to", "edited"), ("SUPERSEDES", "older")):
        near, far = ids["organization"][name], ids["client"][name]
        await relations.relate(deps, owner, from_id=far, to_id=near, kind=kind, reason=reason)
    known = NewFact(
        subject=MARKS["organization"],
        relation="lives in",
        statement=f"{MARKS['organization']} lives in Rome.",
        source_ids=(ids["organization"]["edited"], ids["client"]["edited"]),
    )
    ids["organization"]["told"] = (await facts.save(deps, owner, known)).fact.id


async def _held(deps: Deps, place: Place) -> frozenset[str]:
    given = {"org": place.org_id, "partition": place.partition_token, "scope": place.scope_token}

    async def work(tx: Tx) -> frozenset[str]:
        return frozenset(one["id"] for one in await rows(tx, HERE, **given))

    return await deps.db.read(work)


def long_text(mark: str, ending: str) -> str:
    paragraphs = [f"{mark} wrote paragraph {n} about the {mark} archive. " * 4 for n in range(12)]
    return "\n\n".join([*paragraphs, ending])


async def _fill(world: World, name: str) -> None:
    """Put one of everything in a place."""
    deps, place, mark, author = world.deps, world.places[name], MARKS[name], world.author(name)
    scope = ScopeName(place.scope.client_id, place.scope.deal_id)
    where: dict[str, Any] = {
        "client_id": place.scope.client_id, "deal_id": place.scope.deal_id, "private": place.private,
    }  # fmt: skip

    async def save(text: str, **given: Any) -> RecordId:
        return (await capture.accept(deps, author, NewMemory(text=text, **where, **given))).memory.id

    async def say(statement: str, relation: str = "plans", **given: Any) -> RecordId:
        new = NewFact(subject=mark, relation=relation, statement=statement, **where, **given)
        return (await facts.save(deps, author, new)).fact.id

    older = await save(f"{mark}: the roof is to be green.\n{mark}: it must be painted.", label="decision", title=mark)
    newer = await save(
        f"{mark}: the roof is to be blue.\n{mark}son: it must be painted by autumn.",
        label="decision",
        relations=(NewRelation("SUPERSEDES", older, f"{mark} changed their mind"),),
    )
    await save(f"{mark}: the roof is to be blue.\n{mark}son: it must be painted by autumn.")
    edited = await save(long_text(mark, f"{mark} is undecided."), source_uri=f"file:{mark}")
    await work_off(deps, place.org_id)
    await save(long_text(mark, f"{mark} has decided."), source_uri=f"file:{mark}")
    await work_off(deps, place.org_id)
    revoked = await say(f"{mark} plans a green roof.", source_ids=(older,))
    fact = await say(f"{mark} plans a blue roof.", source_ids=(newer,))
    related = await relations.relate(
        deps, author, from_id=edited, to_id=newer, kind="relates_to", reason=f"{mark} speaks of the roof"
    )
    pinned = await pins.pin(
        deps, author, NewPin(memory_id=newer, slot=f"slot {mark}", scope=scope, private=place.private)
    )
    if not place.private:
        policy = await canon.save_policy(deps, author, NewPolicy(name=f"{mark} rule", text=f"Ask {mark}.", scope=scope))
        world.ids.setdefault(name, {})["policy"] = policy.id
    value = NewValue(name=f"color {mark}", value=f"{mark} blue", scope=scope, private=place.private)
    await canon.set_variable(deps, author, value)
    await work_off(deps, place.org_id)
    note = await scratch.add(deps, author, run_id=f"run {mark}", text=f"{mark} is to be asked")
    await lifecycle.enrol(deps, author, since=deps.clock().replace(year=2000))
    await review.decide(deps, author, await _propose(world, name, older), Decision.REVERT)
    entity = await _entity(deps, place, mark)
    await deps.db.write(lambda tx: rows(tx, ABOUT, fact=fact, entity=entity))
    world.ids.setdefault(name, {}).update(
        memory=newer, older=older, edited=edited, fact=fact, revoked=revoked, relation=related.relation.id,
        pin=pinned.pin.id, proposal=await _propose(world, name, newer), run=f"run {mark}", scratch=note.id,
        entity=entity,
    )  # fmt: skip


async def _propose(world: World, name: str, id: RecordId) -> str:
    proposal = filing.proposal(
        world.deps, world.places[name], ProposalKind.ARCHIVE, [id],
        shape="a test", score=0.1, gate="a test", reason=f"{MARKS[name]} is quiet", basis=(),
    )  # fmt: skip
    await world.deps.db.write(lambda tx: reviews.file(tx, [proposal]))
    return proposal.id


async def propose(world: World, name: str) -> str:
    """A new proposal in a place."""
    return await _propose(world, name, RecordId(world.ids[name]["edited"]))


async def _entity(deps: Deps, place: Place, mark: str) -> str:
    async def work(tx: Tx) -> str:
        found = await rows(
            tx,
            "MATCH (e:Entity {name: $name}) WHERE e.partition = $partition AND e.scope = $scope RETURN e.id AS id",
            name=mark, partition=place.partition_token, scope=place.scope_token,
        )  # fmt: skip
        assert found, f"{mark} is no entity"
        return found[0]["id"]

    return await deps.db.read(work)


async def leave_traces(world: World) -> None:
    """Let everybody assemble a context and search, so that there are accounts of each."""

    async def ask(viewer: str, principal: Principal) -> None:
        request = context.Request(run_id=f"run of {viewer}", instruction="the roof", semantic_tail=True)
        world.accounts[viewer] = (await context.assemble(world.deps, principal, request)).view.trace.id
        page = await recall.search_page(world.deps, principal, Query("the roof is to be blue"), first=20)
        world.traces[viewer] = page.trace.id

    await asyncio.gather(*(ask(viewer, principal) for viewer, principal in world.people.items()))
    await world.deps.traces.flush()
