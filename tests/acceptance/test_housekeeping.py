"""SPEC 10 and 11 through GraphQL: propose, decide, rehearse, archive, erase."""

import asyncio
from typing import Any

from graph_mem.core.model import Role
from tests.acceptance.service import Client, Service
from tests.people import company

QUEUE = """query($kinds: [ProposalKind!], $states: [ProposalState!], $first: Int = 20, $after: String) {
  reviewQueue(kinds: $kinds, states: $states, first: $first, after: $after) { totalCount
    pageInfo { hasNextPage endCursor }
    nodes { id kind state score gate reason signals version proposedAt decidedAt decidedBy
      subjects { __typename id ... on Fact { statement standing } ... on Memory { text standing } }
      evidence { id } } } }"""
DECIDE = """mutation($id: ID!, $d: Decision!, $v: Int) { decide(input: {id: $id, decision: $d, expectedVersion: $v}) {
  proposal { id state version decidedBy } errors { code message ... on Conflict { currentVersion } } } }"""
SAVE = (
    """mutation($i: SaveFactInput!) { saveFact(input: $i) { fact { id standing } outcome errors { code message } } }"""
)
FACT = "query($id: ID!) { fact(id: $id) { id standing version validFrom validTo supersedes { id } } }"
MEMORY = """query($id: ID!) { memory(id: $id) { id standing label importance evergreen text version
  strength { value confidence } relations { nodes { id kind state } } entities { nodes { role entity { name } } } } }"""
SEARCH = """query($t: String!, $all: Boolean = false) { search(input: {text: $t, includeArchived: $all}, first: 10) {
  hits { node { id } } } }"""
ACTION = """mutation($id: ID!, $v: Int) { %s(input: {id: $id, expectedVersion: $v, reason: "a test"}) {
  record { id standing version } errors { code message } } }"""
VALIDATE = """mutation($id: ID!, $holds: Boolean!) { validate(input: {id: $id, holds: $holds}) {
  record { id standing } errors { code message } } }"""
ERASE = """mutation($i: EraseInput!) { erase(input: $i) { erasedIds counts dryRun errors { code message path } } }"""
CONFIG = "{ lifecycleConfig { version gate threshold k archive archiveBelow autoKeep trustMinimum rehearsalDays afterErase writeGate bars weights updatedBy } }"  # noqa: E501 # one line of a document
UPDATE = """mutation($i: UpdateLifecycleConfigInput!) { updateLifecycleConfig(input: $i) {
  config { version threshold autoKeep rehearsalDays writeGate updatedBy } errors { code message path } } }"""
TRUST = "{ trust { kind shape kept reverted autoKeep } }"
REHEARSALS = "query($due: Boolean = true) { rehearsals(due: $due) { nodes { box dueAt record { id standing } } } }"
HISTORY = "query($id: ID!) { history(id: $id) { nodes { kind detail strength } } }"


async def hits(who: Client, words: str, *, everything: bool = False) -> list[str]:
    return [hit["node"]["id"] for hit in (await who.must(SEARCH, t=words, all=everything))["hits"]]


async def waiting(who: Client, *kinds: str) -> list[dict[str, Any]]:
    return (await who.must(QUEUE, kinds=list(kinds) or None))["nodes"]


async def proposed_rate(service: Service) -> tuple[str, dict[str, Any]]:
    """The id of the active rate, and the proposal to replace it that an agent's fact became."""
    rate = {"subject": "Northwind", "relation": "rate"}
    active = await service.owner.must(SAVE, i={**rate, "statement": "Northwind pays 185 euros an hour."})
    agent = await service.member("Robo", Role.AGENT)
    saved = await agent.must(SAVE, i={**rate, "statement": "Northwind pays 210 euros an hour."})
    assert saved["outcome"] == "PROVISIONAL"
    await service.settled()
    (proposal,) = await waiting(service.owner)
    return active["fact"]["id"], proposal


async def test_a_pending_proposal_is_invisible_until_it_is_kept(service: Service) -> None:
    active, proposal = await proposed_rate(service)
    (subject,) = proposal["subjects"]
    assert (proposal["kind"], proposal["state"], subject["__typename"]) == ("PROMOTE_FACT", "PENDING", "Fact")
    assert await hits(service.owner, "what does Northwind pay") == [active]
    before = await service.owner.must(FACT, id=active)
    kept = await service.owner.must(DECIDE, id=proposal["id"], d="KEEP")
    assert kept["proposal"]["state"] == "KEPT"
    assert await hits(service.owner, "what does Northwind pay") == [subject["id"]]
    reverted = await service.owner.must(DECIDE, id=proposal["id"], d="REVERT")
    assert reverted["proposal"]["state"] == "REVERTED"
    assert await service.owner.must(FACT, id=active) == before
    assert await hits(service.owner, "what does Northwind pay") == [active]


async def test_two_deciders_one_wins(service: Service) -> None:
    _, proposal = await proposed_rate(service)
    other = await service.member("Adam", Role.ADMIN)
    answers = await asyncio.gather(
        service.owner.ask(DECIDE, id=proposal["id"], d="KEEP"), other.ask(DECIDE, id=proposal["id"], d="REVERT")
    )
    errors = [error for answer in answers for error in answer["data"]["decide"]["errors"]]
    assert [error["code"] for error in errors] == ["CONFLICT"]
    assert errors[0]["currentVersion"] == 2
    (trust,) = await service.owner.must(TRUST)
    assert trust["kept"] + trust["reverted"] == 1


async def test_foreign_and_unknown_proposals_answer_alike_and_members_decide_nothing(service: Service) -> None:
    _, proposal = await proposed_rate(service)
    stranger = service.client((await company(service.deps)).owner)
    member = await service.member("Mia")
    assert await stranger.refused(DECIDE, id=proposal["id"], d="KEEP") == "NOT_FOUND"
    assert await stranger.refused(DECIDE, id=service.deps.new_id("prop"), d="KEEP") == "NOT_FOUND"
    assert await member.refused(DECIDE, id=proposal["id"], d="KEEP") == "FORBIDDEN"
    assert (await stranger.must(QUEUE))["totalCount"] == 0


async def test_the_queue_pages_without_loss(service: Service) -> None:
    agent = await service.member("Robo", Role.AGENT)
    for n in range(7):
        await agent.must(SAVE, i={"subject": f"Client {n}", "relation": "rate", "statement": f"Client {n} pays."})
    seen: list[str] = []
    after = None
    while True:
        page = await service.owner.must(QUEUE, first=3, after=after)
        seen += [node["id"] for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert len(seen) == len(set(seen)) == page["totalCount"] == 7
    assert seen == sorted(seen)


async def test_archived_is_out_of_everyday_recall_and_back_as_before(service: Service) -> None:
    id = await service.owner.capture("Ana Garcia: the rate of Northwind is 185 euros.")
    sibling = await service.owner.capture("Ana Garcia: the rate of Southwind is 90 euros.")
    await service.settled()
    before, rank = await service.owner.must(MEMORY, id=id), await hits(service.owner, "rate of Northwind")
    assert rank == [id, sibling]
    archived = await service.owner.must(ACTION % "archive", id=id)
    assert archived["record"]["standing"] == "ARCHIVED"
    assert await hits(service.owner, "rate of Northwind") == [sibling]
    assert set(await hits(service.owner, "rate of Northwind", everything=True)) == {id, sibling}
    assert await service.owner.refused(ACTION % "archive", id=id) == "CONFLICT"
    assert await service.owner.refused(ACTION % "restore", id=id, v=1) == "CONFLICT"
    await service.owner.must(ACTION % "restore", id=id)
    after = await service.owner.must(MEMORY, id=id)
    assert await hits(service.owner, "rate of Northwind") == rank
    steady = {name: value for name, value in before.items() if name not in ("version", "strength")}
    assert {name: after[name] for name in steady} == steady
    kinds = [event["kind"] for event in (await service.owner.must(HISTORY, id=id))["nodes"]]
    assert kinds[-2:] == ["archived", "restored"]


async def test_erase_is_asked_for_twice_counted_first_and_leaves_the_skeleton(service: Service) -> None:
    secret = "Zebulon Quux earns 314159 doubloons a month."
    id, sibling = await service.owner.capture(secret, title="Pay"), await service.owner.capture("Everybody earns well.")
    await service.settled()
    assert set(await hits(service.owner, "who earns doubloons")) == {id, sibling}
    wrong = {"id": id, "confirmId": sibling, "reason": "asked to"}
    assert await service.owner.refused(ERASE, i=wrong) == "BAD_USER_INPUT"
    right = {**wrong, "confirmId": id}
    member = await service.member("Mia")
    assert await member.refused(ERASE, i=right) == "FORBIDDEN"
    planned = await service.owner.must(ERASE, i={**right, "dryRun": True})
    assert (planned["erasedIds"], planned["counts"]["chunks"], planned["dryRun"]) == ([id], 1, True)
    assert (await service.owner.must(MEMORY, id=id))["text"] == secret
    erased = await service.owner.must(ERASE, i=right)
    assert (erased["erasedIds"], erased["dryRun"]) == ([id], False)
    assert await service.owner.must(MEMORY, id=id) is None
    assert await hits(service.owner, "who earns doubloons", everything=True) == [sibling]
    history = (await service.owner.must(HISTORY, id=id))["nodes"]
    assert [event["kind"] for event in history] == ["saved", "erased"]
    assert history[-1]["detail"]["name"] == "Pay"
    assert await service.owner.refused(ERASE, i=right) == "NOT_FOUND"
    again = await service.owner.capture(secret)
    assert again != id


async def test_high_stakes_records_are_rehearsed_and_a_refuted_one_is_proposed(service: Service) -> None:
    decision = await service.owner.capture("We decided to charge 185.", label="decision")
    await service.owner.capture("A note.")
    await service.settled()
    assert (await service.owner.must(REHEARSALS))["nodes"] == []
    (enrolled,) = (await service.owner.must(REHEARSALS, due=False))["nodes"]
    assert (enrolled["box"], enrolled["record"]["id"]) == (1, decision)
    await service.owner.must(VALIDATE, id=decision, holds=True)
    assert (await service.owner.must(REHEARSALS, due=False))["nodes"][0]["box"] == 2
    await service.owner.must(VALIDATE, id=decision, holds=False)
    assert (await service.owner.must(REHEARSALS, due=False))["nodes"][0]["box"] == 1
    (proposal,) = await waiting(service.owner, "ARCHIVE")
    assert [subject["id"] for subject in proposal["subjects"]] == [decision]


async def test_consolidate_files_proposals_once_and_changes_nothing_else(service: Service) -> None:
    ids = [
        await service.owner.capture("Ana Garcia works at Acme."),
        await service.owner.capture("Ana García: I said so.", sourceKind="TRANSCRIPT"),
    ]
    await service.settled()
    before = [await service.owner.must(MEMORY, id=id) for id in ids]
    filed = await service.owner.must("mutation { consolidate }")
    assert filed > 0
    assert await service.owner.must("mutation { consolidate }") == 0
    found = await waiting(service.owner)
    assert len(found) == filed
    assert all(one["gate"] and one["reason"] and one["subjects"] for one in found)
    strengths = ("strength",)
    assert [
        {name: value for name, value in (await service.owner.must(MEMORY, id=id)).items() if name not in strengths}
        for id in ids
    ] == [{name: value for name, value in one.items() if name not in strengths} for one in before]
    member = await service.member("Mia")
    assert await member.refused("mutation { consolidate }") == "FORBIDDEN"


async def test_the_rules_are_changed_by_owner_and_admin_with_the_version_they_saw(service: Service) -> None:
    config = await service.owner.must(CONFIG)
    assert (config["version"], config["gate"], config["threshold"]) == (0, "BLENDED", 0.5)
    assert config["writeGate"]["SOLUTIONS_ENGINEER"] == ["DEAL"]
    change = {"expectedVersion": 0, "threshold": 0.7, "rehearsalDays": [2, 5], "writeGate": {"MEMBER": ["CLIENT"]}}
    changed = (await service.owner.must(UPDATE, i=change))["config"]
    assert (changed["version"], changed["threshold"], changed["rehearsalDays"]) == (1, 0.7, [2, 5])
    assert changed["writeGate"]["MEMBER"] == ["CLIENT"]
    assert changed["updatedBy"] == service.org.owner.user_id
    assert await service.owner.refused(UPDATE, i=change) == "CONFLICT"
    for wrong in ({"threshold": 2}, {"bars": {"fame": 1}}, {"rehearsalDays": [3, 3]}, {"writeGate": {"KING": []}}):
        assert await service.owner.refused(UPDATE, i={"expectedVersion": 1, **wrong}) == "BAD_USER_INPUT"
    member = await service.member("Mia")
    assert await member.refused(UPDATE, i={"expectedVersion": 1, "k": 2}) == "FORBIDDEN"
