"""Nobody is shown, or told of, what is not theirs: every field, by everybody, about every place."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from graph_mem.store.visibility import security_events
from tests.guards.matrix import (
    Row,
    Target,
    anonymous,
    ask,
    ids_given,
    ids_taken,
    must_be_asked,
    selected,
    table,
    targets,
    unknown,
)
from tests.guards.world import READERS, VIEWERS, World

ROWS = table()
RETIRED = 2
"""A memory and a fact about the roof were superseded in each place, and one memory is pending."""
READS = [row for row in ROWS if not row.changes and row.shows != "watch"]


def test_every_field_has_a_row() -> None:
    """A field that returns or takes a record cannot be forgotten: somebody has to say who sees what through it."""
    asked = {field for row in ROWS for field in selected(row)}
    assert must_be_asked() - asked == set()


def test_every_id_that_a_field_takes_is_tried_with_what_is_not_ones_own() -> None:
    given = {argument for row in ROWS for argument in ids_given(row)}
    assert {id for id, filled in ids_taken() if not filled & given} == set(UNTRIED)


UNTRIED: Mapping[str, str] = {
    "Mutation.captureMemory(input.runId)": "a name that the caller makes up; looked for among the caller's own runs",
    "Query.context(input.runId)": "a name that the caller makes up",
    "Mutation.promoteScratch(input.scope.clientId)": "the note is captured: see captureMemory in a place",
    "Mutation.promoteScratch(input.scope.dealId)": "the note is captured: see captureMemory in a place",
    "Query.accessLog(by)": "narrows the lines that the caller may see",
}


def test_no_row_is_for_a_field_that_is_gone() -> None:
    assert [row.name for row in ROWS if row.name.split()[0] not in selected(row)] == []


def test_the_table_names_everybody() -> None:
    named = {viewer for readers in READERS.values() for viewer in readers}
    assert named == set(VIEWERS) - {"nobody"}


@pytest.fixture(scope="session", params=READS, ids=lambda row: row.name)
def row(request: pytest.FixtureRequest) -> Row:
    return request.param


async def test_a_read_shows_what_its_readers_may_see_and_nothing_else(world: World, row: Row) -> None:
    before = security_events.count
    found = await asyncio.gather(*(_faults_of(world, viewer, row) for viewer in VIEWERS))
    assert [fault for faults in found for fault in faults] == []
    assert security_events.count == before, "the first layer let something through"


async def _faults_of(world: World, viewer: str, row: Row) -> list[str]:
    return [f"{viewer}: {fault}" async for fault in _faults(world, viewer, row)]


async def _faults(world: World, viewer: str, row: Row) -> AsyncIterator[str]:
    if not row.takes:
        answer = await ask(world, viewer, row, {})
        for fault in _unasked(world, viewer, row, answer):
            yield fault
    unknowns: dict[str, Any] = {}
    for target in targets(world, row):
        answer = await ask(world, viewer, row, target.variables)
        for leak in world.leaks(viewer, answer, asked=target.asked):
            yield f"{target.kind} of {target.place} leaks {leak}"
        if viewer == "nobody":
            if [error["code"] for error in answer["errors"]] != ["UNAUTHENTICATED"]:
                yield f"is answered {answer}"
        elif row.shows in ("place", "author", "account"):
            if viewer not in target.readers and target.like not in unknowns:
                never = unknown(target)
                unknowns[target.like] = anonymous(await ask(world, viewer, row, never.variables), never)
            for fault in _by_target(world, viewer, row, target, answer, unknowns.get(target.like)):
                yield fault


def _by_target(
    world: World, viewer: str, row: Row, target: Target, answer: dict[str, Any], other: Any
) -> Iterator[str]:
    if not answer["ran"]:
        yield f"{target.kind} of {target.place} is answered without the database"
    elif viewer not in target.readers:
        if anonymous(answer, target) != other:
            yield f"{target.kind} of {target.place} is answered {answer}, an unknown one {other}"
    elif answer["errors"]:
        yield f"{target.kind} of {target.place} is refused: {answer['errors']}"
    elif row.shows == "account":
        if not any(answer["data"].values()):
            yield f"does not see {target.variables}"
    elif target.place and target.place not in world.shown(answer):
        yield f"{target.kind} of {target.place} is not shown"


def _unasked(world: World, viewer: str, row: Row, answer: dict[str, Any]) -> Iterator[str]:
    for leak in world.leaks(viewer, answer):
        yield f"leaks {leak}"
    public = row.name == "Query.health"
    if viewer == "nobody" and not public:
        if not answer["errors"] or any(error["code"] != "UNAUTHENTICATED" for error in answer["errors"]):
            yield f"is answered {answer}"
    elif answer["errors"]:
        if row.name.startswith("Query."):
            yield f"is refused: {answer['errors']}"
    elif row.shows == "everything":
        mine = {place for place, readers in READERS.items() if viewer in readers} - set(row.not_in)
        for place in sorted(mine - world.shown(answer)):
            yield f"is not shown {place}"
        for found in _lists(answer["data"]):
            if found.get("totalCount") not in (None, len(found["nodes"])):
                yield f"counts {found['totalCount']}, shows {len(found['nodes'])}"
        page = answer["data"].get("search") or {}
        if row.name == "Query.search" and (page["passedOver"], page["pending"]) != (RETIRED * len(mine), len(mine)):
            yield f"is told of {page['passedOver']} retired and {page['pending']} pending, sees {len(mine)} places"


def _lists(value: Any) -> Iterator[dict[str, Any]]:
    """Every list of the answer with its count."""
    if isinstance(value, dict):
        if "totalCount" in value:
            yield value
        for one in value.values():
            yield from _lists(one)
    elif isinstance(value, list):
        for one in value:
            yield from _lists(one)
