"""SPEC 2 and 3 through GraphQL: copies, versions, supersession, corrections, history."""

import asyncio
from typing import Any

import pytest

from tests.acceptance.service import Client, Service

CAPTURE = """mutation($i: CaptureMemoryInput!) { captureMemory(input: $i) {
  memory { id standing } errors { code message path } } }"""
MEMORY = """query($id: ID!, $at: DateTime) { memory(id: $id, knownAt: $at) { id text label position standing version
  processing createdAt freshAt foldedInto { id } supersedes { id } supersededBy { id }
  versions { nodes { version text savedBy } }
  relations { nodes { id kind state retires reason from { id } to { id } } } } }"""
RELATE = """mutation($i: RelateInput!) { relate(input: $i) { relation { id kind retires state } replayed
  errors { code message path } } }"""
CORRECT = """mutation($i: CorrectRelationInput!) { correctRelation(input: $i) { relation { id state }
  errors { code message } } }"""
CHAIN = """query($id: ID!) { supersessionChain(id: $id) { records { id standing __typename } heads { id }
  links { relation { state reason by } older { id } newer { id } } } }"""
HISTORY = "query($id: ID!) { history(id: $id) { nodes { id at by kind version detail strength } } }"
SEARCH = "query($i: SearchInput!) { search(input: $i) { passedOver hits { node { id } } } }"


async def found(who: Client, words: str, **more: Any) -> list[str]:
    page = await who.must(SEARCH, i={"text": words, **more})
    return [hit["node"]["id"] for hit in page["hits"]]


async def supersede(who: Client, newer: str, older: str, **more: Any) -> dict[str, Any]:
    return (await who.must(RELATE, i={"fromId": newer, "toId": older, "kind": "SUPERSEDES", **more}))["relation"]


async def test_a_superseded_memory_is_not_found_and_a_corrected_link_brings_it_back(service: Service) -> None:
    old = await service.owner.capture("The billing rate of Northwind is 100 euros.", label="decision")
    sibling = await service.owner.capture("The billing address of Northwind is in Oslo.")
    await service.settled()
    wanted = [{"kind": "SUPERSEDES", "toId": old, "reason": "raised"}]
    new = await service.owner.capture("The billing rate of Northwind is 120 euros.", label="decision", relations=wanted)
    assert set(await found(service.owner, "billing Northwind")) == {new, sibling}
    await service.settled()
    assert set(await found(service.owner, "billing Northwind")) == {new, sibling}
    (link,) = (await service.owner.must(MEMORY, id=old))["relations"]["nodes"]
    assert (link["kind"], link["reason"], link["from"], link["to"]) == (
        "SUPERSEDES",
        "raised",
        {"id": new},
        {"id": old},
    )
    corrected = await service.owner.must(CORRECT, i={"id": link["id"], "reason": "two contracts"})
    assert corrected["relation"]["state"] == "RETRACTED"
    assert set(await found(service.owner, "billing Northwind")) == {new, old, sibling}
    kinds = [event["kind"] for event in (await service.owner.must(HISTORY, id=old))["nodes"]]
    assert kinds == ["saved", "superseded", "restored"]
    assert (await service.owner.must(CHAIN, id=old))["links"][0]["relation"]["state"] == "RETRACTED"


async def test_a_finding_replaces_no_position_and_the_answer_says_so(service: Service) -> None:
    decision = await service.owner.capture("We ship on Friday.", label="decision")
    note = await service.owner.capture("Someone said Monday.")
    assert (await supersede(service.owner, note, decision))["retires"] is False
    memory = await service.owner.must(MEMORY, id=decision)
    assert (memory["standing"], memory["position"]) == ("CURRENT", True)
    assert memory["supersededBy"] == [{"id": note}]


async def test_what_may_not_be_linked_is_refused_with_nothing_saved(service: Service) -> None:
    alice = await service.member("alice")
    a, b = await service.owner.capture("A."), await service.owner.capture("B.")
    private = await alice.capture("Mine.", private=True)
    await supersede(service.owner, b, a)
    for newer, older, who in ((a, a, service.owner), (a, b, service.owner), (private, b, alice), (b, private, alice)):
        given = {"fromId": newer, "toId": older, "kind": "SUPERSEDES"}
        assert await who.refused(RELATE, i=given) == "BAD_USER_INPUT"
    unknown = "mem_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    for hidden in (private, unknown):
        given = {"fromId": b, "toId": hidden, "kind": "supports"}
        assert await service.owner.refused(RELATE, i=given) == "NOT_FOUND"
        refused = {"text": "Not to be stored.", "relations": [{"kind": "supports", "toId": hidden}]}
        assert await service.owner.refused(CAPTURE, i=refused) == "NOT_FOUND"
    assert await found(service.owner, "Not to be stored") == []


async def test_the_same_text_50_times_is_one_memory_that_every_id_leads_to(service: Service) -> None:
    ids = await asyncio.gather(*(service.owner.capture("The kickoff is on Monday.") for _ in range(25)))
    await service.settled()
    for _ in range(25):
        ids.append(await service.owner.capture("The kickoff  is on Monday."))
    await service.settled()
    (kept,) = await found(service.owner, "kickoff Monday")
    read = [await service.owner.must(MEMORY, id=id) for id in ids]
    assert all(one["id"] == kept or one["foldedInto"] == {"id": kept} for one in read)
    assert sorted(one["standing"] for one in read) == ["CURRENT"] + ["FOLDED"] * 49
    assert all(one["processing"] == "READY" for one in read)


async def test_an_edited_document_keeps_its_id_and_the_old_text_is_history_only(service: Service) -> None:
    def document(third: str) -> str:
        rest = [f"Section {n}. " + f"This part explains topic {n} in its own words, at length. " * 4 for n in range(12)]
        return "\n\n".join([*rest[:2], third, *rest[3:]])

    first = await service.owner.capture(document("The walrus clause applies."), label="document")
    await service.settled()
    before = await service.owner.must(MEMORY, id=first)
    second = await service.owner.capture(document("The narwhal clause applies."), label="document")
    await service.settled()
    after = await service.owner.must(MEMORY, id=first)
    assert (await service.owner.must(MEMORY, id=second))["foldedInto"] == {"id": first}
    assert (after["version"], after["text"]) == (2, document("The narwhal clause applies."))
    assert [version["text"] for version in after["versions"]["nodes"]] == [before["text"]]
    assert after["createdAt"] == before["createdAt"]
    assert after["freshAt"] > before["freshAt"]
    assert await found(service.owner, "narwhal") == [first]
    assert await found(service.owner, "walrus", minTier="HIGH") == []
    then = await service.owner.must(MEMORY, id=first, at=before["createdAt"])
    assert (then["version"], then["text"]) == (1, before["text"])
    assert "versioned" in [event["kind"] for event in (await service.owner.must(HISTORY, id=first))["nodes"]]


@pytest.mark.parametrize(
    ("stored", "sent", "label"), [("decision", "note", "decision"), ("note", "decision", "decision")]
)
async def test_of_two_labels_the_position_stays(service: Service, stored: str, sent: str, label: str) -> None:
    first = await service.owner.capture("We use Neo4j.", label=stored)
    await service.settled()
    await service.owner.capture("We use Neo4j.", label=sent)
    await service.settled()
    memory = await service.owner.must(MEMORY, id=first)
    assert (memory["label"], memory["position"]) == (label, True)
    assert await found(service.owner, "Neo4j", labels=[label]) == [first]


async def test_save_supersede_and_save_again_is_a_new_memory(service: Service) -> None:
    first = await service.owner.capture("The rate is 100.")
    await service.settled()
    second = await service.owner.capture("The rate is 120.", relations=[{"kind": "SUPERSEDES", "toId": first}])
    await service.settled()
    third = await service.owner.capture("The rate is 100.", relations=[{"kind": "SUPERSEDES", "toId": second}])
    await service.settled()
    chain = await service.owner.must(CHAIN, id=second)
    assert [record["id"] for record in chain["records"]] == [first, second, third]
    assert [record["standing"] for record in chain["records"]] == ["SUPERSEDED", "SUPERSEDED", "CURRENT"]
    assert [head["id"] for head in chain["heads"]] == [third]
    assert set(await found(service.owner, "the rate")) == {third}
