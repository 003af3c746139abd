"""The second layer holds alone: with the first taken out, of all statements at once and of each by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from graph_mem.core.model import EntityId, Page, Principal, RecordId
from graph_mem.core.proposals import ProposalState
from graph_mem.core.retrieval import Query, ScopeName
from graph_mem.services import (
    Deps,
    accounts,
    canon,
    context,
    fact_lists,
    history,
    pins,
    recall,
    records,
    relations,
    review,
    scratch,
)
from graph_mem.store import reviews, search
from graph_mem.store.reviews import Filter
from graph_mem.store.search import Where
from graph_mem.store.traces import Between
from graph_mem.store.visibility import security_events
from tests.guards.matrix import Row, ask, table, targets
from tests.guards.opened import NAMES, Opened
from tests.guards.statements import statements
from tests.guards.world import READERS, World

INTRUDERS = ("stranger", "member")
TEXTS = {one.name: one.text for one in statements()}
READS = {one.name for one in statements() if one.reads_only and one.checked and "MEANING[" not in one.name}
PAGE = Page(50)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
LATER = datetime(2100, 1, 1, tzinfo=UTC)

Call = Callable[[Deps, Principal, Mapping[str, str]], Awaitable[Any]]

SERVICES: Mapping[str, Call] = {
    "by ids": lambda deps, who, ids: records.by_ids(deps, who, [RecordId(ids["memory"]), RecordId(ids["fact"])]),
    "lineage": lambda deps, who, ids: records.lineage(deps, who, [RecordId(ids["memory"])]),
    "versions": lambda deps, who, ids: records.versions(deps, who, RecordId(ids["edited"]), PAGE),
    "entity links": lambda deps, who, ids: records.entity_links(deps, who, [RecordId(ids["memory"])]),
    "entity": lambda deps, who, ids: records.entity(deps, who, ids["entity"]),
    "entities": lambda deps, who, _: records.entity_page(deps, who, query="a", label=None, page=PAGE),
    "memories of an entity": lambda deps, who, ids: records.entity_memories(deps, who, EntityId(ids["entity"]), PAGE),
    "related entities": lambda deps, who, ids: records.related(deps, who, EntityId(ids["entity"]), PAGE),
    "pending": lambda deps, who, _: records.pending(deps, who),
    "facts of a memory": lambda deps, who, ids: fact_lists.of_memory(deps, who, RecordId(ids["memory"]), PAGE),
    "facts about an entity": lambda deps, who, ids: fact_lists.about(deps, who, EntityId(ids["entity"]), PAGE),
    "sources": lambda deps, who, ids: fact_lists.sources(deps, who, RecordId(ids["fact"]), PAGE),
    "entity of a fact": lambda deps, who, ids: fact_lists.entity(deps, who, RecordId(ids["fact"])),
    "links": lambda deps, who, ids: relations.of_record(deps, who, RecordId(ids["memory"]), PAGE),
    "history": lambda deps, who, ids: history.history(deps, who, ids["memory"], PAGE),
    "chain": lambda deps, who, ids: history.chain(deps, who, ids["memory"]),
    "known at": lambda deps, who, ids: history.memory_known_at(deps, who, RecordId(ids["edited"]), at=LATER),
    "policy": lambda deps, who, ids: canon.policy(deps, who, ids.get("policy", "")),
    "policies": lambda deps, who, _: canon.policies(deps, who),
    "variables": lambda deps, who, _: canon.variables(deps, who, scope=ScopeName()),
    "pin": lambda deps, who, ids: pins.by_id(deps, who, ids["pin"]),
    "pins": lambda deps, who, _: pins.pins(deps, who, scope=ScopeName()),
    "notes": lambda deps, who, ids: scratch.notes(deps, who, run_id=ids["run"]),
    "note": lambda deps, who, ids: scratch.by_id(deps, who, ids["scratch"]),
    "account of a run": lambda deps, who, _: context.run_trace(deps, who, run_id="run of alice"),
    "account of a search": lambda deps, who, ids: accounts.trace(deps, who, ids["trace"]),
    "accounts": lambda deps, who, _: accounts.traces(deps, who, Between(), PAGE),
    "proposals": lambda deps, who, ids: review.by_ids(deps, who, [ids["proposal"]]),
    "queue": lambda deps, who, _: review.queue(deps, who, Filter(None, (ProposalState.PENDING,)), PAGE),
    "queue's length": lambda deps, who, _: review.count(deps, who, Filter(None, (ProposalState.PENDING,))),
    "rehearsals": lambda deps, who, _: review.due(deps, who, only_due=False, page=PAGE),
    "changes of the queue": lambda deps, who, _: deps.db.read(
        lambda tx: reviews.changed(tx, who, kinds=None, since=LONG_AGO)
    ),
    "context": lambda deps, who, _: _context(deps, who),
    "account of a run by id": lambda deps, who, ids: context.run_trace_by_id(deps, who, ids["account"]),
    "substring": lambda deps, who, _: deps.db.read(
        lambda tx: search.substring(tx, who, Where(scopes=who.scopes), needle="roof", limit=50)
    ),
    "search": lambda deps, who, _: _found(deps, who, Query("the roof is to be painted blue")),
}


async def _context(deps: Deps, who: Principal) -> Any:
    made = await context.assemble(deps, who, context.Request(run_id="an attempt", instruction="the roof"))
    return [made.prefix.text, list(made.view.memories)]


async def _found(deps: Deps, who: Principal, query: Query) -> Any:
    page = await recall.search_page(deps, who, query, first=50)
    return [(hit.record, hit.snippet) for hit in page.hits]


@dataclass(frozen=True)
class Attempt:
    """Somebody asks for what is not theirs: a service about a place, or the API about a target."""

    name: str
    viewer: str
    asked: tuple[str, ...]
    call: Callable[[World], Awaitable[Any]]


def attempts(world: World) -> Iterator[Attempt]:
    makers = {"private": "alice", "foreign": "stranger"}
    for viewer in INTRUDERS:
        for place in world.hidden_from(viewer):
            maker = makers.get(place, "owner")
            ids = {**world.ids[place], "trace": world.traces[maker], "account": world.accounts[maker]}
            for name, call in SERVICES.items():
                yield Attempt(f"{name} of {place}", viewer, tuple(ids.values()), _service(viewer, call, ids))
        for row in table():
            if not row.takes and row.name.startswith("Query."):
                yield Attempt(row.name, viewer, (), _asking(viewer, row, {}))
            for target in targets(world, row):
                seen = viewer in (READERS[target.place] if target.place else target.readers)
                if row.name.startswith("Query.") or (row.changes and not seen):
                    given = _variables(world, viewer, row, target.variables)
                    yield Attempt(row.name, viewer, target.asked, _asking(viewer, row, given))


def _service(viewer: str, call: Call, ids: Mapping[str, str]) -> Callable[[World], Awaitable[Any]]:
    return lambda world: call(world.deps, world.people[viewer], ids)


def _asking(viewer: str, row: Row, variables: Mapping[str, Any]) -> Callable[[World], Awaitable[Any]]:
    return lambda world: ask(world, viewer, row, variables)


def _variables(world: World, viewer: str, row: Row, given: Mapping[str, Any]) -> Mapping[str, Any]:
    own = world.ids["foreign" if viewer == "stranger" else "organization"]["edited"]
    return {**given, "own": own} if "$own" in row.document else given


async def leaks(world: World, attempt: Attempt, database: Opened) -> list[str]:
    """What is told through `database` of what the caller may not see."""
    answer = await attempt.call(replace(world, deps=replace(world.deps, db=database)))
    return [f"{attempt.name} as {attempt.viewer}: {one}" for one in _told(world, attempt, answer)]


def _told(world: World, attempt: Attempt, answer: Any) -> list[str]:
    return world.leaks(attempt.viewer, answer if isinstance(answer, dict) else repr(answer), asked=attempt.asked)


def opened(world: World, *, only: str | None = None) -> Opened:
    return Opened(world.deps.db, places=world.places.values(), only=only)


@pytest.fixture(scope="module")
async def reached(world: World) -> dict[str, list[Attempt]]:
    """Which attempts run which statement; with all of them opened none shows or changes anything."""
    made: dict[str, list[Attempt]] = {}
    before = await world.state()

    async def one(attempt: Attempt) -> list[str]:
        database = opened(world)
        found = await leaks(world, attempt, database)
        for text in database.ran:
            made.setdefault(NAMES[text], []).append(attempt)
        return found

    tried = list(attempts(world))
    for start in range(0, len(tried), 8):
        several = tried[start : start + 8]
        found = await asyncio.gather(*map(one, several))
        assert [leak for one_found in found for leak in one_found] == []
    assert changed(before, await world.state()) == []
    return made


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Any]:
    """What there was before and is not the same now."""
    return [now for id, was in before.items() if (now := after.get(id)) != was]


async def test_nothing_foreign_is_shown_without_the_first_layer(world: World) -> None:
    before = security_events.count
    ids = world.ids["private"]
    found = await records.by_ids(
        replace(world.deps, db=opened(world)), world.people["member"], [RecordId(ids["memory"]), RecordId(ids["fact"])]
    )
    assert found == {}
    assert security_events.count == before + len((ids["memory"], ids["fact"]))


async def test_the_second_layer_holds_for_each_statement(world: World, reached: dict[str, list[Attempt]]) -> None:
    silent: list[str] = []
    for name, tried in sorted(reached.items()):
        before = security_events.count
        for attempt in tried:
            assert await leaks(world, attempt, opened(world, only=TEXTS[name])) == [], name
            if security_events.count > before:
                break
        else:
            silent.append(name)
    assert [name for name in silent if name in READS and name not in QUIET] == []


async def test_every_statement_that_reads_was_tried(reached: dict[str, list[Attempt]]) -> None:
    assert sorted(READS - set(reached) - set(UNTRIED)) == []


QUIET: Mapping[str, str] = {
    **dict.fromkeys(("scratch.BY_ID", "scratch.OF_RUN"), "asks for the caller's own notes besides"),
    **dict.fromkeys(
        ("canon.POLICY_VERSIONS", "canon.VARIABLE_VERSIONS", "context.PINNED", "runs.WORDS"),
        "asks for what an account names that passed",
    ),
    "chains.LINKS": "asks for links among records that passed",
    "folding.VERSION_AT": "asks for versions of a memory that passed",
    "search.RECORDS": "asks for records that a leg found and that passed",
    "memories.IMPORTED": "asks for keys that are made from the caller's place",
    "canon.VARIABLES": "asks for the scopes around the one that the caller named besides",
}
"""Statements that bring nothing foreign when they alone are opened, and why."""

UNTRIED: Mapping[str, str] = {
    **{name: "the cycle's, for a partition that it was given" for name in READS if name.startswith("candidates.")},
    **{name: "what erasing a record that passed takes away" for name in READS if name.startswith("erasure.")},
    **dict.fromkeys(
        ("facts.HOLDER", "facts.PAST", "facts.REFUSED", "facts.WAITING", "canon.PIN_OF", "canon.POLICY_NAMED",
         "canon.VARIABLE_NAMED"),
        "asks for a key that is made from a place that the caller was checked for",
    ),
    **dict.fromkeys(
        ("facts.BY_ID", "facts.NEIGHBOURS", "lifecycle.RIVAL", "lifecycle.SLOT_MATES", "relations.RETIRED_BY",
         "relations.LEADS", "relations.LINKED"),
        "about records that the transaction holds locked, which passed",
    ),
    **dict.fromkeys(
        ("images.AROUND", "images.EDGES", "images.NODES", "lifecycle.LINKED", "lifecycle.MERGED_BEFORE",
         "images.RETIRED", "reviews.RECALL"),
        "about the subjects of a proposal that passed",
    ),
    "remnants.ELSEWHERE": "what erasing a record that passed leaves; each row is checked",
    **dict.fromkeys(("folding.ALIKE", "folding.CURRENT_COPY", "folding.SEEN", "runs.HELD"), "the worker's"),
    **dict.fromkeys(
        ("reviews.OPEN", "search.SURROUNDINGS", "scratch.COUNT"), "counted under the predicate"
    ),
}  # fmt: skip
"""Statements that nobody reaches with what is not theirs, and why."""
