"""SPEC 2: a text is stored byte for byte, acknowledged at once, found by its words, and READY in the end."""

import asyncio
import json

import pytest

from tests.acceptance.service import Client, Service

CAPTURE = """mutation($i: CaptureMemoryInput!) { captureMemory(input: $i) {
  memory { id processing text standing source { occurredAt } } replayed errors { code message path } } }"""
MEMORY = "query($id: ID!) { memory(id: $id) { id text processing failure } }"
SEARCH = """query($t: String!) { search(input: {text: $t}) {
  pending mode hits { snippet node { ... on Memory { id text } } } } }"""


async def texts_found(client: Client, words: str) -> list[str]:
    page = await client.must(SEARCH, t=words)
    return [hit["node"]["text"] for hit in page["hits"]]


async def test_a_saved_text_is_found_by_its_words_before_it_is_processed(service: Service) -> None:
    answer = await service.owner.must(CAPTURE, i={"text": "The zebrafish budget is 42 euros."})
    assert answer["memory"]["processing"] == "SAVED"
    page = await service.owner.must(SEARCH, t="zebrafish")
    assert [hit["node"]["id"] for hit in page["hits"]] == [answer["memory"]["id"]]
    assert page["pending"] == 1
    await service.settled()
    page = await service.owner.must(SEARCH, t="zebrafish")
    assert ([hit["node"]["id"] for hit in page["hits"]], page["pending"]) == ([answer["memory"]["id"]], 0)


@pytest.mark.parametrize(
    "text",
    [
        "  leading and trailing  ",
        "tabs\tand\r\nlines\n\n",
        "e\u0301 and é",
        "👩‍👩‍👧 \u202eright to left",
        "`}) DETACH DELETE n //",
        "\ufeffBOM",
    ],
)
async def test_a_text_comes_back_byte_for_byte(service: Service, text: str) -> None:
    id = await service.owner.capture(text)
    await service.settled()
    assert (await service.owner.must(MEMORY, id=id))["text"] == text


@pytest.mark.parametrize("text", ["", " \n\t ", "\u200b\u200b", "a\u0000b"])
async def test_an_empty_or_unstorable_text_is_a_typed_error(service: Service, text: str) -> None:
    assert await service.owner.refused(CAPTURE, i={"text": text}) == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "input",
    [
        {"label": "gossip"},
        {"label": "x" * 40_000},
        {"importance": 1.5},
        {"sourceUri": "u" * 40_000},
        {"title": "ü" * 40_000},
        {"metadata": [1, 2]},
        {"metadata": {"k": "x" * 70_000}},
        {"occurredAt": "2026-03-01"},
        {"occurredAt": "2026-03-01T10:00"},
        {"occurredAt": "2026-13-01T10:00:00Z"},
        {"idempotencyKey": "k" * 129},
        {"relations": [{"kind": "gossips_about", "toId": "mem_01ARZ3NDEKTSV4RRFFQ69G5FAV"}]},
    ],
    ids=lambda input: json.dumps(input)[:40],
)
async def test_a_wrong_field_is_a_typed_error_and_nothing_is_stored(service: Service, input: dict[str, object]) -> None:
    assert await service.owner.refused(CAPTURE, i={"text": "hello", **input}) == "BAD_USER_INPUT"
    assert (await service.owner.must("{ memories { totalCount } }"))["totalCount"] == 0


async def test_an_unknown_scope_or_relation_target_is_not_found_and_nothing_is_stored(service: Service) -> None:
    unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    for input in (
        {"scope": {"clientId": f"cli_{unknown}"}},
        {"scope": {"dealId": f"deal_{unknown}"}},
        {"relations": [{"kind": "SUPERSEDES", "toId": f"mem_{unknown}"}]},
    ):
        assert await service.owner.refused(CAPTURE, i={"text": "hello", **input}) == "NOT_FOUND"
    assert (await service.owner.must("{ memories { totalCount } }"))["totalCount"] == 0


async def test_dates_are_ordered_by_instant_and_come_back_in_utc(service: Service) -> None:
    for given, shown in (
        ("2026-03-01T10:00:00+09:00", "2026-03-01T01:00:00.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T00:00:00Z", "9999-12-31T00:00:00.000Z"),
    ):
        answer = await service.owner.must(CAPTURE, i={"text": f"at {given}", "occurredAt": given})
        assert answer["memory"]["source"]["occurredAt"] == shown


async def test_every_one_of_32_parallel_captures_is_found_by_its_own_word(service: Service) -> None:
    ids = await asyncio.gather(*(service.owner.capture(f"Marker quagga{i} of the herd.") for i in range(32)))
    await service.settled()
    assert len(set(ids)) == 32
    for i, id in enumerate(ids):
        page = await service.owner.must(SEARCH, t=f"quagga{i}")
        assert page["hits"][0]["node"]["id"] == id
    assert (await service.owner.must("{ memories { totalCount } }"))["totalCount"] == 32


async def test_pages_hold_every_memory_once_while_others_are_saved(service: Service) -> None:
    ids = [await service.owner.capture(f"Row {i} of the list.") for i in range(57)]
    query = "query($a: String) { memories(first: 20, after: $a) { nodes { id } pageInfo { hasNextPage endCursor } } }"
    seen: list[str] = []
    sizes: list[int] = []
    after = None
    while True:
        page = await service.owner.must(query, a=after)
        sizes.append(len(page["nodes"]))
        seen += [node["id"] for node in page["nodes"]]
        await service.owner.capture(f"Another one, after {len(seen)}.")
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = page["pageInfo"]["endCursor"]
    assert sizes == [20, 20, 17]
    assert seen == ids[::-1]


async def test_an_entity_leads_to_its_memories_and_back(service: Service) -> None:
    id = await service.owner.capture("Caroline: Melanie and I painted the lake.")
    await service.settled()
    entities = await service.owner.must(
        'query { entities(query: "carol") { nodes { name label memories { nodes { id } } } } }'
    )
    (caroline,) = entities["nodes"]
    assert (caroline["name"], caroline["label"]) == ("Caroline", "person")
    assert [node["id"] for node in caroline["memories"]["nodes"]] == [id]
    memory = await service.owner.must(
        "query($id: ID!) { memory(id: $id) { entities { nodes { role entity { name } } } } }", id=id
    )
    assert {"role": "PARTICIPANT", "entity": {"name": "Caroline"}} in memory["entities"]["nodes"]


async def test_the_organizations_own_label_can_be_used_once_it_is_defined(service: Service) -> None:
    assert await service.owner.refused(CAPTURE, i={"text": "hello", "label": "ritual"}) == "BAD_USER_INPUT"
    version = (await service.owner.must("{ vocabulary { version } }"))["version"]
    update = """mutation($i: UpdateVocabularyInput!) { updateVocabulary(input: $i) {
      vocabulary { version labels { name position } } errors { code } } }"""
    await service.owner.must(update, i={"expectedVersion": version, "labels": [{"name": "ritual", "position": True}]})
    assert await service.owner.refused(update, i={"expectedVersion": version, "labels": []}) == "CONFLICT"
    assert (await service.owner.must(CAPTURE, i={"text": "hello", "label": "ritual"}))["memory"]
    member = await service.member("mia")
    assert await member.refused(update, i={"expectedVersion": version + 1, "labels": []}) == "FORBIDDEN"
