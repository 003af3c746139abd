"""Random saves, links, corrections and retractions by several people, against a small model and the rules of SPEC 3, 4.

The model knows what each slot must hold; everything else is checked on the database itself after every step.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from graph_mem.core.model import Page, Principal, RecordId, Relation, RelationState, Role, Standing
from graph_mem.core.slots import FactOutcome
from graph_mem.core.tags import standing_tag
from graph_mem.errors import Conflict, Forbidden, InvalidInput
from graph_mem.local.home import Address
from graph_mem.services import Deps, capture, fact_lists, facts, promotion, records, relations
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.relations import NewRelation
from graph_mem.store.db import Database, Tx, rows
from tests.people import company, deps_on, work_off

T = TypeVar("T")

SUBJECTS = ("Ana", "Ben")
VALUES = ("one", "two", "three")
LABELS = {"Alpha.": "note", "Beta.": "note", "Gamma.": "decision", "Delta.": "decision"}

SLOTS = """
MATCH (f:Fact {org: $org})
WITH f.slotKey AS key, collect(f) AS all
OPTIONAL MATCH (:Slot {key: key})-[:CURRENT]->(seated:Fact)
WITH key, all, collect(seated) AS seated
WITH key, seated, [f IN all WHERE f.standing = 'CURRENT'] AS current, [f IN all WHERE f.activeKey IS NOT NULL] AS keyed
WHERE size(current) > 1 OR seated <> current OR keyed <> current
RETURN count(*) AS wrong
"""
RETIRED = """
MATCH (m:Memory {org: $org}) WHERE m.standing IN ['CURRENT', 'SUPERSEDED']
WITH m, EXISTS { (m)<-[:SUPERSEDES {state: 'ACTIVE', retires: true}]-() } AS retired
WHERE retired <> (m.standing = 'SUPERSEDED')
RETURN count(*) AS wrong
"""
POSITIONS = """
MATCH (a:Memory {org: $org})-[s:SUPERSEDES {retires: true}]->(b:Memory) WHERE b.position AND NOT a.position
RETURN count(*) AS wrong
"""
RINGS = """
MATCH (a {org: $org})-[:SUPERSEDES* {state: 'ACTIVE'}]->(a) RETURN count(*) AS wrong
"""
CROSSINGS = """
MATCH (a:Memory|Fact {org: $org})-[:SUPERSEDES|RELATES|FOLDED_INTO]->(b) WHERE a.partition <> b.partition
RETURN count(*) AS wrong
"""
CHUNKS = """
MATCH (c:Chunk {org: $org})-[:PART_OF]->(m) WHERE c.standing <> m.standing OR NOT $tags[c.standing] IN c.keys
RETURN count(*) AS wrong
"""
FOLDS = """
MATCH (m:Memory {org: $org, standing: 'FOLDED'})
WHERE NOT EXISTS { (m)-[:FOLDED_INTO]->(k:Memory) WHERE k.textHash = m.textHash }
RETURN count(*) AS wrong
"""
COPIES = """
MATCH (m:Memory {org: $org, standing: 'CURRENT'})
WITH m.partition AS partition, m.text AS text, count(*) AS copies WHERE copies > 1
RETURN count(*) AS wrong
"""
TIMES = """
MATCH (a:Fact {org: $org})-[s:SUPERSEDES]->(b:Fact)-[t:SUPERSEDES]->(:Fact)
WHERE s.at < t.at OR b.validTo < b.validFrom
RETURN count(*) AS wrong
"""
RULES = (SLOTS, RETIRED, POSITIONS, RINGS, CROSSINGS, CHUNKS, FOLDS, TIMES)


@dataclass
class World:
    """One event loop with a pool of its own: the machine is not async."""

    runner: asyncio.Runner
    database: Database
    deps: Deps

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)


@dataclass
class Model:
    """What each slot must hold: (owner, subject) to value and id."""

    active: dict[tuple[str, str], tuple[str, RecordId]] = field(default_factory=dict)
    waiting: dict[RecordId, tuple[str, str]] = field(default_factory=dict)
    refused: set[tuple[str, str, str]] = field(default_factory=set)


class Memories(RuleBasedStateMachine):
    world: ClassVar[World]

    @initialize()
    def found(self) -> None:
        world = self.world
        self.org = world.run(company(world.deps))
        member = world.run(self.org.member("mia"))
        agent = world.run(self.org.member("bot", Role.AGENT))
        self.people = {"owner": self.org.owner, "mia": member, "bot": agent}
        self.model = Model()
        self.memories: dict[str, list[RecordId]] = {"": [], "mia": []}
        self.links: list[Relation] = []

    def who(self, name: str, private: bool) -> tuple[Principal, str]:
        return self.people[name], name if private else ""

    @rule(name=st.sampled_from(["owner", "mia", "bot"]), subject=st.sampled_from(SUBJECTS),
          value=st.sampled_from(VALUES), private=st.booleans())  # fmt: skip
    def say(self, name: str, subject: str, value: str, private: bool) -> None:
        who, owner = self.who(name, private)
        slot, model = (owner, subject), self.model
        new = NewFact(subject=subject, relation="value", statement=f"{subject} has {value}.", private=private)
        saved = self.world.run(facts.save(self.world.deps, who, new))
        assert saved.fact
        there = model.active.get(slot)
        if name == "bot" and (owner, subject, value) in model.refused:
            assert saved.outcome is FactOutcome.REJECTED_BEFORE
        elif not private and name != "owner":
            self._proposed(saved, slot, value, there)
        elif there is not None and there[0] == value:
            assert (saved.outcome, saved.fact.id) == (FactOutcome.DEDUPLICATED, there[1])
            model.refused.discard((owner, subject, value))
        else:
            assert saved.outcome is (FactOutcome.SUPERSEDED if there else FactOutcome.CREATED)
            assert (saved.revoked.id if saved.revoked else None) == (there[1] if there else None)
            model.active[slot] = (value, saved.fact.id)
            model.refused.discard((owner, subject, value))

    def _proposed(self, saved: Any, slot: tuple[str, str], value: str, there: tuple[str, RecordId] | None) -> None:
        if there is not None and there[0] == value:
            assert (saved.outcome, saved.fact.id) == (FactOutcome.DEDUPLICATED, there[1])
        elif saved.fact.id in self.model.waiting:
            assert saved.outcome is FactOutcome.DEDUPLICATED
        else:
            assert saved.outcome is FactOutcome.PROVISIONAL
            self.model.waiting[saved.fact.id] = (slot[1], value)

    @rule(data=st.data(), reject=st.booleans())
    def take_back(self, data: st.DataObject, reject: bool) -> None:
        assume(self.model.active)
        slot = data.draw(st.sampled_from(sorted(self.model.active)))
        value, id = self.model.active.pop(slot)
        who = self.people[slot[0] or "owner"]
        self.world.run(facts.retract(self.world.deps, who, id, reason="no", reject=reject))
        if reject:
            self.model.refused.add((*slot, value))

    @rule(data=st.data())
    def promote(self, data: st.DataObject) -> None:
        assume(self.model.waiting)
        id = data.draw(st.sampled_from(sorted(self.model.waiting)))
        subject, value = self.model.waiting.pop(id)
        deps, owner = self.world.deps, self.org.owner
        rules = self.world.run(facts.rules_of(deps, owner))

        async def work() -> facts.Saved:
            return await deps.db.write(lambda tx: promotion.promote(tx, deps, owner, id, rules=rules))

        saved = self.world.run(work())
        assert saved.fact
        there = self.model.active.get(("", subject))
        assert (saved.fact.id == id) is (there is None or there[0] != value)
        self.model.active["", subject] = (value, saved.fact.id)
        self.model.refused.discard(("", subject, value))

    @rule(data=st.data())
    def correct_a_fact(self, data: st.DataObject) -> None:
        """The newest link of a slot is wrong: the one before holds its seat again."""
        assume(self.model.active)
        slot = data.draw(st.sampled_from(sorted(self.model.active)))
        _, id = self.model.active[slot]
        who = self.people[slot[0] or "owner"]
        found = self.world.run(relations.of_record(self.world.deps, who, id, Page(100)))
        links = [one for one in found if one.from_id == id and one.state is RelationState.ACTIVE]
        assume(links)
        self.world.run(relations.correct(self.world.deps, who, links[0].id, reason="wrong"))
        old = self.world.run(facts_by_id(self.world.deps, who, links[0].to_id))
        if old.standing is Standing.CURRENT:
            self.model.active[slot] = (old.statement.split()[-1].strip("."), old.id)
        else:
            pytest.fail(f"{old.id} is {old.standing}, and nothing retires it")

    @rule(name=st.sampled_from(["owner", "mia"]), text=st.sampled_from(sorted(LABELS)), private=st.booleans(),
          data=st.data())  # fmt: skip
    def capture(self, name: str, text: str, private: bool, data: st.DataObject) -> None:
        who, owner = self.who(name, private and name == "mia")
        known = self.memories[owner]
        older = data.draw(st.none() | st.sampled_from(known)) if known else None
        links = (NewRelation("SUPERSEDES", older),) if older else ()
        new = NewMemory(text=text, label=LABELS[text], private=bool(owner), relations=links)
        made = self.world.run(capture.accept(self.world.deps, who, new))
        known.append(made.memory.id)
        found = self.world.run(relations.of_record(self.world.deps, who, made.memory.id, Page(10)))
        self.links += found

    @rule(data=st.data(), newer_owner=st.sampled_from(["", "mia"]), older_owner=st.sampled_from(["", "mia"]))
    def relate(self, data: st.DataObject, newer_owner: str, older_owner: str) -> None:
        assume(self.memories[newer_owner] and self.memories[older_owner])
        newer = data.draw(st.sampled_from(self.memories[newer_owner]))
        older = data.draw(st.sampled_from(self.memories[older_owner]))
        try:
            made = self.world.run(
                relations.relate(self.world.deps, self.people["mia"], from_id=newer, to_id=older, kind="SUPERSEDES")
            )
        except InvalidInput:
            return
        assert newer_owner == older_owner
        self.links.append(made.relation)

    @rule(data=st.data())
    def correct(self, data: st.DataObject) -> None:
        assume(self.links)
        link = data.draw(st.sampled_from(self.links))
        try:
            self.world.run(relations.correct(self.world.deps, self.people["mia"], link.id, reason="wrong"))
        except Conflict:
            return

    @rule()
    def settle(self) -> None:
        self.world.run(work_off(self.world.deps, self.org.id))
        assert self.world.run(wrong(self.world.deps, self.org.id, COPIES)) == 0

    @rule(data=st.data())
    def nobody_may_take_back_what_they_could_not_save(self, data: st.DataObject) -> None:
        shared = [id for (owner, _), (_, id) in self.model.active.items() if not owner]
        assume(shared)
        with pytest.raises(Forbidden):
            self.world.run(
                facts.retract(self.world.deps, self.people["mia"], data.draw(st.sampled_from(shared)), reason="no")
            )

    @invariant()
    def every_slot_holds_what_the_model_says(self) -> None:
        for name in ("owner", "mia"):
            who = self.people[name]
            found = self.world.run(current_facts(self.world.deps, who))
            expected = {id for (owner, _), (_, id) in self.model.active.items() if owner in ("", name)}
            assert found == expected

    @invariant()
    def the_rules_hold_in_the_database(self) -> None:
        for query in RULES:
            assert self.world.run(wrong(self.world.deps, self.org.id, query)) == 0, query


async def wrong(deps: Deps, org: str, query: Any) -> int:
    tags = {standing.value: standing_tag(standing) for standing in Standing}

    async def work(tx: Tx) -> int:
        return (await rows(tx, query, org=org, tags=tags))[0]["wrong"]

    return await deps.db.read(work)


async def current_facts(deps: Deps, who: Principal) -> set[RecordId]:
    filter = await fact_lists.list_filter(deps, who)
    return {fact.id for fact in await fact_lists.page(deps, who, filter, Page(100))}


async def facts_by_id(deps: Deps, who: Principal, id: RecordId) -> Any:
    return (await records.by_ids(deps, who, [id]))[id]


def test_the_rules_hold_after_every_step(neo4j_address: Address, database: Database) -> None:
    with asyncio.Runner() as runner:
        own = Database.connect(
            neo4j_address.uri, user=neo4j_address.user, password=neo4j_address.password, database=database.name
        )
        made = deps_on(own)
        deps = runner.run(made.__aenter__())
        Memories.world = World(runner, own, deps)
        try:
            run_state_machine_as_test(
                Memories,
                settings=settings(
                    max_examples=4,
                    stateful_step_count=20,
                    deadline=None,
                    derandomize=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(made.__aexit__(None, None, None))
            runner.run(own.close())
