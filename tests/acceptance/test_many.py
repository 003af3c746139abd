"""Many of one kind: archived, listed, recalled, folded. What is asked for is there, once, and no row grows."""

import json
from typing import Any

import pytest

from graph_mem.core.model import RecordId, Standing
from graph_mem.services import capture, utc_now
from graph_mem.services.capture import NewMemory
from graph_mem.store import standing
from graph_mem.store.db import Tx, rows
from tests.acceptance.service import Service

_FOUND = "passedOver hits { node { id } }"
SEARCH = f"query($t: String!, $n: Int!) {{ search(input: {{ text: $t }}, first: $n) {{ {_FOUND} }} }}"
AUDIT = SEARCH.replace("text: $t", "text: $t, includeArchived: true")
LIST = """query($n: Int!, $a: String) { LIST(first: $n, after: $a) {
  nodes { id } pageInfo { endCursor hasNextPage } } }"""
FACT = "mutation($i: SaveFactInput!) { saveFact(input: $i) { errors { code message } } }"
CONTEXT = """query($run: ID!, $t: String!) { context(input: { runId: $run, instruction: $t, semanticTail: true }) {
  tail { text } } }"""
HELD = "MATCH (m:Memory {org: $org, standing: 'CURRENT'}) RETURN m.id AS id, m.retrievals AS retrievals"
ROW = "MATCH (m:Memory {id: $id}) RETURN properties(m) AS row"
COPIES = """
MATCH (m:Memory {id: $id})<-[:PART_OF]-(c:Chunk)
UNWIND $ids AS id
CREATE (copy:Memory) SET copy = m {.*, id: id, dedupKey: null}
CREATE (part:Chunk)-[:PART_OF]->(copy) SET part = c {.*, id: id + '/0', memoryId: id}
"""
FOLDINGS = 100


async def filled(service: Service, texts: list[str], **given: Any) -> list[RecordId]:
    """The ids of new memories, READY; in bulk, as an import stores them."""
    ids: list[RecordId] = []
    for start in range(0, len(texts), 100):
        new = [NewMemory(text=text, **given) for text in texts[start : start + 100]]
        ids += [memory.id for memory in await capture.accept_all(service.deps, service.org.owner, new, rank=0)]
    await service.settled()
    return ids


async def read(service: Service, statement: Any, **given: Any) -> list[Any]:
    async def work(tx: Tx) -> list[Any]:
        return await rows(tx, statement, **given)

    return await service.deps.db.read(work)


async def archived(service: Service, like: RecordId, *, many: int) -> set[str]:
    """`many` copies of a memory with its chunk, archived as the store archives."""
    ids = [RecordId(service.deps.new_id("mem")) for _ in range(many)]
    await service.deps.db.run(COPIES, id=like, ids=ids)

    async def work(tx: Tx) -> None:
        await standing.retire(tx, service.org.owner, ids, to=Standing.ARCHIVED, at=utc_now())

    await service.deps.db.write(work)
    return set(ids)


async def test_of_1100_with_1000_archived_a_search_for_ten_finds_ten_live_ones(service: Service) -> None:
    (best,) = await filled(service, ["Minutes of the harbour board, item 99."])
    gone = await archived(service, best, many=1000)
    live = {best, *await filled(service, [f"Minutes of the harbour board, item {n}." for n in range(99)])}
    for query in ("minutes of the harbour board", "harbour board"):
        page = await service.owner.must(SEARCH, t=query, n=10)
        hits = [hit["node"]["id"] for hit in page["hits"]]
        assert len(set(hits)) == 10
        assert set(hits) <= live
        assert page["passedOver"] > 0
    audit = await service.owner.must(AUDIT, t="minutes of the harbour board", n=10)
    assert gone & {hit["node"]["id"] for hit in audit["hits"]}


@pytest.mark.parametrize("name", ["memories", "facts", "entities"])
async def test_57_in_pages_of_20_are_none_twice_and_none_missing_while_others_insert(
    service: Service, name: str
) -> None:
    if name == "facts":
        for n in range(57):
            await service.owner.must(FACT, i={"subject": f"Client {n}", "relation": "rate", "statement": f"{n} euros."})
    else:
        await filled(service, [f"person{n:02}@acme.example wrote." for n in range(57)])
    query = LIST.replace("LIST", name)
    mine = [node["id"] for node in (await service.owner.must(query, n=100))["nodes"]]
    pages: list[list[str]] = []
    after: str | None = None
    while after or not pages:
        page = await service.owner.must(query, n=20, a=after)
        pages.append([node["id"] for node in page["nodes"]])
        after = page["pageInfo"]["endCursor"] if page["pageInfo"]["hasNextPage"] else None
        await service.owner.capture(f"another{len(pages)}@acme.example wrote.")
        await service.owner.must(FACT, i={"subject": "Another", "relation": f"r{len(pages)}", "statement": "Later."})
        await service.settled()
    assert [len(page) for page in pages] == [20, 20, 17]
    assert [id for page in pages for id in page] == mine
    assert len((await service.owner.must(query, n=100))["nodes"]) == 60


async def test_a_recalled_context_saved_a_hundred_times_makes_no_memory_and_strengthens_once(service: Service) -> None:
    text = "The offer of March was 96 euros."
    offer, other = await filled(service, [text, "The canteen opens at noon."])
    found = await service.owner.must(CONTEXT, run="run-1", t="the offer of March")
    told = found["tail"]["text"]
    assert text in told
    await service.deps.traces.flush()
    before = {one["id"]: one["retrievals"] or 0 for one in await read(service, HELD, org=service.org.id)}
    for n in range(34):
        await service.owner.capture(told, sourceKind="RUN", runId="run-1")
        await service.owner.capture(told, sourceKind="RECALLED")
        await service.owner.capture(f"[{n}] {offer}: {text}", sourceKind="RECALLED")
    await service.settled()
    after = {one["id"]: one["retrievals"] or 0 for one in await read(service, HELD, org=service.org.id)}
    assert set(after) == set(before) == {offer, other}
    assert after[offer] - before[offer] <= 1
    assert after[other] == before[other]


async def test_however_often_a_memory_is_saved_again_its_row_stays_as_small(service: Service) -> None:
    text = "The kickoff is on Monday."
    (kept,) = await filled(service, [text])
    seen: list[dict[str, Any]] = []
    for _ in range(3):
        await filled(service, [text] * FOLDINGS)
        (row,) = await read(service, ROW, id=kept)
        seen.append(row["row"])
    assert [row["foldCount"] for row in seen] == [FOLDINGS, 2 * FOLDINGS, 3 * FOLDINGS]
    sizes = [len(json.dumps(row)) for row in seen]
    assert max(sizes) - min(sizes) <= len("00")
