"""A simulated year: nights of consolidation over a base that is used, changed and decided about, invariants each night.

`python -m bench.year --records 2000 --nights 365` runs the whole of it and prints what happened; the tests run a
smaller one. The clock is a fake, everything else is real.
"""

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from graph_mem.core.model import Page, Principal, RecordId
from graph_mem.core.proposals import Decision, Proposal, ProposalState
from graph_mem.core.retrieval import Query
from graph_mem.errors import Conflict
from graph_mem.services import Deps, capture, consolidation, facts, recall, relations, review
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.store.db import Tx, rows
from graph_mem.store.reviews import Filter

CANON = "The canon of pricing: no offer leaves the house below the floor that finance set."
QUESTION = "canon of pricing floor that finance set"

_TOPICS = ("invoice", "renewal", "migration", "audit", "workshop", "contract", "budget", "pilot", "churn", "support")
_PEOPLE = ("Ana Garcia", "Ana García", "Tom Baker", "Li Wei", "Tom Bakers", "Mia Chen", "Mia Chan")

INVARIANTS: dict[str, str] = {
    "no slot of one has two current facts": """
        MATCH (s:Slot {org: $org})-[:CURRENT]->(f:Fact) WITH s, count(f) AS n WHERE n > 1 RETURN count(*) AS broken""",
    "what is retired by an active link is not current": """
        MATCH (r:Memory {org: $org, standing: 'CURRENT'})
        WHERE EXISTS { (r)<-[:SUPERSEDES {state: 'ACTIVE', retires: true}]-() } RETURN count(*) AS broken""",
    "chunks stand as their memory stands": """
        MATCH (c:Chunk {org: $org}) MATCH (m:Memory {id: c.memoryId})
        WHERE c.standing <> m.standing OR c.label <> m.label RETURN count(*) AS broken""",
    "only what is current is unique by its text": """
        MATCH (m:Memory {org: $org}) WHERE m.dedupKey IS NOT NULL AND m.standing <> 'CURRENT'
        RETURN count(*) AS broken""",
    "nothing is proposed twice at once": """
        MATCH (p:Proposal {org: $org, state: 'PENDING'}) WITH p.kind AS kind, p.subjectIds AS ids, count(*) AS n
        WHERE n > 1 RETURN count(*) AS broken""",
    "nothing protected left recall": """
        MATCH (m:Memory {org: $org}) WHERE (m.position OR m.label = 'playbook') AND m.standing = 'ARCHIVED'
        RETURN count(*) AS broken""",
}
WATCHED = """
MATCH (n:Memory|Fact|Entity) WHERE n.id IN $ids
RETURN n.id AS id, [n.standing, n.label, n.importance, n.startingStrength, n.evergreen, n.mergedInto, n.aliases,
  n.activeKey, n.dedupKey] AS state
"""
USE = """
UNWIND $used AS one
MATCH (m:Memory {id: one.id})
SET m.retrievals = coalesce(m.retrievals, 0) + 1, m.lastRetrievedAt = $at,
    m.queryKinds = CASE WHEN one.kind IN coalesce(m.queryKinds, []) THEN m.queryKinds
                   ELSE coalesce(m.queryKinds, []) + [one.kind] END
"""


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    now: datetime = datetime(2026, 1, 1, 3, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class Kept:
    """A decision that was kept, when, and how its subjects stood before."""

    proposal: Proposal
    at: datetime
    before: dict[str, Any]


@dataclass
class Year:
    """What a simulated year did, and what of it was taken back at its end."""

    nights: int = 0
    captured: int = 1
    superseded: int = 0
    filed: Counter[str] = field(default_factory=Counter[str])
    kept: int = 0
    reverted: int = 0
    refused: int = 0
    taken_back: int = 0
    not_exactly: int = 0
    canon_checked: int = 0
    cycle_s: list[float] = field(default_factory=list[float])


class Broken(AssertionError):
    """An invariant does not hold."""


async def simulate(
    deps: Deps,
    principal: Principal,
    clock: Clock,
    work_off: Callable[[], Any],
    *,
    records: int,
    nights: int,
    step_days: float = 1.0,
    seed: int = 7,
) -> Year:
    """Live through `nights`; raises Broken at the first night on which an invariant does not hold."""
    life = _Life(replace(deps, clock=clock), principal, clock, work_off, random.Random(seed))
    await life.begin(records)
    for night in range(nights):
        clock.now += timedelta(days=step_days)
        await life.day()
        await life.night()
        await life.check()
        if night % max(1, nights // 12) == 0:
            await life.canon_first()
    await life.canon_first()
    await life.take_back(months=10)
    await life.check()
    return life.year


class _Life:
    def __init__(
        self, deps: Deps, principal: Principal, clock: Clock, work_off: Callable[[], Any], chance: random.Random
    ) -> None:
        self._deps, self._principal, self._clock = deps, principal, clock
        self._work_off, self._chance = work_off, chance
        self._ids: list[RecordId] = []
        self._kept: list[Kept] = []
        self.year = Year()

    async def begin(self, records: int) -> None:
        self._canon = (await self._capture(NewMemory(text=CANON, label="playbook")))[0]
        for start in range(0, records, 100):
            await self._capture(*(self._note(start + i) for i in range(min(100, records - start))))

    def _note(self, number: int) -> NewMemory:
        who, topic = self._chance.choice(_PEOPLE), self._chance.choice(_TOPICS)
        label = self._chance.choices(["note", "observation", "decision", "insight"], [70, 20, 7, 3])[0]
        return NewMemory(text=f"{who}: about the {topic} number {number}, {self._chance.random():.6f}.", label=label)

    async def _capture(self, *new: NewMemory) -> list[RecordId]:
        made = await capture.accept_all(self._deps, self._principal, list(new), rank=0)
        await self._work_off()
        ids = [memory.id for memory in made]
        self._ids += ids
        self.year.captured = len(self._ids)
        return ids

    async def day(self) -> None:
        """Some records are used, one is saved, one in three days something is superseded."""
        used = [
            {
                "id": self._chance.choice(self._ids[: max(5, len(self._ids) // 20)]),
                "kind": f"k{self._chance.randrange(9)}",
            }
            for _ in range(10)
        ]
        at = int(self._clock.now.timestamp() * 1000)
        await self._deps.db.write(lambda tx: rows(tx, USE, used=used, at=at))
        (new,) = await self._capture(self._note(len(self._ids)))
        if self._chance.random() < 0.3:
            await self._supersede(new)
        if self._chance.random() < 0.3:
            rate = NewFact(
                subject=self._chance.choice(_TOPICS),
                relation="price",
                statement=f"It costs {self._chance.random():.4f}.",
            )
            await facts.save(self._deps, self._principal, rate)

    async def _supersede(self, new: RecordId) -> None:
        old = self._chance.choice(self._ids[1:-1])
        await relations.relate(self._deps, self._principal, from_id=new, to_id=old, kind="SUPERSEDES")
        self.year.superseded += 1

    async def night(self) -> None:
        """The cycle, then a person who decides about some of the queue."""
        started = time.perf_counter()
        report = await consolidation.consolidate(self._deps, self._principal)
        self.year.cycle_s.append(time.perf_counter() - started)
        self.year.nights += 1
        self.year.filed.update(report.by_kind)
        waiting = Filter(None, (ProposalState.PENDING,))
        for one in await review.queue(self._deps, self._principal, waiting, Page(5)):
            await self._decide(one, self._chance.choices([Decision.KEEP, Decision.REVERT], [7, 3])[0])

    async def _decide(self, one: Proposal, decision: Decision) -> None:
        before = await self._watched(one)
        try:
            await review.decide(self._deps, self._principal, one.id, decision)
        except Conflict:
            self.year.refused += 1
            await review.decide(self._deps, self._principal, one.id, Decision.REVERT)
            return
        if decision is Decision.KEEP:
            self._kept.append(Kept(one, self._clock.now, before))
            self.year.kept += 1
        else:
            self.year.reverted += 1

    async def _watched(self, one: Proposal) -> dict[str, Any]:
        found = await self._deps.db.read(lambda tx: rows(tx, WATCHED, ids=list(one.subject_ids)))
        return {row["id"]: row["state"] for row in found}

    async def check(self) -> None:
        """Every invariant, and that no record is lost."""
        for what, statement in INVARIANTS.items():
            found = await self._deps.db.read(lambda tx, s=statement: _one(tx, s, self._principal.org_id))
            if found:
                raise Broken(f"{what}: {found} broken on {self._clock.now:%Y-%m-%d}")
        lost = await self._deps.db.read(
            lambda tx: _one(tx, "MATCH (m:Memory {org: $org}) RETURN count(*) AS broken", self._principal.org_id)
        )
        if lost != len(self._ids):
            raise Broken(f"{len(self._ids)} memories were saved, {lost} are there")

    async def canon_first(self) -> None:
        page = await recall.search_page(self._deps, self._principal, Query(text=QUESTION), first=5)
        if not page.hits or page.hits[0].record.id != self._canon:
            raise Broken(f"the canon is not first on {self._clock.now:%Y-%m-%d}")
        self.year.canon_checked += 1

    async def take_back(self, *, months: int) -> None:
        """Revert what was kept in some months, in any order; what can be restored is compared with what was there."""
        chosen = set(self._chance.sample(range(1, 13), months))
        back = [one for one in self._kept if one.at.month in chosen]
        firsts: dict[str, Any] = {}
        for one in back:
            for id, state in one.before.items():
                firsts.setdefault(id, state)
        outside = {id for one in self._kept if one.at.month not in chosen for id in one.proposal.subject_ids}
        self._chance.shuffle(back)
        stuck: set[str] = set()
        for one in back:
            try:
                await review.decide(self._deps, self._principal, one.proposal.id, Decision.REVERT)
                self.year.taken_back += 1
            except Conflict:
                self.year.not_exactly += 1
                stuck |= set(one.proposal.subject_ids)
        await self._compare(firsts, but={*outside, *stuck})

    async def _compare(self, firsts: dict[str, Any], *, but: set[str]) -> None:
        """What was taken back stands as before the first decision, unless something else happened to it."""
        wanted = {id: state for id, state in firsts.items() if id not in but}
        found = await self._deps.db.read(lambda tx: rows(tx, WATCHED, ids=list(wanted)))
        for row in found:
            if row["state"] != wanted[row["id"]] and row["state"][0] != "SUPERSEDED":
                raise Broken(f"{row['id']} was {wanted[row['id']]} and is {row['state']} after reverting")


async def _one(tx: Tx, statement: Any, org: str) -> int:
    return (await rows(tx, statement, org=org))[0]["broken"]


async def _main(records: int, nights: int, step_days: float) -> None:
    from bench.stage import stage  # noqa: PLC0415 # only the command needs one

    clock = Clock()
    async with stage() as made:
        year = await simulate(
            made.deps, made.principal, clock, made.work_off, records=records, nights=nights, step_days=step_days
        )
    told = {**vars(year), "filed": dict(year.filed), "cycle_s": None}
    told["cycle_median_s"] = sorted(year.cycle_s)[len(year.cycle_s) // 2]
    told["cycle_longest_s"] = max(year.cycle_s)
    print(json.dumps(told))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--step-days", type=float, default=1.0, help="days from one night to the next")
    given = parser.parse_args()
    asyncio.run(_main(given.records, given.nights, given.step_days))
