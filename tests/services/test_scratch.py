"""Session scratch: private to a run and its user, in no search, gone in time, promoted as any capture."""

from dataclasses import replace
from datetime import timedelta

import pytest

from graph_mem.core.model import Principal, RecordId, SourceKind, Standing
from graph_mem.core.retrieval import Query, ScopeName
from graph_mem.errors import InvalidInput, NotFound
from graph_mem.services import Deps, capture, recall, records, scratch
from graph_mem.services.capture import Accepted, NewMemory
from tests.people import Company, FixedClock, company, work_off


async def texts(deps: Deps, who: Principal, run: str = "run") -> list[str]:
    return [note.text for note in await scratch.notes(deps, who, run_id=run)]


async def promoted(deps: Deps, who: Principal, id: str, *, label: str = "note") -> Accepted:
    return await scratch.promote(deps, who, id=id, label=label, scope=ScopeName(), private=False)


async def test_notes_are_kept_for_one_run_and_one_user(deps: Deps, org: Company) -> None:
    ana, bob = await org.member("ana"), await org.member("bob")
    for who, run, text in ((ana, "run", "first"), (ana, "run", "second"), (ana, "other", "third"), (bob, "run", "his")):
        await scratch.add(deps, who, run_id=run, text=text)
    assert await texts(deps, ana) == ["first", "second"]
    assert await texts(deps, ana, "other") == ["third"]
    assert await texts(deps, bob) == ["his"]
    assert await texts(deps, org.owner) == []
    assert await texts(deps, (await company(deps)).owner) == []


async def test_notes_are_in_no_search_and_no_list(deps: Deps, org: Company) -> None:
    await scratch.add(deps, org.owner, run_id="run", text="zanzibar in scratch")
    await capture.accept(deps, org.owner, NewMemory(text="zanzibar in memory"))
    await work_off(deps, org.id)
    page = await recall.search_page(deps, org.owner, Query("zanzibar"), first=10)
    assert [hit.snippet for hit in page.hits] == ["zanzibar in memory"]


async def test_notes_end_with_their_time_and_are_swept(deps: Deps, org: Company, clock: FixedClock) -> None:
    timed = replace(deps, clock=clock, limits=replace(deps.limits, scratch_ttl=timedelta(minutes=10)))
    old = await scratch.add(timed, org.owner, run_id="run", text="old")
    clock.move(minutes=6)
    new = await scratch.add(timed, org.owner, run_id="run", text="new")
    clock.move(minutes=6)
    assert await texts(timed, org.owner) == ["new"]
    assert await scratch.by_id(timed, org.owner, old.id) is None
    with pytest.raises(NotFound):
        await promoted(timed, org.owner, old.id)
    assert await scratch.sweep(timed) >= 1
    rows = await deps.db.run("MATCH (n:ScratchNote {org: $org}) RETURN n.id AS id", org=org.id)
    assert [row["id"] for row in rows] == [new.id]


async def test_notes_end_with_the_run(deps: Deps, org: Company) -> None:
    ana = await org.member("ana")
    for who, run in ((ana, "run"), (ana, "run"), (ana, "other"), (org.owner, "run")):
        await scratch.add(deps, who, run_id=run, text="note")
    assert await scratch.end_run(deps, ana, run_id="run") == 2
    assert (await texts(deps, ana), await texts(deps, ana, "other"), await texts(deps, org.owner)) == (
        [],
        ["note"],
        ["note"],
    )


async def test_promoting_is_a_capture_and_happens_once(deps: Deps, org: Company) -> None:
    note = await scratch.add(deps, org.owner, run_id="run-7", text="The client wants weekly reports.")
    made = await promoted(deps, org.owner, note.id)
    again = await promoted(deps, org.owner, note.id)
    assert (made.replayed, again.replayed, again.memory.id) == (False, True, made.memory.id)
    found = (await records.by_ids(deps, org.owner, [made.memory.id]))[made.memory.id]
    assert found == replace(made.memory, processing=made.memory.processing)
    assert (made.memory.source.kind, made.memory.source.run_id) == (SourceKind.RUN, "run-7")
    assert found.standing is Standing.CURRENT


async def test_promoting_is_refused_as_any_capture_is(deps: Deps, org: Company) -> None:
    note = await scratch.add(deps, org.owner, run_id="run", text="x")
    with pytest.raises(InvalidInput, match="Unknown label"):
        await promoted(deps, org.owner, note.id, label="gossip")
    scope = ScopeName("cli_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(NotFound):
        await scratch.promote(deps, org.owner, id=note.id, label="note", scope=scope, private=False)
    for id in (note.id, deps.new_id("scr")):
        with pytest.raises(NotFound):
            await promoted(deps, await org.member("bob"), RecordId(id))


async def test_what_cannot_be_a_note_is_refused(deps: Deps, org: Company) -> None:
    few = replace(deps, limits=replace(deps.limits, scratch_notes=2))
    for run, text in (("run", " "), ("run", "x" * 65_537), ("", "text"), ("r" * 201, "text")):
        with pytest.raises(InvalidInput):
            await scratch.add(few, org.owner, run_id=run, text=text)
    for text in ("one", "two"):
        await scratch.add(few, org.owner, run_id="run", text=text)
    with pytest.raises(InvalidInput, match="expected fewer than 2"):
        await scratch.add(few, org.owner, run_id="run", text="three")
    assert await texts(few, org.owner) == ["one", "two"]
