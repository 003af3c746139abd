"""Locked rooms: what one does in one's own room shows in nobody else's, by no count, list, history or second asking."""

from typing import Any

from graph_mem.core.model import Role
from graph_mem.services import admin
from tests.acceptance.service import Client, Service

MARK = "Zorblax"
SAVE_FACT = "mutation($i: SaveFactInput!) { saveFact(input: $i) { fact { id standing } errors { code message } } }"
CAPTURE = """mutation($i: CaptureMemoryInput!) { captureMemory(input: $i) {
  memory { id text } replayed errors { code message } } }"""
PIN = "mutation($i: PinInput!) { pin(input: $i) { pin { id } errors { code message } } }"
EVERYTHING = (
    """query($id: ID!) { memory(id: $id) { version standing supersededBy { id } foldedInto { id }
      entities { totalCount } facts { totalCount } relations { totalCount } versions { totalCount } } }""",
    "query($id: ID!) { history(id: $id) { totalCount nodes { kind by } } }",
    "{ memories(standing: [CURRENT, SUPERSEDED, FOLDED, ARCHIVED]) { totalCount nodes { id title text } } }",
    "{ facts(standing: [CURRENT, SUPERSEDED]) { totalCount nodes { id statement } } }",
    "{ entities { totalCount nodes { name aliases related { totalCount } memories { totalCount } } } }",
    "{ rehearsals(due: false) { totalCount nodes { record { id } } } }",
    "{ reviewQueue { totalCount } }",
    "{ trust { shape kept reverted } }",
    "{ pins { id } }",
    "{ variables { name value } }",
    """{ search(input: { text: "the Zorblax roof" }) {
      pending passedOver belowFloor legs { candidates } hits { node { id } } } }""",
)


async def seen(who: Client, id: str) -> dict[str, Any]:
    """What a member is told of everything in reach, with every count."""
    return {document.split("{")[1].split("(")[0].strip(): await who.must(document, id=id) for document in EVERYTHING}


async def test_what_one_does_in_private_shows_to_nobody_else(service: Service) -> None:
    alice, bob = await service.member("alice"), await service.member("bob")
    shared = await service.owner.capture("The roof is to be green.")
    await service.settled()
    before = await seen(bob, shared)
    older = await alice.capture(f"{MARK}: the roof is a secret.", private=True, label="decision")
    await alice.capture(
        f"{MARK}: the roof stays a secret.",
        private=True,
        label="decision",
        relations=[{"kind": "SUPERSEDES", "toId": older}],
    )
    await alice.capture("The roof is to be green.", private=True)
    said = {"subject": MARK, "relation": "owns", "statement": f"{MARK} owns the roof.", "private": True}
    await alice.must(SAVE_FACT, i={**said, "sourceIds": [shared]})
    await alice.must(PIN, i={"memoryId": shared, "slot": MARK, "private": True})
    await alice.must(
        "mutation($i: SetVariableInput!) { setVariable(input: $i) { variable { name } errors { code } } }",
        i={"name": MARK, "value": MARK, "private": True},
    )
    await alice.must(
        'mutation($t: String!) { addScratch(input: { runId: "run", text: $t }) { note { id } errors { code } } }',
        t=MARK,
    )
    await alice.must("{ rehearsals(due: false) { totalCount } }")
    await service.settled()
    search = "query($t: String!) { search(input: { text: $t }) { traceId } }"
    trace = (await alice.must(search, t=f"{MARK} roof"))["traceId"]
    await alice.must(
        """query($t: String!) { context(input: { runId: "run", instruction: $t, semanticTail: true }) {
        prefix { hash } } }""",
        t=MARK,
    )
    assert await seen(bob, shared) == before
    for who in (bob, service.owner):
        assert await who.must("query($id: ID!) { trace(id: $id) { id } }", id=trace) is None
        assert await who.must('{ runTrace(runId: "run") { id } }') is None
        assert await who.must('{ scratch(runId: "run") { id } }') == []
    assert (await bob.must('mutation { endRun(runId: "run") { removed errors { code } } }'))["removed"] == 0
    assert len(await alice.must('{ scratch(runId: "run") { id } }')) == 1


async def test_what_waits_for_review_is_in_no_answer(service: Service) -> None:
    member, other = await service.member("member"), await service.member("other")
    shared = await service.owner.capture("The roof is to be green.")
    await service.settled()
    before = await seen(other, shared)
    said = {"subject": MARK, "relation": "owns", "statement": f"{MARK} owns the roof.", "sourceIds": [shared]}
    assert (await member.must(SAVE_FACT, i=said))["fact"]["standing"] == "PROVISIONAL"
    await service.settled()
    after = await seen(other, shared)
    waiting = after.pop("reviewQueue"), before.pop("reviewQueue")
    assert [queue["totalCount"] for queue in waiting] == [1, 0]
    assert after == before
    text = await other.must(
        """query($t: String!) { context(input: { runId: "r", instruction: $t, semanticTail: true }) {
        prefix { text } tail { text } } }""",
        t=f"{MARK} owns the roof",
    )
    assert MARK not in str(text)


async def test_an_answer_that_is_asked_for_again_is_only_for_who_may_still_see_it(service: Service) -> None:
    principal = await service.org.member("engineer", Role.SOLUTIONS_ENGINEER, client="Acme", deal="Roof")
    engineer, stranger = service.client(principal), await service.member("stranger")
    ((deal, _),) = principal.deals.items()
    given = {"text": f"{MARK} buys.", "scope": {"dealId": deal}, "idempotencyKey": "once"}
    made = await engineer.must(CAPTURE, i=given)
    again = await engineer.must(CAPTURE, i=given)
    assert again["replayed"]
    assert again["memory"]["id"] == made["memory"]["id"]
    other = await stranger.must(CAPTURE, i={"text": "Mine.", "idempotencyKey": "once"})
    assert not other["replayed"]
    await admin.unassign(
        service.deps, organization=service.org.name, user=f"engineer@{service.org.name}", client="Acme", deal="Roof"
    )
    assert await engineer.refused(CAPTURE, i=given) == "NOT_FOUND"


async def test_cursor_of_anothers_search_is_none(service: Service) -> None:
    alice, bob = await service.member("alice"), await service.member("bob")
    for number in range(3):
        await service.owner.capture(f"The roof is green, says number {number}.")
    await service.settled()
    query = """query($after: String) { search(input: { text: "roof" }, first: 1, after: $after) {
      pageInfo { endCursor } hits { rank } } }"""
    page = await alice.must(query, after=None)
    cursor = page["pageInfo"]["endCursor"]
    assert (await alice.must(query, after=cursor))["hits"][0]["rank"] == 2
    assert await bob.refused(query, after=cursor) == "BAD_USER_INPUT"
