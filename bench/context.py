"""Milliseconds of a context: Path A with 5, 50 and 500 pins, Path A + B, against the bare look-ups in the same run.

    GRAPH_MEM_NEO4J_URI=... uv run python bench/context.py --rounds 100

Bare is what nobody can do without: the texts of the pinned memories, the policies and the variables, each fetched by a
plain statement in one read transaction, without access rules, supersession, rendering, tokens or trace. All variants
take turns, so that whatever else the machine does hits them alike.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import quantiles

from ulid import ULID

from graph_mem import app
from graph_mem.config import Settings
from graph_mem.core.model import ORGANIZATION, Principal, RecordId, Role
from graph_mem.core.retrieval import Query, ScopeName
from graph_mem.services import Deps, admin, canon, capture, context, identity, pins, recall
from graph_mem.services.canon import NewPolicy, NewValue
from graph_mem.services.capture import NewMemory
from graph_mem.services.context import Request
from graph_mem.services.pins import NewPin
from graph_mem.services.worker import Worker
from graph_mem.store import context as lookup
from graph_mem.store.db import Tx, rows

PINS = (5, 50, 500)
POLICIES = VARIABLES = 10
NOTES = 500
INSTRUCTION = "Which rates were agreed for the rollout, and who must review a date before it is promised?"
TEXT = (
    "Decision {i}: dates are promised only after {i} reviews. The reviewer writes down what was checked, for whom, and "
    "what remains open; the client hears of it on the same day. Exceptions are decided by the account lead alone."
)

BARE = (
    "MATCH (p:Policy {org: $org}) RETURN p.name AS name, p.text AS text",
    "MATCH (v:Variable {org: $org}) RETURN v.name AS name, v.value AS value",
    "MATCH (m:Memory) WHERE m.id IN $ids RETURN m.id AS id, m.text AS text",
)


@dataclass(frozen=True)
class Desk:
    """One organization with so many pins."""

    deps: Deps
    who: Principal
    pinned: Sequence[RecordId]

    async def bare(self) -> None:
        async def work(tx: Tx) -> None:
            for statement in BARE:
                await rows(tx, statement, org=self.who.org_id, ids=list(self.pinned))

        await self.deps.db.read(work)

    async def look_up(self) -> None:
        await self.deps.db.read(lambda tx: lookup.canon(tx, self.who, ORGANIZATION))

    async def path_a(self) -> None:
        await context.assemble(self.deps, self.who, self._request(search=False))

    async def path_a_and_b(self) -> None:
        await context.assemble(self.deps, self.who, self._request(search=True))

    async def search(self) -> None:
        query = Query(INSTRUCTION, scope=ScopeName())
        await recall.search_page(self.deps, self.who, query, first=self.deps.limits.tail_hits)

    def _request(self, *, search: bool) -> Request:
        return Request(run_id=str(ULID()), instruction=INSTRUCTION, budget_tokens=200_000, semantic_tail=search)


async def furnish(deps: Deps, count: int) -> Desk:
    """A fresh organization with `count` pins and the notes that a search goes through."""
    name = f"bench-{ULID()}"
    made = await admin.ensure_principal(deps, organization=name, user=f"owner@{name}", role=Role.OWNER)
    who = await identity.principal(deps, org_id=made.org_id, user_id=made.user_id)
    assert who is not None
    for i in range(POLICIES):
        await canon.save_policy(
            deps, who, NewPolicy(name=f"Policy {i}", text=f"Rule {i}: say what is known, and since when.")
        )
        await canon.set_variable(deps, who, NewValue(name=f"name {i}", value=f"value {i}"))
    notes = [
        NewMemory(text=f"Note {i}: in week {i % 52} the rate of client {i} was {80 + i % 90} euros.")
        for i in range(NOTES)
    ]
    await capture.accept_all(deps, who, notes, rank=0)
    texts = [NewMemory(text=TEXT.format(i=i), label="decision") for i in range(count)]
    ids = [one.id for one in await capture.accept_all(deps, who, texts, rank=0)]
    for i, id in enumerate(ids):
        await pins.pin(deps, who, NewPin(memory_id=id, slot=f"slot {i % 7}", order=i))
    worker = Worker(deps, app.HANDLERS, org_ids=[who.org_id])
    while await worker.work_once():
        pass
    return Desk(deps, who, ids)


async def measure(variants: Sequence[tuple[str, Callable[[], Awaitable[None]]]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each variant, taking turns; the first rounds are not counted."""
    times: dict[str, list[float]] = {name: [] for name, _ in variants}
    for turn in range(-5, rounds):
        for name, run in variants:
            started = time.perf_counter()
            await run()
            if turn >= 0:
                times[name].append((time.perf_counter() - started) * 1000)
    return times


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--json", action="store_true", help="Answer with one JSON document.")
    given = options.parse_args()
    found: dict[str, dict[str, float]] = {}
    async with app.opened(Settings(), light=True) as deps:
        await deps.embedder.settled()
        for count in PINS:
            desk = await furnish(deps, count)
            variants = [
                ("bare look-ups", desk.bare),
                ("our look-up", desk.look_up),
                ("Path A", desk.path_a),
                ("search alone", desk.search),
                ("Path A + B", desk.path_a_and_b),
            ]
            for name, times in (await measure(variants, given.rounds)).items():
                parts = quantiles(times, n=20)
                found[f"{count} pins, {name}"] = {"p50": round(parts[9], 1), "p95": round(parts[18], 1)}
    if given.json:
        print(json.dumps(found))
        return
    print(f"{'milliseconds':32} {'p50':>8} {'p95':>8}")
    for name, one in found.items():
        print(f"{name:32} {one['p50']:8.1f} {one['p95']:8.1f}")


if __name__ == "__main__":
    asyncio.run(main())
