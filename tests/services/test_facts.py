"""Facts in their slots, on a real Neo4j."""

import asyncio
import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graph_mem.core.model import FAR, Fact, Page, Principal, Role, Standing
from graph_mem.core.slots import FactOutcome
from graph_mem.errors import Conflict, Forbidden, IdempotencyKeyReused, InvalidInput, NotFound
from graph_mem.services import Deps, capture, fact_lists, facts, history, promotion, utc_now
from graph_mem.services import settings as settings_service
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact, Saved
from graph_mem.store.db import Tx, rows
from tests.people import Company, company, work_off

ALL = Page(first=100)
HOUR = timedelta(hours=1)


async def say(deps: Deps, who: Principal, statement: str, **more: Any) -> Saved:
    given = {"subject": "Ana", "relation": "salary", **more}
    return await facts.save(deps, who, NewFact(statement=statement, **given))


async def listed(deps: Deps, who: Principal, **filter: Any) -> list[Fact]:
    return await fact_lists.page(deps, who, await fact_lists.list_filter(deps, who, **filter), ALL)


async def statements(deps: Deps, who: Principal, **filter: Any) -> list[str]:
    return [fact.statement for fact in await listed(deps, who, **filter)]


async def event_kinds(deps: Deps, who: Principal, id: str) -> list[str]:
    return [event.kind for event in await history.history(deps, who, id, ALL)]


async def test_another_sentence_supersedes_and_both_sides_say_so(deps: Deps, org: Company) -> None:
    first = await say(deps, org.owner, "Ana earns 100k EUR.")
    second = await say(deps, org.owner, "Ana earns 110k EUR.")
    assert (first.outcome, second.outcome) == (FactOutcome.CREATED, FactOutcome.SUPERSEDED)
    assert first.fact
    assert second.fact
    assert second.revoked
    assert second.revoked.id == first.fact.id
    assert await statements(deps, org.owner) == ["Ana earns 110k EUR."]
    (old,) = await listed(deps, org.owner, standings=(Standing.SUPERSEDED,))
    assert old == second.revoked
    assert old.interval.valid_to == second.fact.interval.valid_from
    assert await event_kinds(deps, org.owner, old.id) == ["saved", "superseded"]
    chain = await history.chain(deps, org.owner, old.id)
    assert chain
    assert [record.id for record in chain.records] == [first.fact.id, second.fact.id]
    assert [record.id for record in chain.heads] == [second.fact.id]
    (link,) = chain.links
    assert (link.from_id, link.to_id, link.by, link.retires) == (second.fact.id, old.id, org.owner.user_id, True)


async def test_the_same_sentence_in_other_writing_adds_only_its_source(deps: Deps, org: Company) -> None:
    source = (await capture.accept(deps, org.owner, NewMemory(text="Ana told me about her salary."))).memory
    first = await say(deps, org.owner, "Ana earns 110k EUR.")
    again = await say(
        deps, org.owner, "  ana earns 110k  EUR. ", subject="ANA", relation=" Salary", source_ids=(source.id,)
    )
    assert again.outcome is FactOutcome.DEDUPLICATED
    assert first.fact
    assert again.fact
    assert again.fact.id == first.fact.id
    assert len(await listed(deps, org.owner)) == 1
    assert [memory.id for memory in await fact_lists.sources(deps, org.owner, first.fact.id, ALL)] == [source.id]


async def test_relations_of_many_hold_different_sentences_side_by_side(deps: Deps, org: Company) -> None:
    await settings_service.update_vocabulary(
        deps, org.owner, expected_version=0, change=lambda v: replace(v, many_relations=("Speaks",)), detail={}
    )
    for statement in ("Ana speaks German.", "Ana speaks Thai.", "ana speaks  thai."):
        await say(deps, org.owner, statement, relation="speaks")
    await say(deps, org.owner, "Ana lives in Rome.", relation="home")
    await say(deps, org.owner, "Ana lives in Oslo.", relation="home")
    assert sorted(await statements(deps, org.owner)) == ["Ana lives in Oslo.", "Ana speaks German.", "Ana speaks Thai."]


async def test_a_relation_that_is_no_longer_of_many_keeps_one_at_the_next_save(deps: Deps, org: Company) -> None:
    def many(*names: str) -> Any:
        return lambda v: replace(v, many_relations=names)

    await settings_service.update_vocabulary(deps, org.owner, expected_version=0, change=many("team"), detail={})
    await say(deps, org.owner, "Ana is in sales.", relation="team")
    await say(deps, org.owner, "Ana is in support.", relation="team")
    await settings_service.update_vocabulary(deps, org.owner, expected_version=1, change=many(), detail={})
    await say(deps, org.owner, "Ana is in finance.", relation="team")
    assert await statements(deps, org.owner) == ["Ana is in finance."]


async def test_facts_that_only_share_a_subject_leave_each_other_alone(deps: Deps, org: Company) -> None:
    await say(deps, org.owner, "Ana is CTO at Acme.", relation="job")
    await say(deps, org.owner, "Ana administers Acme's code hosting.", relation="administers")
    await say(deps, org.owner, "Ana imposed an audit rule.", relation="imposed")
    assert len(await listed(deps, org.owner)) == 3
    assert await listed(deps, org.owner, standings=(Standing.SUPERSEDED,)) == []


async def test_a_late_fact_goes_to_its_place_in_the_chain_and_retires_nothing(deps: Deps, org: Company) -> None:
    def day(year: int) -> datetime:
        return datetime(year, 1, 1, tzinfo=UTC)

    await say(deps, org.owner, "In 2015 it was 50k.", valid_from=day(2015))
    await say(deps, org.owner, "In 2024 it was 90k.", valid_from=day(2024))
    late = await say(deps, org.owner, "In 2020 it was 70k.", valid_from=day(2020), valid_to=day(2022))
    assert late.outcome is FactOutcome.CREATED
    assert late.fact
    assert late.fact.standing is Standing.SUPERSEDED
    assert late.revoked is None
    assert await statements(deps, org.owner) == ["In 2024 it was 90k."]
    for year, statement in (
        (2016, "In 2015 it was 50k."),
        (2021, "In 2020 it was 70k."),
        (2025, "In 2024 it was 90k."),
    ):
        assert await statements(deps, org.owner, as_of=day(year)) == [statement]
    assert await statements(deps, org.owner, as_of=day(2023)) == []
    chain = await history.chain(deps, org.owner, late.fact.id)
    assert chain
    assert [record.interval.valid_from.year for record in chain.records] == [2015, 2020, 2024]
    assert [(link.to_id, link.from_id) for link in chain.links] == list(
        zip([r.id for r in chain.records], [r.id for r in chain.records[1:]], strict=False)
    )
    assert [record.interval.valid_from.year for record in chain.heads] == [2024]


async def test_two_clocks_answer_what_held_and_what_was_known(deps: Deps, org: Company) -> None:
    old = await say(deps, org.owner, "Ana works at A.", valid_from=datetime(2025, 1, 1, tzinfo=UTC))
    new = await say(deps, org.owner, "Ana works at B.", valid_from=datetime(2026, 3, 1, tzinfo=UTC))
    assert old.fact
    assert new.fact
    before_b = new.fact.created_at - timedelta(milliseconds=1)
    assert await statements(deps, org.owner) == ["Ana works at B."]
    assert await statements(deps, org.owner, as_of=datetime(2026, 2, 1, tzinfo=UTC)) == ["Ana works at A."]
    assert await statements(deps, org.owner, known_at=before_b) == ["Ana works at A."]
    held_in_june = {"as_of": datetime(2026, 6, 1, tzinfo=UTC)}
    assert await statements(deps, org.owner, **held_in_june) == ["Ana works at B."]
    assert await statements(deps, org.owner, **held_in_june, known_at=before_b) == ["Ana works at A."]
    assert await statements(deps, org.owner, known_at=old.fact.created_at - timedelta(seconds=1)) == []


async def test_a_fact_taken_back_held_until_then(deps: Deps, org: Company) -> None:
    saved = await say(deps, org.owner, "Ana works at A.")
    assert saved.fact
    gone = await facts.retract(deps, org.owner, saved.fact.id, reason="She left.", expected_version=1)
    assert gone.standing is Standing.SUPERSEDED
    assert gone.revoked_at is not None
    assert gone.revoked_at == gone.interval.valid_to
    assert await listed(deps, org.owner) == []
    assert await statements(deps, org.owner, as_of=saved.fact.created_at) == ["Ana works at A."]
    assert await statements(deps, org.owner, as_of=gone.interval.valid_to) == []
    with pytest.raises(Conflict):
        await facts.retract(deps, org.owner, saved.fact.id, reason="again")
    assert (await say(deps, org.owner, "Ana works at A.")).outcome is FactOutcome.CREATED


async def test_a_stale_version_is_a_conflict_and_nothing_changes(deps: Deps, org: Company) -> None:
    saved = await say(deps, org.owner, "Ana works at A.")
    assert saved.fact
    with pytest.raises(Conflict) as caught:
        await facts.retract(deps, org.owner, saved.fact.id, reason="x", expected_version=7)
    assert caught.value.current_version == 1
    assert len(await listed(deps, org.owner)) == 1


@pytest.mark.parametrize("disguise", ["Ana earns 900k EUR.", "ana  earns\u200b 900k EUR", "Аna earns 900k EUR."])
async def test_a_rejected_value_comes_back_by_no_automatic_path_but_by_a_person(
    deps: Deps, org: Company, disguise: str
) -> None:
    agent = replace(org.owner, role=Role.AGENT)
    saved = await say(deps, org.owner, "Ana earns 900k EUR.")
    assert saved.fact
    await facts.retract(deps, org.owner, saved.fact.id, reason="A typing error.", reject=True)
    for who, extracted in ((agent, False), (org.owner, True)):
        again = await say(deps, who, disguise, extracted=extracted)
        assert again.outcome is FactOutcome.REJECTED_BEFORE
        assert again.fact
        assert (again.fact.id, again.fact.standing) == (saved.fact.id, Standing.REJECTED)
    other = await say(deps, org.owner, "Ana earns 90k EUR.", extracted=True)
    assert other.outcome is FactOutcome.PROVISIONAL
    assert await listed(deps, org.owner) == []
    by_hand = await say(deps, org.owner, disguise)
    assert by_hand.outcome is FactOutcome.CREATED
    assert by_hand.fact
    (event,) = await history.history(deps, org.owner, by_hand.fact.id, ALL)
    assert event.detail
    assert event.detail["liftsRejection"] is True
    assert (await say(deps, agent, disguise)).outcome is FactOutcome.DEDUPLICATED


GATE = [
    ("owner", "organization", Standing.CURRENT),
    ("admin", "deal", Standing.CURRENT),
    ("solutions", "deal", Standing.CURRENT),
    ("solutions", "client", Standing.PROVISIONAL),
    ("solutions", "organization", Standing.PROVISIONAL),
    ("manager", "client", Standing.CURRENT),
    ("manager", "deal", Standing.CURRENT),
    ("manager", "organization", Standing.PROVISIONAL),
    ("member", "client", Standing.PROVISIONAL),
    ("member", "organization", Standing.PROVISIONAL),
    ("agent", "organization", Standing.PROVISIONAL),
    ("member", "private", Standing.CURRENT),
    ("agent", "private", Standing.CURRENT),
]


@pytest.mark.parametrize(("who", "where", "standing"), GATE)
async def test_the_gate_decides_by_role_and_scope(
    deps: Deps, org: Company, who: str, where: str, standing: Standing
) -> None:
    people = {
        "owner": lambda: org.member("o", Role.OWNER, client="acme", deal="crm"),
        "admin": lambda: org.member("a", Role.ADMIN, client="acme", deal="crm"),
        "solutions": lambda: org.member("s", Role.SOLUTIONS_ENGINEER, client="acme"),
        "manager": lambda: org.member("p", Role.PROJECT_MANAGER, client="acme"),
        "member": lambda: org.member("m", Role.MEMBER, client="acme"),
        "agent": lambda: org.member("g", Role.AGENT, client="acme"),
    }
    await org.member("other", client="acme", deal="crm")
    principal = await people[who]()
    (deal, client) = next(iter(principal.deals.items()))
    place: dict[str, Any] = {
        "organization": {},
        "client": {"client_id": client},
        "deal": {"deal_id": deal},
        "private": {"private": True},
    }[where]
    saved = await say(deps, principal, "Ana earns 100k EUR.", **place)
    assert saved.fact
    assert saved.fact.standing is standing


async def test_a_provisional_fact_touches_nothing_until_it_is_promoted(deps: Deps, org: Company) -> None:
    member = await org.member("mia")
    active = await say(deps, org.owner, "Ana earns 100k EUR.")
    claim = await say(deps, member, "Ana earns 110k EUR.")
    assert claim.outcome is FactOutcome.PROVISIONAL
    assert (await say(deps, member, "ana earns 110k EUR.")).outcome is FactOutcome.DEDUPLICATED
    assert claim.fact
    assert active.fact
    assert await statements(deps, member) == ["Ana earns 100k EUR."]
    assert await statements(deps, member, known_at=claim.fact.created_at) == ["Ana earns 100k EUR."]
    chain = await history.chain(deps, member, active.fact.id)
    assert chain
    assert len(chain.records) == 1
    promoted = await promote(deps, org.owner, claim.fact)
    assert promoted.outcome is FactOutcome.SUPERSEDED
    assert promoted.revoked
    assert promoted.revoked.id == active.fact.id
    assert await statements(deps, member) == ["Ana earns 110k EUR."]
    assert promoted.fact
    assert promoted.revoked.interval.valid_to == promoted.fact.interval.valid_from
    assert promoted.fact.interval.known_from == promoted.revoked.interval.known_to
    with pytest.raises(Conflict):
        await promote(deps, org.owner, claim.fact)


async def promote(deps: Deps, who: Principal, fact: Fact) -> Saved:
    rules = await facts.rules_of(deps, who)

    async def work(tx: Tx) -> Saved:
        return await promotion.promote(tx, deps, who, fact.id, rules=rules)

    return await deps.db.write(work)


async def test_promoting_what_is_active_already_folds_and_passes_the_sources_on(deps: Deps, org: Company) -> None:
    member = await org.member("mia")
    source = (await capture.accept(deps, member, NewMemory(text="Payroll says 110k."))).memory
    claim = await say(deps, member, "Ana earns 110k EUR.", source_ids=(source.id,))
    active = await say(deps, org.owner, "Ana earns 110k EUR.")
    assert claim.fact
    assert active.fact
    assert (await promote(deps, org.owner, claim.fact)).outcome is FactOutcome.DEDUPLICATED
    assert [memory.id for memory in await fact_lists.sources(deps, member, active.fact.id, ALL)] == [source.id]
    assert len(await listed(deps, member)) == 1


async def test_a_member_may_not_take_back_what_counts_for_all_but_may_withdraw_a_proposal(
    deps: Deps, org: Company
) -> None:
    member, other = await org.member("mia"), await org.member("max")
    active, claim = await say(deps, org.owner, "A."), await say(deps, member, "B.")
    assert active.fact
    assert claim.fact
    for who, fact in ((member, active.fact), (other, claim.fact)):
        with pytest.raises(Forbidden):
            await facts.retract(deps, who, fact.id, reason="no")
    assert (await facts.retract(deps, member, claim.fact.id, reason="mistake")).standing is Standing.REJECTED


async def test_private_and_shared_slots_never_meet(deps: Deps, org: Company) -> None:
    alice, bob = await org.member("alice"), await org.member("bob")
    await say(deps, alice, "Ana earns 1.", private=True)
    await say(deps, bob, "Ana earns 2.", private=True)
    await say(deps, org.owner, "Ana earns 3.")
    assert sorted(await statements(deps, alice)) == ["Ana earns 1.", "Ana earns 3."]
    assert sorted(await statements(deps, bob)) == ["Ana earns 2.", "Ana earns 3."]
    assert await statements(deps, org.owner) == ["Ana earns 3."]


async def test_foreign_ids_answer_as_unknown_ones_and_nothing_is_saved(deps: Deps, org: Company) -> None:
    stranger = (await company(deps)).owner
    saved = await say(deps, org.owner, "Ana works at A.")
    memory = (await capture.accept(deps, org.owner, NewMemory(text="Ana works at A, she says."))).memory
    assert saved.fact
    for id in (saved.fact.id, deps.new_id("fact"), "nonsense"):
        with pytest.raises(NotFound):
            await facts.retract(deps, stranger, id, reason="x")
    for id in (memory.id, deps.new_id("mem")):
        with pytest.raises(NotFound):
            await say(deps, stranger, "Ana works at B.", source_ids=(id,))
    assert await listed(deps, stranger) == []
    assert await history.history(deps, stranger, saved.fact.id, ALL) == []
    assert await history.chain(deps, stranger, saved.fact.id) is None


async def test_a_shared_fact_takes_no_private_source(deps: Deps, org: Company) -> None:
    secret = (await capture.accept(deps, org.owner, NewMemory(text="My own note.", private=True))).memory
    with pytest.raises(InvalidInput, match="private"):
        await say(deps, org.owner, "Ana works at A.", source_ids=(secret.id,))
    assert (await say(deps, org.owner, "Ana works at A.", private=True, source_ids=(secret.id,))).fact


@pytest.mark.parametrize(
    "bad",
    [
        {"statement": " "},
        {"statement": "x" * 9000},
        {"subject": ""},
        {"relation": "two\nlines"},
        {"subject": "x" * 40_000},
        {"confidence": 1.5},
        {"valid_from": datetime(2026, 1, 2, tzinfo=UTC), "valid_to": datetime(2026, 1, 1, tzinfo=UTC)},
        {"valid_to": datetime(2020, 1, 1, tzinfo=UTC)},
    ],
    ids="-".join,
)
async def test_what_cannot_be_stored_is_refused_before_anything_is(
    deps: Deps, org: Company, bad: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        await facts.save(deps, org.owner, NewFact(**{"subject": "Ana", "relation": "job", "statement": "A.", **bad}))
    assert await listed(deps, org.owner) == []


async def test_the_same_key_replays_and_another_input_under_it_is_refused(deps: Deps, org: Company) -> None:
    new = NewFact(subject="Ana", relation="job", statement="Ana is CTO.")
    once = await facts.save(deps, org.owner, new, idempotency_key="k1")
    await say(deps, org.owner, "Ana is CEO.", relation="job")
    again = await asyncio.gather(*(facts.save(deps, org.owner, new, idempotency_key="k1") for _ in range(5)))
    assert once.fact
    assert {(one.fact.id, one.outcome, one.replayed) for one in again if one.fact} == {
        (once.fact.id, FactOutcome.CREATED, True)
    }
    assert await statements(deps, org.owner) == ["Ana is CEO."]
    with pytest.raises(IdempotencyKeyReused):
        await facts.save(deps, org.owner, replace(new, statement="Ana is CFO."), idempotency_key="k1")
    other = await facts.save(deps, await org.member("max"), new, idempotency_key="k1")
    assert not other.replayed


async def test_32_writers_whose_clocks_differ_leave_one_active_fact_and_a_linear_chain(
    deps: Deps, org: Company
) -> None:
    apart = [replace(deps, clock=lambda ahead=ahead: utc_now() + ahead) for ahead in (-HOUR, HOUR)]
    await asyncio.gather(*(say(apart[i % 2], org.owner, f"Northwind pays {100 + i} euros.") for i in range(32)))
    (active,) = await listed(deps, org.owner)
    chain = await history.chain(deps, org.owner, active.id)
    assert chain
    ids = [record.id for record in chain.records]
    assert len(ids) == 32
    assert [(link.to_id, link.from_id) for link in chain.links] == list(itertools.pairwise(ids))
    times = [link.at for link in chain.links]
    assert times == sorted(times)
    starts = [record.interval.valid_from for record in chain.records]
    assert starts == sorted(set(starts))
    assert [record.interval.valid_to for record in chain.records] == [*starts[1:], FAR]


LINKS = """
MATCH (newer:Fact {org: $org})-[r:SUPERSEDES]->(older:Fact)
RETURN newer.id AS newer, older.id AS older, r.at AS at, newer.knownFrom AS known, older.knownTo AS left
"""


async def test_along_600_supersessions_by_32_writers_of_two_clocks_time_never_goes_backwards(
    deps: Deps, org: Company
) -> None:
    apart = [replace(deps, clock=lambda ahead=ahead: utc_now() + ahead) for ahead in (-HOUR, HOUR)]
    values = iter(range(601))

    async def writer(turn: int) -> None:
        for value in values:
            await say(apart[turn % 2], org.owner, f"Northwind pays {value} euros.")

    await asyncio.gather(*map(writer, range(32)))

    async def read(tx: Tx) -> list[Any]:
        return await rows(tx, LINKS, org=org.id)

    links = await deps.db.read(read)
    below = {link["newer"]: link for link in links}
    assert len(links) == len(below) == len({link["older"] for link in links}) == 600
    (active,) = await listed(deps, org.owner)
    chain = [below[active.id]]
    while link := below.get(chain[-1]["older"]):
        chain.append(link)
    assert len(chain) == 600
    times = [link["at"] for link in reversed(chain)]
    assert times == sorted(set(times))
    assert [(link["known"], link["left"]) for link in reversed(chain)] == [(at, at) for at in times]


ONE_EACH = """
MATCH (s:Slot {org: $org})
OPTIONAL MATCH (s)-[:CURRENT]->(c:Fact)
WITH s, collect(c) AS seated, COUNT { (:Fact {slotKey: s.key, standing: 'CURRENT'}) } AS current,
  COUNT { (f:Fact {slotKey: s.key} WHERE f.activeKey IS NOT NULL) } AS keyed,
  COUNT { (f:Fact {slotKey: s.key}) WHERE COUNT { (f)<-[:SUPERSEDES]-() } > 1 } AS forks
WHERE size(seated) <> 1 OR current <> 1 OR keyed <> 1 OR forks > 0 OR seated[0].rev <> s.rev
RETURN count(*) AS wrong
"""


async def test_a_thousand_facts_over_a_hundred_slots_end_right(deps: Deps, org: Company) -> None:
    gate = asyncio.Semaphore(16)

    async def one(i: int) -> None:
        async with gate:
            await say(deps, org.owner, f"Value {i}.", subject=f"Client {i % 100}")

    await asyncio.gather(*(one(i) for i in range(1000)))

    async def audit(tx: Tx) -> int:
        return (await rows(tx, ONE_EACH, org=org.id))[0]["wrong"]

    assert await deps.db.read(audit) == 0
    assert len(await listed(deps, org.owner)) == 100
    filter = await fact_lists.list_filter(deps, org.owner, standings=(Standing.SUPERSEDED,))
    assert await fact_lists.count(deps, org.owner, filter) == 900


async def test_the_worker_embeds_a_fact_and_finds_what_it_is_about(deps: Deps, org: Company) -> None:
    saved = await say(deps, org.owner, "Northwind GmbH pays 185 euros an hour.", subject="Northwind GmbH")
    await work_off(deps, org.id)
    assert saved.fact
    id = saved.fact.id

    async def embedded(tx: Tx) -> int:
        return (await rows(tx, "MATCH (f:Fact {id: $id}) RETURN size(f.embedding) AS size", id=id))[0]["size"]

    assert await deps.db.read(embedded) == 384
    entity = await fact_lists.entity(deps, org.owner, id)
    assert entity
    assert entity.name == "Northwind GmbH"
    assert [fact.id for fact in await fact_lists.about(deps, org.owner, entity.id, ALL)] == [id]
