"""Copies fold, long texts saved again with edits are versioned, by text alone, on a real Neo4j."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from graph_mem.app import HANDLERS
from graph_mem.core.model import Memory, Page, Principal, Processing, RecordId, SourceKind, Standing
from graph_mem.core.vectors import FIRST
from graph_mem.services import Deps, capture, folding, history, records
from graph_mem.services.capture import NewMemory
from graph_mem.services.worker import Worker
from graph_mem.store import search
from graph_mem.store.db import Tx, rows
from graph_mem.store.search import Where
from tests.encoders import Fault, FaultyEncoder
from tests.people import Company, company, deps_on, work_off

ALL = Page(first=100)


async def keep(deps: Deps, who: Principal, text: str, **more: Any) -> RecordId:
    return (await capture.accept(deps, who, NewMemory(text=text, **more))).memory.id


async def kept(deps: Deps, org: Company, text: str, **more: Any) -> RecordId:
    id = await keep(deps, org.owner, text, **more)
    await work_off(deps, org.id)
    return id


async def read(deps: Deps, who: Principal, id: RecordId) -> Memory:
    found = (await records.by_ids(deps, who, [id]))[id]
    assert isinstance(found, Memory)
    return found


async def into(deps: Deps, who: Principal, id: RecordId) -> RecordId | None:
    return (await records.lineage(deps, who, [id]))[id].folded_into


async def current(deps: Deps, who: Principal) -> list[Memory]:
    filter = await records.list_filter(
        deps, who, scope=None, labels=None, standings=[Standing.CURRENT], created_from=None, created_to=None
    )
    return await records.page(deps, who, filter, ALL)


async def one(deps: Deps, query: Any, **parameters: Any) -> Any:
    async def work(tx: Tx) -> Any:
        return (await rows(tx, query, **parameters))[0]

    return await deps.db.read(work)


async def test_fifty_parallel_saves_of_one_text_leave_one_current_memory(deps: Deps, org: Company) -> None:
    ids = await asyncio.gather(*(keep(deps, org.owner, "The kickoff is on Monday.") for _ in range(50)))
    workers = [Worker(deps, HANDLERS, org_ids=[org.id]) for _ in range(4)]

    async def drain(worker: Worker) -> None:
        while await worker.work_once():
            pass

    await asyncio.gather(*map(drain, workers))
    (survivor,) = await current(deps, org.owner)
    assert survivor.fold_count == 49
    for id in ids:
        assert id == survivor.id or await into(deps, org.owner, id) == survivor.id
        assert (await read(deps, org.owner, id)).processing is Processing.READY
    row = await one(deps, "MATCH (m:Memory {id: $id}) RETURN size(m.foldedIds) AS named", id=survivor.id)
    assert row["named"] <= 5


async def test_a_copy_differs_in_spacing_and_unicode_form_only(deps: Deps, org: Company) -> None:
    first = await kept(deps, org, "Café “Nord” is the office.")
    assert await into(deps, org.owner, await kept(deps, org, 'Cafe\u0301  "Nord" is the\noffice. ')) == first
    for other in ("Café “Nord” is the office!", "café “Nord” is the office.", "Cafe “Nord” is the office."):
        assert await into(deps, org.owner, await kept(deps, org, other)) is None
    assert len(await current(deps, org.owner)) == 4


async def test_close_numbers_are_two_memories(deps: Deps, org: Company) -> None:
    for text in ("Ana's salary is 100k EUR", "Ana's salary is 110k EUR"):
        await kept(deps, org, text)
    assert len(await current(deps, org.owner)) == 2


async def test_copies_in_another_partition_or_scope_are_no_copies(deps: Deps, org: Company) -> None:
    member = await org.member("mia", client="acme")
    (client,) = member.client_ids
    ids = [
        await keep(deps, member, "Same words.", **place)
        for place in ({}, {"private": True}, {"client_id": client}, {"private": True, "client_id": client})
    ]
    await work_off(deps, org.id)
    assert [await into(deps, member, id) for id in ids] == [None] * 4


async def test_saving_again_makes_the_kept_one_fresh_and_never_moves_its_date(deps: Deps, org: Company) -> None:
    first = await kept(deps, org, "The office is in Oslo.")
    before = await read(deps, org.owner, first)
    copy = await kept(deps, org, "The office is in Oslo.")
    after = await read(deps, org.owner, first)
    assert after.fresh_at == (await read(deps, org.owner, copy)).created_at > before.fresh_at
    assert (after.created_at, after.version) == (before.created_at, 1)
    events = await history.history(deps, org.owner, copy, ALL)
    assert [event.kind for event in events] == ["saved", "folded"]


@pytest.mark.parametrize(
    ("stored", "sent", "label"),
    [
        ("note", "decision", "decision"),
        ("decision", "note", "decision"),
        ("preference", "rejection", "rejection"),
        ("note", "insight", "insight"),
        ("insight", "note", "insight"),
    ],
)
async def test_of_two_labels_the_higher_rank_stays(
    deps: Deps, org: Company, stored: str, sent: str, label: str
) -> None:
    first = await kept(deps, org, "We use Neo4j.", label=stored)
    await kept(deps, org, "We use Neo4j.", label=sent)
    memory = await read(deps, org.owner, first)
    assert (memory.label, memory.position) == (label, label in ("decision", "preference", "rejection"))
    chunk = await one(deps, "MATCH (c:Chunk {memoryId: $id}) RETURN c.label AS label, c.keys AS keys", id=first)
    assert chunk["label"] == label


async def test_a_fold_never_hides_a_failed_original(org: Company, deps: Deps) -> None:
    encoder = FaultyEncoder()
    async with deps_on(deps.db, load=lambda: encoder) as broken:
        encoder.fault = Fault.RAISES
        first = await keep(broken, org.owner, "The vault code changed.")
        worker = Worker(broken, HANDLERS, org_ids=[org.id])
        await worker.work_once()
        await one_write(deps, "MATCH (m:Memory {id: $id}) SET m.processing = 'FAILED' RETURN m.id AS id", id=first)
    copy = await kept(deps, org, "The vault code changed.")
    assert await into(deps, org.owner, copy) == first
    await work_off(deps, org.id)
    memory = await read(deps, org.owner, first)
    assert (memory.processing, memory.standing) == (Processing.READY, Standing.CURRENT)


async def one_write(deps: Deps, query: Any, **parameters: Any) -> Any:
    async def work(tx: Tx) -> Any:
        return (await rows(tx, query, **parameters))[0]

    return await deps.db.write(work)


async def test_a_retired_copy_is_no_copy(deps: Deps, org: Company) -> None:
    first = await kept(deps, org, "The rate is 100.")
    await kept(deps, org, "The rate is 120.", relations=(capture.NewRelation("SUPERSEDES", first),))
    again = await kept(deps, org, "The rate is 100.")
    assert await into(deps, org.owner, again) is None
    assert {memory.id for memory in await current(deps, org.owner)} >= {again}


async def test_recalled_text_folds_and_strengthens_once_at_most(deps: Deps, org: Company) -> None:
    first = await kept(deps, org, "The office is in Oslo.")
    fresh = (await read(deps, org.owner, first)).fresh_at
    for n in range(5):
        await keep(deps, org.owner, "The office is in Oslo.", source_kind=SourceKind.RECALLED)
        quoted = f"[{n}] evidence {first}: The office is in Oslo."
        await keep(deps, org.owner, quoted, source_kind=SourceKind.RECALLED)
        await keep(deps, org.owner, f"Something else that came back {n}.", source_kind=SourceKind.RECALLED)
    await work_off(deps, org.id)
    (memory,) = await current(deps, org.owner)
    assert (memory.id, memory.signals.retrievals, memory.fresh_at) == (first, 1, fresh)


PARAGRAPHS = [
    f"Paragraph {n}. " + f"It tells of topic {n} at some length, with words of its own. " * 4 for n in range(14)
]


def document(**edits: str) -> str:
    return "\n\n".join(edits.get(f"p{n}", paragraph) for n, paragraph in enumerate(PARAGRAPHS))


async def test_a_long_text_saved_again_with_edits_keeps_its_id_and_gains_a_version(deps: Deps, org: Company) -> None:
    first = await kept(deps, org, document(), label="document", occurred_at=datetime(2026, 5, 1, tzinfo=UTC))
    before = await read(deps, org.owner, first)
    edited = document(p3="Paragraph 3 was rewritten from scratch, zebra included.")
    copy = await kept(deps, org, edited, label="document")
    memory = await read(deps, org.owner, first)
    assert await into(deps, org.owner, copy) == first
    assert (memory.text, memory.version, memory.processing) == (edited, 2, Processing.READY)
    assert (memory.created_at, memory.source.occurred_at) == (before.created_at, before.source.occurred_at)
    (version,) = await records.versions(deps, org.owner, first, ALL)
    assert (version.version, version.text, version.saved_at) == (1, before.text, before.created_at)
    words = "MATCH (c:Chunk {memoryId: $id}) RETURN any(t IN collect(c.content) WHERE t CONTAINS $word) AS found"
    assert (await one(deps, words, id=first, word="zebra"))["found"]
    assert not (await one(deps, words, id=first, word="topic 3 at"))["found"]
    known = await history.memory_known_at(deps, org.owner, first, at=before.created_at)
    assert known
    assert (known.version, known.text) == (1, before.text)
    kinds = [event.kind for event in await history.history(deps, org.owner, first, ALL)]
    assert kinds == ["saved", "versioned"]


async def test_a_long_copy_with_nothing_new_stores_nothing(deps: Deps, org: Company) -> None:
    first = await kept(deps, org, document(), label="document")
    part = "\n\n".join(PARAGRAPHS[:9])
    assert await into(deps, org.owner, await kept(deps, org, part, label="document")) == first
    memory = await read(deps, org.owner, first)
    assert (memory.version, memory.text) == (1, document())
    assert memory.fresh_at > memory.created_at


async def test_only_the_turns_that_were_sent_again_are_fresh(deps: Deps, org: Company) -> None:
    first = await kept(deps, org, document(), label="document")
    await kept(deps, org, "\n\n".join(PARAGRAPHS[:9]), label="document")
    memory = await read(deps, org.owner, first)
    assert await freshness(deps, org, "Paragraph 2. topic 2") == memory.fresh_at
    assert await freshness(deps, org, "Paragraph 13. topic 13") == memory.created_at
    await kept(deps, org, "\n\n".join(PARAGRAPHS[5:]), label="document")
    again = await read(deps, org.owner, first)
    assert await freshness(deps, org, "Paragraph 2. topic 2") == memory.fresh_at
    assert await freshness(deps, org, "Paragraph 13. topic 13") == again.fresh_at > memory.fresh_at
    await kept(deps, org, "\n\n".join(PARAGRAPHS[:9]), label="playbook")
    assert await freshness(deps, org, "Paragraph 13. topic 13") == (await read(deps, org.owner, first)).fresh_at


async def freshness(deps: Deps, org: Company, words: str) -> datetime:
    """From when the age of the passage counts that holds these words best."""
    vector = await deps.embedder.query(words)
    where = Where(None)
    found = await deps.db.read(lambda tx: search.meaning(tx, org.owner, where, vector=vector, space=FIRST, limit=50))
    return max(found, key=lambda one: one.raw).fresh_at


async def test_a_long_text_from_the_same_uri_is_its_new_version_whatever_it_says(deps: Deps, org: Company) -> None:
    uri = {"source_uri": "file:///handbook.md", "label": "document"}
    first = await kept(deps, org, document(), **uri)
    other = "\n\n".join(f"Chapter {n}. " + "Entirely different words about something new. " * 5 for n in range(12))
    assert await into(deps, org.owner, await kept(deps, org, other, **uri)) == first
    assert (await read(deps, org.owner, first)).text == other


async def test_long_texts_that_share_little_and_short_ones_stay_apart(deps: Deps, org: Company) -> None:
    await kept(deps, org, document(), label="document")
    mostly_new = document(
        **{f"p{n}": f"New paragraph {n}. " + f"Other matter {n} in other words. " * 6 for n in range(9)}
    )
    await kept(deps, org, mostly_new, label="document")
    await kept(deps, org, "\n\n".join(PARAGRAPHS[:3]))
    await kept(deps, org, "\n\n".join([*PARAGRAPHS[:2], "An edit."]))
    assert len(await current(deps, org.owner)) == 4


async def test_an_edited_text_of_another_organization_is_another_text(deps: Deps, org: Company) -> None:
    other = await company(deps)
    await kept(deps, org, document())
    edited = await kept(deps, other, document(p1="Edited."))
    assert await into(deps, other.owner, edited) is None


async def test_settling_twice_changes_nothing(deps: Deps, org: Company) -> None:
    first, copy = await kept(deps, org, "Once."), await kept(deps, org, "Once.")
    again = [await read(deps, org.owner, id) for id in (first, copy)]
    assert await folding.settle(deps, again) == {first}
    assert (await read(deps, org.owner, first)).fold_count == 1
