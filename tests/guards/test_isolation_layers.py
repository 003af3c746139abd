"""The second layer holds alone: with the first taken out, of all statements at once and of each by itself."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from graph_mem.store.visibility import security_events
from tests.guards.matrix import Row, Target, anonymous, ask, table, targets
from tests.guards.opened import Opened
from tests.guards.statements import statements
from tests.guards.world import World

INTRUDERS = ("stranger", "member")
NAMES = {one.text: one.name for one in statements()}
READS = {one.name for one in statements() if one.reads_only and one.checked and "[" not in one.name}

QUIET = {
    "chains.LINKS": "asks for links among records that passed",
    "search.SURROUNDINGS": "two numbers, counted under the predicate",
    "memories.PENDING": "asked by nobody in the API",
    "context.CANON": "asks for the places around the caller's own scope besides",
    "canon.VARIABLES": "asks for the places around the caller's own scope besides",
    "canon.PINS": "asks for the places around the caller's own scope besides",
}
"""Statements that bring nothing foreign when they alone are opened: why."""


@dataclass(frozen=True)
class Attempt:
    """Somebody asks for what is not theirs."""

    row: Row
    viewer: str
    target: Target | None

    @property
    def variables(self) -> Any:
        return self.target.variables if self.target else {}


def attempts(world: World) -> Iterator[Attempt]:
    for row in table():
        if row.changes or row.name.startswith("Mutation."):
            continue
        for viewer in INTRUDERS:
            if not row.takes:
                yield Attempt(row, viewer, None)
            for target in targets(world, row):
                if viewer not in target.readers and target.place != "organization":
                    yield Attempt(row, viewer, target)


async def faults(world: World, attempt: Attempt, database: Opened) -> list[str]:
    """What is shown through `database` that is not shown otherwise."""
    row, viewer, target = attempt.row, attempt.viewer, attempt.target
    opened = replace(world, deps=replace(world.deps, db=database))
    answer = await ask(opened, viewer, row, attempt.variables)
    name = f"{row.name} as {viewer}"
    found = [f"{name} leaks {leak}" for leak in world.leaks(viewer, answer, asked=target.asked if target else ())]
    if target is not None:
        usual = await ask(world, viewer, row, attempt.variables)
        if anonymous(answer, target) != anonymous(usual, target):
            found.append(f"{name} is told {answer} of {target.kind} of {target.place}, usually {usual}")
    return found


@pytest.fixture(scope="session")
async def reached(world: World) -> dict[str, list[Attempt]]:
    """Which attempts run which statement."""
    made: dict[str, list[Attempt]] = {}

    async def one(attempt: Attempt) -> None:
        database = Opened(world.deps.db, orgs=(world.org.id, world.other.id))
        found = await faults(world, attempt, database)
        assert found == [], found
        for text in database.ran:
            made.setdefault(NAMES[text], []).append(attempt)

    for several in _by_eight(list(attempts(world))):
        await asyncio.gather(*map(one, several))
    return made


def _by_eight(attempts: list[Attempt]) -> Iterator[list[Attempt]]:
    for start in range(0, len(attempts), 8):
        yield attempts[start : start + 8]


async def test_nothing_foreign_is_shown_without_the_first_layer(world: World) -> None:
    before = security_events.count
    row = next(row for row in table() if row.name == "Query.memory")
    target = next(one for one in targets(world, row) if one.place == "private")
    database = Opened(world.deps.db, orgs=(world.org.id, world.other.id))
    assert await faults(world, Attempt(row, "member", target), database) == []
    assert security_events.count > before


async def test_the_second_layer_holds_for_each_statement(world: World, reached: dict[str, list[Attempt]]) -> None:
    silent: list[str] = []
    texts = {one.name: one.text for one in statements()}
    for name, tried in sorted(reached.items()):
        before = security_events.count
        for attempt in tried:
            database = Opened(world.deps.db, orgs=(world.org.id, world.other.id), only=texts[name])
            assert await faults(world, attempt, database) == [], name
            if security_events.count > before:
                break
        else:
            silent.append(name)
    assert [name for name in silent if name not in QUIET] == []


async def test_every_statement_that_reads_was_tried(reached: dict[str, list[Attempt]]) -> None:
    """But for those that only a worker, an operator or a change of something seen before runs."""
    assert READS - set(reached) - UNTRIED == set()


UNTRIED = frozenset[str]()
