"""Export and restore: node by node and edge by edge, broken off, cut off, altered, while others write."""

import asyncio
import gzip
import itertools
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from graph_mem.core.archive import Edge, Node
from graph_mem.core.model import Role
from graph_mem.core.retrieval import Query
from graph_mem.core.vectors import FIRST, Placed, Source
from graph_mem.errors import AlreadyThere, ArchiveDamaged, ArchiveUnsupported, Conflict, InvalidInput
from graph_mem.local import archive
from graph_mem.services import (
    Deps,
    admin,
    capture,
    discards,
    erasure,
    exports,
    facts,
    identity,
    recall,
    restores,
    utc_now,
)
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.store import archives
from graph_mem.store import discards as stored_discards
from graph_mem.store.db import Tx
from tests.encoders import DIMENSION
from tests.guards.world import build, leave_traces
from tests.people import Company, company, work_off
from tests.services.whole import whole, wipe

MODEL = Placed(Source("hash", DIMENSION, "hash"), FIRST)


class Killed(Exception):
    """The process ends here."""


@contextmanager
def killed_after(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, calls: int) -> Iterator[None]:
    """Let the function be called so often, and end the process at the next call, which must come."""
    working, left = getattr(place, name), itertools.count(calls, -1)

    def one(*given: Any, **named: Any) -> Any:
        if next(left) <= 0:
            raise Killed
        return working(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(place, name, one)
        with pytest.raises(Killed):
            yield


async def said(deps: Deps, org: Company, statement: str, *, relation: str = "rate") -> str:
    new = NewFact(subject="Northwind", relation=relation, statement=statement)
    return (await facts.save(deps, org.owner, new)).fact.id


async def captured(deps: Deps, org: Company, text: str) -> str:
    return (await capture.accept(deps, org.owner, NewMemory(text=text))).memory.id


def body(path: Path) -> Iterator[Node | Edge]:
    return (line for line in archive.lines(path) if isinstance(line, (Node, Edge)))


async def test_a_restore_equals_what_was_exported_node_by_node_and_edge_by_edge(
    deps: Deps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await build(deps)
    await leave_traces(world)
    org, file = world.org, tmp_path / "all.gz"
    before = await whole(deps.db, org.id)
    with killed_after(monkeypatch, archives, "nodes", 12):
        await exports.export(deps, file, organization=org.name, model=MODEL)
    done = await exports.export(deps, file, organization=org.name, model=MODEL)
    assert names(tmp_path) == ["all.gz"]
    assert mode(file) == 0o600
    assert (len(before[0]), len(before[1])) == (done.footer.nodes - len(marks(file)), done.footer.edges)
    assert any('"Pending"' in node for node in before[0]), "a text that is still to be processed"

    with pytest.raises(AlreadyThere, match=org.name):
        await restores.restore(deps, file, model=MODEL)
    await wipe(deps.db, org.id)
    monkeypatch.setattr(restores, "_BATCH", 100)
    with killed_after(monkeypatch, archives, "create", 3):
        await restores.restore(deps, file, model=MODEL)
    restored = await restores.restore(deps, file, model=MODEL)
    assert restored.resumed_at > 0
    assert await whole(deps.db, org.id) == before
    with pytest.raises(AlreadyThere):
        await restores.restore(deps, file, model=MODEL)

    await work_off(deps, org.id)
    found = await recall.search_page(deps, org.owner, Query("Orgazelda just said that the roof leaks."), first=3)
    assert "just said" in (found.hits[0].record.text or ""), "work that waited goes on"


@pytest.mark.parametrize("after", [1, 3, 5])
async def test_a_restore_that_is_discarded_leaves_what_was_here_before_it(
    deps: Deps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    world = await build(deps)
    await leave_traces(world)
    org, file = world.org, tmp_path / "all.gz"
    await exports.export(deps, file, organization=org.name, model=MODEL)
    neighbour = await company(deps)
    await captured(deps, neighbour, "It was here before.")
    former = next(line for line in body(file) if isinstance(line, Node) and line.kind == "User")
    before = await whole(deps.db, org.id)
    await wipe(deps.db, org.id)
    await deps.db.run("MERGE (u:User {id: $id}) SET u.formerName = 'was here before'", id=former.key)
    there = await everything(deps)
    monkeypatch.setattr(restores, "_BATCH", 100)
    monkeypatch.setattr(discards, "_BATCH", 10)
    with killed_after(monkeypatch, archives, "create", after):
        await restores.restore(deps, file, model=MODEL)
    assert await everything(deps) != there

    with killed_after(monkeypatch, stored_discards, "remove", 12):
        await discards.discard(deps)
    with pytest.raises(Conflict, match="being discarded"):
        await restores.restore(deps, file, model=MODEL)
    done = await discards.discard(deps)
    assert done.restores == 1
    assert done.nodes > 0
    assert await everything(deps) == there
    assert await discards.discard(deps) == discards.Discarded(0, 0)

    await deps.db.run("MATCH (u:User {id: $id}) DELETE u", id=former.key)
    await restores.restore(deps, file, model=MODEL)
    assert await whole(deps.db, org.id) == before, "the archive is as good as it was"


async def test_a_restore_that_let_people_in_is_not_discarded_and_a_finished_one_is_not_known(
    deps: Deps, org: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "all.gz"
    await captured(deps, org, "The lift is out of order.")
    await exports.export(deps, file, organization=org.name, model=MODEL)
    before = await whole(deps.db, org.id)
    await wipe(deps.db, org.id)
    with killed_after(monkeypatch, archives, "done", 0):
        await restores.restore(deps, file, model=MODEL)
    with pytest.raises(Conflict, match=f"{org.name} has members already"):
        await discards.discard(deps)
    assert await whole(deps.db, org.id) == before
    await restores.restore(deps, file, model=MODEL)
    assert await discards.discard(deps) == discards.Discarded(0, 0)
    assert await whole(deps.db, org.id) == before


async def test_a_restore_under_way_ends_when_it_is_discarded(
    deps: Deps, org: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "all.gz"
    for number in range(10):
        await captured(deps, org, f"Note {number}.")
    await exports.export(deps, file, organization=org.name, model=MODEL)
    await wipe(deps.db, org.id)
    there, working = await everything(deps), archives.create
    monkeypatch.setattr(restores, "_BATCH", 5)
    reached, gone_on = asyncio.Event(), asyncio.Event()

    async def held_up(tx: Tx, *given: Any, **named: Any) -> None:
        await working(tx, *given, **named)
        monkeypatch.setattr(archives, "create", working)
        reached.set()

    async def waits(*given: Any, **named: Any) -> bool:
        await gone_on.wait()
        return await advancing(*given, **named)

    monkeypatch.setattr(archives, "create", held_up)
    restoring = asyncio.create_task(restores.restore(deps, file, model=MODEL))
    await reached.wait()
    advancing = archives.advance
    monkeypatch.setattr(archives, "advance", waits)
    await discards.discard(deps)
    gone_on.set()
    with pytest.raises(Conflict):
        await restoring
    assert await everything(deps) == there


async def everything(deps: Deps) -> list[Any]:
    """How many nodes with which labels there are, whoever's, and of which people."""
    counted = await deps.db.run("MATCH (n) UNWIND labels(n) AS label RETURN label, count(n) AS n ORDER BY label")
    people = await deps.db.run("MATCH (u:User) RETURN u.id AS id ORDER BY id")
    return [*map(dict, counted), *map(dict, people)]


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def marks(path: Path) -> list[Node]:
    return [line for line in body(path) if isinstance(line, Node) and line.kind == "Lease"]


async def test_vectors_are_left_out_or_made_by_another_model(deps: Deps, org: Company, tmp_path: Path) -> None:
    ids = {await captured(deps, org, "The roof of the depot is green."), await said(deps, org, "Northwind pays 185.")}
    await work_off(deps, org.id)
    before = await whole(deps.db, org.id)
    bare = tmp_path / "bare.gz"
    await exports.export(deps, bare, organization=org.name, model=MODEL, vectors=False)
    assert [line for line in body(bare) if isinstance(line, Node) and line.vector] == []
    await wipe(deps.db, org.id)
    restored = await restores.restore(deps, bare, model=MODEL)
    assert restored.to_embed == len(ids)
    await work_off(deps, org.id)
    assert await whole(deps.db, org.id) == before, "the ordinary worker made the same vectors"

    whole_file = tmp_path / "whole.gz"
    await exports.export(deps, whole_file, organization=org.name, model=MODEL)
    assert any(isinstance(line, Node) and line.vector for line in body(whole_file))
    await wipe(deps.db, org.id)
    restored = await restores.restore(deps, whole_file, model=Placed(Source("another", DIMENSION, "another"), FIRST))
    assert restored.to_embed == len(ids)
    page = await recall.search_page(deps, org.owner, Query("Northwind pays"), first=3)
    assert page.hits, "words find it before it has a vector"


async def test_a_cut_or_altered_archive_is_told_before_anything_is_written(
    deps: Deps, org: Company, tmp_path: Path
) -> None:
    await said(deps, org, "Northwind pays 185.")
    good = tmp_path / "good.gz"
    await exports.export(deps, good, organization=org.id, model=MODEL)
    with pytest.raises(InvalidInput, match="exists already"):
        await exports.export(deps, good, organization=org.id, model=MODEL)
    await wipe(deps.db, org.id)
    lines = gzip.decompress(good.read_bytes()).splitlines(keepends=True)
    bad = {
        "cut": good.read_bytes()[:-200],
        "no end": gzip.compress(b"".join(lines[:-1])),
        "one line less": gzip.compress(b"".join([*lines[:3], *lines[4:]])),
        "other words": gzip.compress(b"".join(lines).replace(b"pays 185", b"pays 999")),
        "no header": gzip.compress(b"".join(lines[1:])),
        "no archive": b"hello",
        "empty": gzip.compress(b""),
    }
    for name, content in bad.items():
        file = tmp_path / f"{name}.gz"
        file.write_bytes(content)
        with pytest.raises(ArchiveDamaged):
            await restores.restore(deps, file, model=MODEL)
    newer = tmp_path / "newer.gz"
    newer.write_bytes(gzip.compress(b"".join(lines).replace(b'"format":1', b'"format":2')))
    with pytest.raises(ArchiveUnsupported, match="format 2, expected 1"):
        await restores.restore(deps, newer, model=MODEL)
    assert await whole(deps.db, org.id) == ([], [])
    await restores.restore(deps, good, model=MODEL)
    assert (await whole(deps.db, org.id))[0] != []


async def test_a_name_that_somebody_else_has_by_now_is_refused(deps: Deps, tmp_path: Path) -> None:
    org = await company(deps)
    file = tmp_path / "archive.gz"
    await exports.export(deps, file, organization=org.name, model=MODEL)
    await wipe(deps.db, org.id)
    other = await company(deps)
    await admin.save_member(deps, organization=other.name, user=f"owner@{org.name}", role=Role.MEMBER)
    with pytest.raises(AlreadyThere, match=f"owner@{org.name}"):
        await restores.restore(deps, file, model=MODEL)


async def test_an_organization_that_holds_nothing_gives_way_to_its_namesake_of_the_archive(
    deps: Deps, tmp_path: Path
) -> None:
    org, file = await company(deps), tmp_path / "archive.gz"
    await captured(deps, org, "The lift is out of order.")
    await exports.export(deps, file, organization=org.name, model=MODEL)
    before = await whole(deps.db, org.id)
    await wipe(deps.db, org.id)
    owner = f"owner@{org.name}"
    fresh = await admin.create_organization(deps, name=org.name, owner=owner)
    await restores.restore(deps, file, model=MODEL)
    assert await whole(deps.db, org.id) == before
    assert await whole(deps.db, fresh.org_id) == ([], [])
    assert await identity.principal(deps, org_id=fresh.org_id, user_id=fresh.user_id) is None
    again = await admin.ensure_principal(deps, organization=org.name, user=owner, role=Role.OWNER)
    assert (again.org_id, again.user_id) == (org.id, org.owner.user_id), "`up` goes on with the archived owner"


async def test_an_organization_that_was_exported_empty_gives_way_to_itself(deps: Deps, tmp_path: Path) -> None:
    org, file = await company(deps), tmp_path / "archive.gz"
    await exports.export(deps, file, organization=org.name, model=MODEL)
    before = await whole(deps.db, org.id)
    await restores.restore(deps, file, model=MODEL)
    assert await whole(deps.db, org.id) == before
    await admin.remove_organization(deps, organization=org.name)
    await restores.restore(deps, file, model=MODEL)
    assert await whole(deps.db, org.id) == before, "with the owner's name"


@pytest.mark.parametrize("held", ["memory", "fact", "client", "key", "trace", "elsewhere"])
async def test_what_holds_anything_does_not_give_way(deps: Deps, tmp_path: Path, held: str) -> None:
    org, other, file = await company(deps), await company(deps), tmp_path / "archive.gz"
    await captured(deps, org, "The lift is out of order.")
    await exports.export(deps, file, organization=org.name, model=MODEL)
    await wipe(deps.db, org.id)
    owner = f"owner@{org.name}"
    made = await admin.create_organization(deps, name=org.name, owner=owner)
    here = replace(org, id=made.org_id, owner=replace(org.owner, org_id=made.org_id, user_id=made.user_id))
    match held:
        case "memory":
            await captured(deps, here, "It is of value.")
        case "fact":
            await said(deps, here, "Northwind pays 185.")
        case "client":
            await here.member("agent", Role.AGENT, client="Acme")
        case "key":
            await admin.create_key(deps, organization=here.name, user=owner, name="ci")
        case "trace":
            await recall.search_page(deps, here.owner, Query("What is of value?"), first=3)
            await deps.traces.flush()
        case _:
            await admin.save_member(deps, organization=other.name, user=owner, role=Role.MEMBER)
    there = await whole(deps.db, here.id)
    with pytest.raises(AlreadyThere, match="`graph-mem org remove --org NAME`"):
        await restores.restore(deps, file, model=MODEL)
    assert await whole(deps.db, here.id) == there
    if held in ("memory", "fact"):
        with pytest.raises(Conflict):
            await admin.remove_organization(deps, organization=here.name)
    else:
        await admin.remove_organization(deps, organization=here.name)
        assert (await whole(deps.db, here.id)) == ([], [])
    if held == "elsewhere":
        with pytest.raises(AlreadyThere, match=f"already: {owner}"):
            await restores.restore(deps, file, model=MODEL)


async def test_an_organization_that_a_restore_is_bringing_does_not_give_way_to_another_archive(
    deps: Deps, org: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one.gz", tmp_path / "two.gz"
    await exports.export(deps, one, organization=org.name, model=MODEL)
    await captured(deps, org, "The lift is out of order.")
    await exports.export(deps, two, organization=org.name, model=MODEL)
    before = await whole(deps.db, org.id)
    await wipe(deps.db, org.id)
    monkeypatch.setattr(restores, "_BATCH", 1)
    with killed_after(monkeypatch, archives, "create", 1):
        await restores.restore(deps, two, model=MODEL)
    with pytest.raises(AlreadyThere, match=org.name):
        await restores.restore(deps, one, model=MODEL)
    await restores.restore(deps, two, model=MODEL)
    assert await whole(deps.db, org.id) == before


async def test_a_name_that_a_discarded_restore_gave_back_is_free_again(
    deps: Deps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    org, file = await company(deps), tmp_path / "archive.gz"
    await exports.export(deps, file, organization=org.name, model=MODEL)
    await admin.remove_organization(deps, organization=org.name)
    monkeypatch.setattr(restores, "_BATCH", 1)
    with killed_after(monkeypatch, archives, "connect", 2):
        await restores.restore(deps, file, model=MODEL)
    await discards.discard(deps)
    fresh = await admin.create_organization(deps, name=org.name, owner=f"owner@{org.name}")
    assert fresh.user_id != org.owner.user_id, "whoever takes the name is somebody else"


async def test_what_is_erased_meanwhile_is_in_no_archive_and_no_spool(
    deps: Deps, org: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await captured(deps, org, "The secret is Zanzibar.")
    kept = await captured(deps, org, "The sibling is Madagascar.")
    await work_off(deps, org.id)
    working = archives.events_since
    erased = False

    async def erasing(tx: Tx, *given: Any, **named: Any) -> list[Node]:
        nonlocal erased
        if not erased:
            erased = True
            assert b"Zanzibar" in (tmp_path / "archive.gz.partial").read_bytes(), "it had been read"
            await erasure.erase(deps, org.owner, id, confirm_id=id, reason="asked to", strict=True)
        return await working(tx, *given, **named)

    monkeypatch.setattr(archives, "events_since", erasing)
    file = tmp_path / "archive.gz"
    done = await exports.export(deps, file, organization=org.name, model=MODEL)
    text = gzip.decompress(file.read_bytes()).decode()
    assert (done.restarted, "Zanzibar" in text, "Madagascar" in text, kept in text) == (1, False, True, True)


async def test_an_export_while_others_write_holds_whole_chains_and_whole_records(
    deps: Deps, org: Company, tmp_path: Path
) -> None:
    """Every value of a slot is superseded by the next; whatever the archive holds of it is one chain with one end."""
    for number in range(40):
        await said(deps, org, f"Northwind pays {number}.")
        await captured(deps, org, f"Note {number} on the depot.")
    done = asyncio.Event()
    number = 40

    async def write() -> None:
        nonlocal number
        while not done.is_set():
            await said(deps, org, f"Northwind pays {number}.")
            await captured(deps, org, f"Note {number} on the depot.")
            await work_off(deps, org.id)
            number += 1

    writing = asyncio.create_task(write())
    turn = 0
    while turn < 2 or (number <= 41 and not writing.done()):  # however slow the writer is, it did write meanwhile
        await exports.export(deps, tmp_path / f"{turn}.gz", organization=org.name, model=MODEL)
        check(tmp_path / f"{turn}.gz")
        turn += 1
    done.set()
    await writing
    assert number > 41, "others did write"
    await wipe(deps.db, org.id)
    await restores.restore(deps, tmp_path / f"{turn - 1}.gz", model=MODEL)


async def test_an_export_by_a_clock_ahead_sees_what_clocks_behind_write_meanwhile(
    deps: Deps, org: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead, behind = (replace(deps, clock=lambda by=by: utc_now() + timedelta(hours=by)) for by in (1, -1))
    await said(deps, org, "Northwind pays 1.")
    await captured(deps, org, "The first note.")
    await work_off(deps, org.id)
    working, kinds = archives.nodes, list[str]()

    def written_to(tx: Tx, kind: str, **given: Any) -> Any:
        kinds.append(kind)
        return (
            after_a_write(tx, kind, **given)
            if kind == "Entity" and kinds.count(kind) == 1
            else working(tx, kind, **given)
        )

    async def after_a_write(tx: Tx, kind: str, **given: Any) -> AsyncGenerator[Node]:
        await said(behind, org, "Northwind pays 2.")
        await captured(behind, org, "The second note.")
        async for one in working(tx, kind, **given):
            yield one

    monkeypatch.setattr(archives, "nodes", written_to)
    await exports.export(ahead, tmp_path / "one.gz", organization=org.name, model=MODEL)
    check(tmp_path / "one.gz")
    said_in = {line.properties.get("statement") for line in body(tmp_path / "one.gz") if isinstance(line, Node)}
    assert {"Northwind pays 1.", "Northwind pays 2."} <= said_in


def check(path: Path) -> None:
    """No edge without its ends; one chain, one current fact at its head; chunks stand as their memory."""
    nodes = {(line.kind, line.key): line for line in body(path) if isinstance(line, Node)}
    edges = [line for line in body(path) if isinstance(line, Edge)]
    ends = {(end.kind, end.key) for edge in edges for end in (edge.start, edge.end)}
    assert ends <= set(nodes)
    facts = {key for kind, key in nodes if kind == "Fact"}
    current = {key for key in facts if nodes["Fact", key].properties["standing"] == "CURRENT"}
    older = {edge.end.key for edge in edges if edge.type == "SUPERSEDES"}
    assert [edge.end.key for edge in edges if edge.type == "CURRENT"] == list(current)
    assert facts - older == current
    assert len(current) == 1
    jobs = {line.properties["recordId"] for (kind, _), line in nodes.items() if kind == "Job"}
    chunked = {edge.end.key for edge in edges if edge.type == "PART_OF"}
    for (kind, key), line in nodes.items():
        if kind == "Memory":
            assert line.properties["processing"] == "READY" or key in jobs
            assert key in chunked or key in jobs or line.properties["standing"] == "FOLDED"
        if kind == "Chunk":
            assert line.properties["standing"] == nodes["Memory", line.properties["memoryId"]].properties["standing"]
