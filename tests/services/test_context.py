"""What an agent is given before a run, and the account of it, on a real Neo4j."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import pytest

from graph_mem.core.canon import Absence
from graph_mem.core.context import digest
from graph_mem.core.model import OrganizationId, Principal, RecordId, Role
from graph_mem.core.retrieval import ScopeName
from graph_mem.core.runs import RebuildState
from graph_mem.core.text import text_hash
from graph_mem.errors import InvalidInput, NotFound
from graph_mem.services import Deps, canon, capture, context, lifecycle, pins, relations
from graph_mem.services.canon import NewPolicy, NewValue
from graph_mem.services.capture import NewMemory
from graph_mem.services.context import Assembled, Request
from graph_mem.services.pins import NewPin
from graph_mem.store import runs, visibility
from graph_mem.store.db import Database, Tx
from tests.people import Company, company, deps_on, work_off

T = TypeVar("T")


async def remember(deps: Deps, who: Principal, text: str, **given: object) -> RecordId:
    return (await capture.accept(deps, who, NewMemory(text=text, **given))).memory.id  # pyright: ignore[reportArgumentType]


async def pinned(deps: Deps, who: Principal, text: str, *, slot: str = "charter", private: bool = False) -> RecordId:
    id = await remember(deps, who, text, private=private, label="decision")
    await pins.pin(deps, who, NewPin(memory_id=id, slot=slot, private=private))
    return id


async def assembled(deps: Deps, who: Principal, run: str = "run-1", **given: object) -> Assembled:
    return await context.assemble(deps, who, Request(**{"run_id": run, "instruction": "Write the offer.", **given}))  # pyright: ignore[reportArgumentType]


async def furnished(deps: Deps, org: Company) -> RecordId:
    """One policy, one variable, one pin; returns the pinned memory."""
    await canon.save_policy(deps, org.owner, NewPolicy(name="Tone", text="Write plainly."))
    await canon.set_variable(deps, org.owner, NewValue(name="currency", value="EUR"))
    return await pinned(deps, org.owner, "We ship weekly.")


class Counting(Database):
    """A database that counts the statements of read transactions."""

    statements = 0

    async def read(self, work: Callable[[Tx], Awaitable[T]], **given: Any) -> T:
        async def counted(tx: Tx) -> T:
            class Counted:
                async def run(_, *args: Any) -> Any:
                    self.statements += 1
                    return await tx.run(*args)

            return await work(cast("Tx", Counted()))

        return await super().read(counted, **given)


class TestPrefix:
    async def test_holds_policies_variables_and_pins_and_no_tail_unless_asked(self, deps: Deps, org: Company) -> None:
        id = await furnished(deps, org)
        made = await assembled(deps, org.owner)
        assert all(text in made.prefix.text for text in ("Write plainly.", '"currency" = "EUR"', "We ship weekly.", id))
        assert made.prefix.hash == digest(made.prefix.text)
        assert made.tail is None
        assert (made.view.trace.semantic_tail, made.view.trace.retrieval_trace_id) == (False, None)

    async def test_is_the_same_for_any_run_query_budget_and_agent(self, deps: Deps, org: Company) -> None:
        await furnished(deps, org)
        agent = await org.member("agent", Role.AGENT)
        made = [
            await assembled(deps, org.owner),
            await assembled(deps, org.owner, "run-2", instruction="Something else.", semantic_tail=True),
            await assembled(deps, agent, "run-3", budget_tokens=10),
        ]
        assert len({one.prefix.text for one in made}) == 1

    async def test_is_the_same_whatever_was_stored_first(self, deps: Deps, org: Company) -> None:
        ids = [await remember(deps, org.owner, f"Canon {i}.") for i in range(4)]
        texts: list[str] = []
        for order in (ids, ids[::-1], [ids[2], ids[0], ids[3], ids[1]]):
            made = [(await pins.pin(deps, org.owner, NewPin(memory_id=id, slot="s"))).pin for id in order]
            texts.append((await assembled(deps, org.owner)).prefix.text)
            for pin in made:
                await pins.unpin(deps, org.owner, pin.id)
        assert len(set(texts)) == 1
        assert all(f"Canon {i}." in texts[0] for i in range(4))

    async def test_changes_with_every_change_of_canon_and_comes_back(self, deps: Deps, org: Company) -> None:
        await furnished(deps, org)
        first = (await assembled(deps, org.owner)).prefix.hash
        (policy,) = await canon.policies(deps, org.owner)
        await canon.save_policy(deps, org.owner, NewPolicy(id=policy.id, name="Tone", text="Write plainly!"))
        await canon.set_variable(deps, org.owner, NewValue(name="currency", value="USD"))
        extra = await pinned(deps, org.owner, "New canon.")
        hashes = {first, (await assembled(deps, org.owner)).prefix.hash}
        (pin,) = [one.pin for one in await pins.pins(deps, org.owner, scope=ScopeName()) if one.memory.id == extra]
        await pins.unpin(deps, org.owner, pin.id)
        hashes.add((await assembled(deps, org.owner)).prefix.hash)
        await canon.save_policy(deps, org.owner, NewPolicy(id=policy.id, name="Tone", text="Write plainly."))
        hashes.add((await assembled(deps, org.owner)).prefix.hash)
        assert len(hashes) == 4
        await canon.set_variable(deps, org.owner, NewValue(name="currency", value="EUR"))
        assert (await assembled(deps, org.owner)).prefix.hash == first

    async def test_a_users_own_pin_comes_first_in_its_slot_and_only_for_them(self, deps: Deps, org: Company) -> None:
        ana = await org.member("ana")
        shared = await pinned(deps, org.owner, "Shared canon.")
        own = await pinned(deps, ana, "Ana's canon.", private=True)
        assert [pin.memory_id for pin in (await assembled(deps, ana)).prefix.pins] == [own, shared]
        assert "Ana's canon." not in (await assembled(deps, org.owner)).prefix.text

    async def test_only_the_scope_and_what_is_around_it_holds(self, deps: Deps, org: Company) -> None:
        engineer = await org.member("engineer", Role.SOLUTIONS_ENGINEER, client="Northwind", deal="Pilot")
        ((deal, client),) = engineer.deals.items()
        for name, scope in (("all", ScopeName()), ("client", ScopeName(client)), ("deal", ScopeName(client, deal))):
            await canon.save_policy(deps, org.owner, NewPolicy(name=name, text=f"Rule of {name}.", scope=scope))
        wide = (await assembled(deps, org.owner)).prefix
        narrow = (await assembled(deps, org.owner, scope=ScopeName(deal_id=deal))).prefix
        assert [one.name for one in wide.policies] == ["all"]
        assert [one.name for one in narrow.policies] == ["all", "client", "deal"]
        assigned = (await assembled(deps, engineer, scope=ScopeName(deal_id=deal))).prefix
        assert [one.name for one in assigned.policies] == ["all", "deal"]
        with pytest.raises(NotFound):
            await assembled(deps, await org.member("outsider"), scope=ScopeName(deal_id=deal))

    async def test_needs_two_round_trips_at_most(self, deps: Deps, org: Company) -> None:
        """One for the scope where one is named, one for all canon, however much there is."""
        engineer = await org.member("engineer", Role.SOLUTIONS_ENGINEER, client="Northwind", deal="Pilot")
        for i in range(5):
            await pinned(deps, org.owner, f"Canon {i}.")
        counting = Counting(deps.db.driver, database=deps.db.name)
        await assembled(replace(deps, db=counting), engineer)
        assert counting.statements == 1
        await assembled(replace(deps, db=counting), engineer, scope=ScopeName(deal_id=next(iter(engineer.deals))))
        assert counting.statements == 1 + 2


class TestPins:
    async def test_a_pin_follows_supersession_to_the_head(self, deps: Deps, org: Company) -> None:
        first = await pinned(deps, org.owner, "Version one.")
        for text in ("Version two.", "Version three."):
            newer = await remember(deps, org.owner, text, label="decision")
            await relations.relate(deps, org.owner, from_id=newer, to_id=first, kind="SUPERSEDES")
            first, oldest = newer, first
        made = await assembled(deps, org.owner)
        assert "Version three." in made.prefix.text
        assert "Version one." not in made.prefix.text
        assert "Version two." not in made.prefix.text
        (pin,) = made.view.trace.pins
        assert (pin.memory_id, pin.followed, pin.pin.memory_id != oldest) == (first, True, True)

    async def test_a_long_chain_and_a_diamond_are_followed_quickly(self, deps: Deps, org: Company) -> None:
        """Forty diamonds have 2^40 paths."""
        base = await pinned(deps, org.owner, "Diamond base.")
        rows = await deps.db.run(
            """
            MATCH (base:Memory {id: $id})
            UNWIND range(1, 120) AS i
            CREATE (m:Memory) SET m = base {.*, id: 'mem_x' + i + base.id, dedupKey: null, text: 'Step ' + i,
              standing: CASE WHEN i = 120 THEN 'CURRENT' ELSE 'SUPERSEDED' END}
            WITH base, collect(m) AS made
            SET base.standing = 'SUPERSEDED', base.dedupKey = null
            WITH [base] + made AS chain
            UNWIND range(1, size(chain) - 1) AS i
            WITH chain, i, chain[i] AS newer
            UNWIND [i - 1, CASE WHEN i > 1 THEN i - 2 ELSE 0 END] AS older
            WITH newer, chain[older] AS old
            CREATE (newer)-[:SUPERSEDES {id: 'rel_x' + randomUUID(), state: 'ACTIVE', retires: true}]->(old)
            RETURN count(*) AS links
            """,
            id=base,
        )
        assert rows[0]["links"] == 240
        async with asyncio.timeout(3):
            made = await assembled(deps, org.owner)
        assert "Step 120" in made.prefix.text
        assert [pin.followed for pin in made.view.trace.pins] == [True]

    async def test_a_pin_follows_a_fold(self, deps: Deps, org: Company) -> None:
        kept = await remember(deps, org.owner, "The same text.")
        await work_off(deps, org.id)
        copy = await remember(deps, org.owner, "The same  text.")
        await pins.pin(deps, org.owner, NewPin(memory_id=copy, slot="s"))
        await work_off(deps, org.id)
        (pin,) = (await assembled(deps, org.owner)).prefix.pins
        assert pin.memory_id in (kept, copy)

    async def test_a_retracted_link_leads_nowhere(self, deps: Deps, org: Company) -> None:
        old = await pinned(deps, org.owner, "Version one.")
        new = await remember(deps, org.owner, "Version two.", label="decision")
        link = (await relations.relate(deps, org.owner, from_id=new, to_id=old, kind="SUPERSEDES")).relation
        assert [pin.memory_id for pin in (await assembled(deps, org.owner)).prefix.pins] == [new]
        await relations.correct(deps, org.owner, link.id, reason="wrong")
        assert [pin.memory_id for pin in (await assembled(deps, org.owner)).prefix.pins] == [old]

    async def test_an_archived_memory_is_left_out_and_told_until_it_is_restored(self, deps: Deps, org: Company) -> None:
        gone, kept = await pinned(deps, org.owner, "Archived canon."), await pinned(deps, org.owner, "Kept canon.")
        before = (await assembled(deps, org.owner)).prefix.hash
        await lifecycle.archive(deps, org.owner, gone)
        made = await assembled(deps, org.owner)
        assert "Archived canon." not in made.prefix.text
        assert [pin.memory_id for pin in made.prefix.pins] == [kept]
        assert [(one.pin.memory_id, one.reason) for one in made.view.trace.absent] == [(gone, Absence.ARCHIVED)]
        await lifecycle.restore(deps, org.owner, gone)
        assert (await assembled(deps, org.owner)).prefix.hash == before

    async def test_an_erased_memory_is_left_out_and_told(self, deps: Deps, org: Company) -> None:
        gone = await pinned(deps, org.owner, "Erased canon.")
        await deps.db.run("MATCH (m:Memory {id: $id}) DETACH DELETE m", id=gone)
        made = await assembled(deps, org.owner)
        assert [(one.pin.memory_id, one.reason) for one in made.prefix.absent] == [(gone, Absence.ERASED)]
        (left,) = await pins.pins(deps, org.owner, scope=ScopeName())
        assert left.memory.text is None
        await pins.unpin(deps, org.owner, left.pin.id)
        assert (await assembled(deps, org.owner)).prefix.absent == ()


class TestBudget:
    async def test_a_pin_over_its_limit_is_cut_at_a_paragraph_and_flagged(self, deps: Deps, org: Company) -> None:
        tight = replace(deps, limits=replace(deps.limits, pin_tokens=40))
        long = await pinned(tight, org.owner, "\n\n".join(f"Paragraph {i} has six words." for i in range(20)))
        short = await pinned(tight, org.owner, "Short.")
        made = await assembled(tight, org.owner)
        flags = {pin.memory_id: pin.cut is not None for pin in made.view.trace.pins}
        assert flags == {long: True, short: False}
        assert "Paragraph 0 has six words.\n" in made.prefix.text
        assert "Paragraph 19" not in made.prefix.text

    async def test_canon_over_budget_is_whole_and_flagged_and_the_tail_is_empty(self, deps: Deps, org: Company) -> None:
        await furnished(deps, org)
        await remember(deps, org.owner, "An offer from March.")
        made = await assembled(deps, org.owner, budget_tokens=5, semantic_tail=True, instruction="offer March")
        assert "We ship weekly." in made.prefix.text
        assert made.view.trace.over_budget
        assert made.tail is not None
        assert (made.tail.text, made.tail.items, made.tail.tokens) == ("", (), 0)
        assert made.view.trace.used == made.prefix.tokens

    async def test_ten_canon_five_hundred_look_alikes_budget_800(self, deps: Deps, org: Company) -> None:
        """All canon first, byte-identical for two queries; the tail is what fits, whole, in rank order."""
        canon_ids = [await pinned(deps, org.owner, f"Canon {i}: rates are fixed yearly.") for i in range(10)]
        notes = [NewMemory(text=f"Note {i}: rates are fixed yearly, said person {i}.") for i in range(500)]
        await capture.accept_all(deps, org.owner, notes, rank=0)
        one, other = [
            await assembled(deps, org.owner, run, budget_tokens=800, semantic_tail=True, instruction=text)
            for run, text in (("a", "What rates are fixed?"), ("b", "Said person 7 that rates are fixed?"))
        ]
        assert one.prefix.text == other.prefix.text
        assert {pin.memory_id for pin in one.prefix.pins} == set(canon_ids)
        for made in (one, other):
            assert made.tail is not None
            assert made.tail.items
            assert made.tail.omitted > 0
            assert made.view.trace.used <= 800
            assert [hit.rank for hit in made.tail.items] == sorted(hit.rank for hit in made.tail.items)
            assert not {hit.record.id for hit in made.tail.items} & set(canon_ids)
        assert one.tail != other.tail

    @pytest.mark.parametrize(
        "given",
        [
            {"budget_tokens": 0},
            {"budget_tokens": 10**9},
            {"run": ""},
            {"run": "x" * 201},
            {"instruction": "a\0", "semantic_tail": True},
        ],
    )
    async def test_a_request_that_cannot_be_is_refused(
        self, deps: Deps, org: Company, given: dict[str, object]
    ) -> None:
        with pytest.raises(InvalidInput):
            await assembled(deps, org.owner, **given)  # pyright: ignore[reportArgumentType]


class TestRunTrace:
    async def test_tells_exactly_what_was_in_force(self, deps: Deps, org: Company) -> None:
        id = await furnished(deps, org)
        offer = await remember(deps, org.owner, "The offer of March was 96 euros.")
        made = await assembled(deps, org.owner, semantic_tail=True, instruction="the offer of March")
        view = await context.run_trace(deps, org.owner, run_id="run-1")
        assert view is not None
        assert view == made.view
        trace = view.trace
        assert (len(trace.policies), len(trace.variables), [pin.memory_id for pin in trace.pins]) == (1, 1, [id])
        assert (trace.tail_record_ids, trace.prefix_hash) == ((offer,), made.prefix.hash)
        assert trace.retrieval_trace_id
        assert made.tail is not None
        assert trace.used == made.prefix.tokens + made.tail.tokens

    async def test_the_prefix_can_be_rebuilt_after_everything_changed(self, deps: Deps, org: Company) -> None:
        id = await furnished(deps, org)
        made = await assembled(deps, org.owner)
        (policy,) = await canon.policies(deps, org.owner)
        await canon.save_policy(deps, org.owner, NewPolicy(id=policy.id, name="New", text="New.", active=False))
        await canon.set_variable(deps, org.owner, NewValue(name="currency", value=None))
        (pin,) = await pins.pins(deps, org.owner, scope=ScopeName())
        await pins.unpin(deps, org.owner, pin.pin.id)
        newer = await remember(deps, org.owner, "We ship daily.", label="decision")
        await relations.relate(deps, org.owner, from_id=newer, to_id=id, kind="SUPERSEDES")
        found = await context.rebuild(deps, org.owner, made.view.trace)
        assert (found.state, found.text) == (RebuildState.EXACT, made.prefix.text)

    async def test_a_former_text_of_a_pinned_memory_is_found_again(self, deps: Deps, org: Company) -> None:
        long = "\n\n".join(f"Paragraph {i}: " + "what we agreed about rates and dates " * 4 for i in range(20))
        id = await pinned(deps, org.owner, long)
        await work_off(deps, org.id)
        made = await assembled(deps, org.owner)
        await deps.db.run(
            """
            MATCH (m:Memory {id: $id})
            CREATE (v:Version) SET v = m {.org, .owner, .level, .clientId, .dealId, .partition, .scope, .text},
              v.id = m.id + '/1', v.memoryId = m.id, v.version = 1, v.savedAt = 0, v.savedBy = m.author
            SET m.text = 'Another text.', m.version = m.version + 1
            """,
            id=id,
        )
        assert "Another text." in (await assembled(deps, org.owner, "run-2")).prefix.text
        found = await context.rebuild(deps, org.owner, made.view.trace)
        assert (found.state, found.text) == (RebuildState.EXACT, made.prefix.text)

    async def test_says_so_if_a_memory_was_erased_since(self, deps: Deps, org: Company) -> None:
        id = await furnished(deps, org)
        made = await assembled(deps, org.owner)
        assert (await context.rebuild(deps, org.owner, made.view.trace)).state is RebuildState.EXACT
        await deps.db.write(lambda tx: runs.forget(tx, org_id=org.id, record_ids=[id]))
        await deps.db.run("MATCH (m:Memory {id: $id}) DETACH DELETE m", id=id)
        view = await context.run_trace(deps, org.owner, run_id="run-1")
        assert view is not None
        found = await context.rebuild(deps, org.owner, view.trace)
        assert (found.state, found.text, found.missing) == (RebuildState.ERASED, None, (id,))
        assert view.memories[id].text is None

    async def test_no_property_of_a_run_trace_holds_a_text(self, deps: Deps, org: Company) -> None:
        await furnished(deps, org)
        await remember(deps, org.owner, "The offer of March was 96 euros.")
        await assembled(deps, org.owner, semantic_tail=True, instruction="the offer of March")
        rows = await deps.db.run("MATCH (t:RunTrace {org: $org}) RETURN properties(t) AS held", org=org.id)
        stored = str([row["held"] for row in rows])
        assert "prefixHash" in stored
        for text in ("ship weekly", "offer of March", "96 euros", "Write plainly", "EUR"):
            assert text not in stored

    async def test_forgetting_takes_digests_of_the_erased_and_of_nobody_else(self, deps: Deps, org: Company) -> None:
        id, other = await furnished(deps, org), await pinned(deps, org.owner, "Other canon.")
        await assembled(deps, org.owner)
        assert await deps.db.write(lambda tx: runs.forget(tx, org_id=org.id, record_ids=[id])) == 1
        stored = str(await deps.db.run("MATCH (t:RunTrace {org: $org}) RETURN properties(t) AS held", org=org.id))
        assert digest("We ship weekly.") not in stored
        assert text_hash("We ship weekly.") not in stored
        assert text_hash("Other canon.") in stored
        assert other in stored

    async def test_is_for_its_maker_and_those_who_may_see_all_it_names(self, deps: Deps, org: Company) -> None:
        engineer = await org.member("engineer", Role.SOLUTIONS_ENGINEER, client="Northwind", deal="Pilot")
        outsider = await org.member("outsider")
        await furnished(deps, org)
        (deal,) = engineer.deals
        await assembled(deps, engineer, "shared")
        await assembled(deps, engineer, "at the deal", scope=ScopeName(deal_id=deal))
        await pinned(deps, engineer, "My own.", private=True)
        await assembled(deps, engineer, "private")

        async def seen(who: Principal) -> list[str]:
            names = ("shared", "at the deal", "private", "never")
            return [name for name in names if await context.run_trace(deps, who, run_id=name)]

        assert await seen(engineer) == ["shared", "at the deal", "private"]
        assert await seen(org.owner) == ["shared", "at the deal"]
        assert await seen(outsider) == ["shared"]
        assert await seen((await company(deps)).owner) == []

    async def test_of_one_run_id_everybody_gets_the_own_latest(self, deps: Deps, org: Company) -> None:
        ana, bob = await org.member("ana"), await org.member("bob")
        for who, budget in ((ana, 100), (bob, 200), (ana, 300)):
            await assembled(deps, who, "same", budget_tokens=budget)
        budgets = [
            view.trace.budget for who in (ana, bob) if (view := await context.run_trace(deps, who, run_id="same"))
        ]
        assert budgets == [300, 200]


class TestRecalled:
    async def test_what_a_runs_context_held_is_recognised(self, deps: Deps, org: Company) -> None:
        id = await furnished(deps, org)
        offer = await remember(deps, org.owner, "The offer of March was 96 euros.")
        made = await assembled(deps, org.owner, semantic_tail=True, instruction="the offer of March")
        assert made.tail is not None
        bob = await org.member("bob")

        async def held(text: str, who: Principal = org.owner, run: str = "run-1") -> RecordId | None:
            known = await deps.db.read(lambda tx: runs.held(tx, who, run_id=run, text_hash=text_hash(text)))
            return known and known.record_id

        assert await held("We  ship weekly.") == id
        assert await held("The offer of March was 96 euros.\n") == offer
        assert await held(made.prefix.text) == id
        assert await held(made.tail.text) == offer
        assert await held("We ship daily.") is None
        assert await held("We ship weekly.", run="run-2") is None
        assert await held("We ship weekly.", who=bob) is None


class TestSecondLayer:
    async def test_holds_without_the_first(self, deps: Deps, org: Company, monkeypatch: pytest.MonkeyPatch) -> None:
        """The index tokens of a stranger let everything through; the plain ids of each row do not."""
        ana, bob = await org.member("ana"), await org.member("bob")
        await pinned(deps, ana, "Ana's canon.", private=True)
        await canon.set_variable(deps, ana, NewValue(name="secret", value="blue", private=True))
        await assembled(deps, ana, "hers")
        before = visibility.security_events.count
        as_ana = visibility.access(ana)
        for module in ("canon", "context", "runs"):
            monkeypatch.setattr(f"graph_mem.store.{module}.access", lambda _: as_ana)
        made = await assembled(deps, bob, "his")
        assert "Ana's canon." not in made.prefix.text
        assert "blue" not in made.prefix.text
        assert await context.run_trace(deps, bob, run_id="hers") is None
        assert visibility.security_events.count > before
        stranger = Principal(OrganizationId("org_none"), bob.user_id, Role.OWNER)
        assert (await pins.pins(deps, stranger, scope=ScopeName())) == []


async def test_an_embedder_that_is_away_still_gives_canon_and_a_tail(org: Company) -> None:
    async with deps_on(org.deps.db) as deps:
        await furnished(deps, org)
        await remember(deps, org.owner, "The offer of March was 96 euros.")
        await deps.embedder.aclose()
        made = await assembled(deps, org.owner, semantic_tail=True, instruction="offer March")
        assert "We ship weekly." in made.prefix.text
        assert made.tail is not None
        assert len(made.tail.items) == 1
