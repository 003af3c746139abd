"""Nobody changes what they may not see, and only some may change what they see: every mutation, by everybody.

Runs last: here the world changes.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from graph_mem.api.session import Context
from graph_mem.core.model import Page
from graph_mem.core.retrieval import Query, ScopeName
from graph_mem.services import accounts, capture, erasure, recall, scratch
from graph_mem.services.capture import NewMemory
from graph_mem.services.pins import NewPin, pin
from graph_mem.store.traces import Between
from tests.guards.matrix import Row, Target, anonymous, ask, code_of, schema, table, targets, unknown
from tests.guards.world import READERS, VIEWERS, World, propose

CHANGES = [row for row in table() if row.changes and row.takes]
WATCH = next(row for row in table() if row.shows == "watch")
REFUSED = {"NOT_FOUND", "FORBIDDEN"}


@pytest.fixture(scope="module", params=CHANGES, ids=lambda row: row.name)
def row(request: pytest.FixtureRequest) -> Row:
    return request.param


def given(world: World, viewer: str, row: Row, target: Target) -> Mapping[str, Any]:
    """The variables, with a record of the caller's own where the operation links two."""
    own = world.ids["foreign" if viewer == "stranger" else "organization"]["edited"]
    return {**target.variables, "own": own} if "$own" in row.document else target.variables


async def test_what_one_may_not_see_one_cannot_change(world: World, row: Row) -> None:
    before = await world.state()
    await asyncio.gather(*(_refused(world, viewer, row) for viewer in VIEWERS))
    after = await world.state()
    assert [after.get(id) for id, was in before.items() if after.get(id) != was] == []
    assert set(after) == set(before)


async def _refused(world: World, viewer: str, row: Row) -> None:
    unknowns: dict[str, Any] = {}
    for target in targets(world, row):
        if viewer in target.readers:
            continue
        answer = await ask(world, viewer, row, given(world, viewer, row, target))
        if viewer == "nobody":
            assert [error["code"] for error in answer["errors"]] == ["UNAUTHENTICATED"]
            continue
        if target.like not in unknowns:
            never = unknown(target)
            unknowns[target.like] = anonymous(await ask(world, viewer, row, given(world, viewer, row, never)), never)
        assert anonymous(answer, target) == unknowns[target.like], f"{viewer}: {target.kind} of {target.place}"
        assert code_of(answer) in REFUSED


async def test_what_one_sees_one_may_change_as_the_table_says(world: World, row: Row) -> None:
    for target in targets(world, row):
        if target.place is None:
            continue
        named = READERS[target.place] if row.does is None else row.does.get(target.place, [])
        for viewer in sorted(target.readers, key=lambda viewer: viewer in named):
            if row.once and viewer in named[1:]:
                continue
            asked = await _pinned_again(world, target) if target.kind == "pin" else target
            code = code_of(await ask(world, viewer, row, given(world, viewer, row, asked)))
            if viewer in named:
                assert code not in REFUSED, f"{viewer} is refused: {target.kind} of {target.place} is {code}"
            else:
                assert code == "FORBIDDEN", f"{viewer} gets {code} for {target.kind} of {target.place}"


async def _pinned_again(world: World, target: Target) -> Target:
    """A pin to remove: the former one is gone."""
    assert target.place is not None
    place = world.places[target.place]
    scope = place.scope
    new = NewPin(
        memory_id=world.ids[target.place]["edited"],  # pyright: ignore[reportArgumentType] # ids are strings here
        slot="again",
        scope=ScopeName(scope.client_id, scope.deal_id),
        private=place.private,
    )
    pinned = await pin(world.deps, world.author(target.place), new)
    return Target({"id": pinned.pin.id}, target.readers, target.place, "pin", (pinned.pin.id,))


async def test_a_queue_tells_of_what_its_follower_may_see(world: World) -> None:
    heard: dict[str, list[Any]] = {viewer: [] for viewer in world.people}

    async def follow(viewer: str) -> None:
        context = Context(world.deps, "matrix", caller=world.people[viewer])
        async for event in await schema().subscribe(WATCH.text, context_value=context):
            heard[viewer].append(event.data["reviewQueue"])

    following = [asyncio.create_task(follow(viewer)) for viewer in world.people]
    try:
        await asyncio.sleep(0.5)
        filed = {place: await propose(world, place) for place in world.places}
        async with asyncio.timeout(30):
            while any(len(heard[viewer]) < _due(viewer) for viewer in heard):  # noqa: ASYNC110 # polled by nature
                await asyncio.sleep(0.2)
        await asyncio.sleep(1.5)
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
    for viewer, events in heard.items():
        told = {event["proposal"]["id"] for event in events}
        assert told == {id for place, id in filed.items() if viewer in READERS[place]}, viewer
        assert world.leaks(viewer, events) == []


def _due(viewer: str) -> int:
    return sum(viewer in readers for readers in READERS.values())


async def test_erasing_what_is_ones_own_takes_no_words_of_others(world: World) -> None:
    """Whoever saves and erases a private text learns nothing of, and takes nothing from, what others wrote."""
    deps, member, owner = world.deps, world.people["member"], world.people["owner"]
    words = "the words of everybody"
    await recall.search_page(deps, owner, Query(words), first=3)
    note = await scratch.add(deps, owner, run_id="words", text=words)
    await deps.traces.flush()
    mine = (await capture.accept(deps, member, NewMemory(text=words, private=True))).memory.id
    done = await erasure.erase(deps, member, mine, confirm_id=mine, reason="a test")
    assert done.counts["traces"] == 0
    found = await accounts.traces(deps, owner, Between(), Page(50))
    assert words in {trace.query for trace, _ in found}
    assert [one.id for one in await scratch.notes(deps, owner, run_id="words")] == [note.id]
