"""Policies, variables and pins: versions, roles, scopes and who sees them, on a real Neo4j."""

import asyncio

import pytest

from graph_mem.core.canon import Policy, Variable
from graph_mem.core.model import Principal, RecordId, Role, ScopeLevel
from graph_mem.core.retrieval import ScopeName
from graph_mem.errors import Conflict, Forbidden, GraphMemError, InvalidInput, NotFound
from graph_mem.services import Deps, canon, capture, pins, records
from graph_mem.services.canon import NewPolicy, NewValue
from graph_mem.services.capture import NewMemory
from graph_mem.services.pins import NewPin
from tests.people import Company, company


async def remember(deps: Deps, who: Principal, text: str, **given: object) -> RecordId:
    return (await capture.accept(deps, who, NewMemory(text=text, **given))).memory.id  # pyright: ignore[reportArgumentType]


async def policy(deps: Deps, who: Principal, **given: object) -> Policy:
    return await canon.save_policy(deps, who, NewPolicy(**{"name": "Tone", "text": "Write plainly.", **given}))  # pyright: ignore[reportArgumentType]


async def values(deps: Deps, who: Principal, scope: ScopeName | None = None) -> dict[str, str | None]:
    return {one.name: one.value for one in await canon.variables(deps, who, scope=scope or ScopeName())}


async def at_deal(org: Company) -> tuple[Principal, ScopeName]:
    """A solutions engineer and the deal that is theirs."""
    engineer = await org.member("engineer", Role.SOLUTIONS_ENGINEER, client="Northwind", deal="Pilot")
    ((deal, client),) = engineer.deals.items()
    return engineer, ScopeName(client, deal)


class TestPolicies:
    async def test_saving_again_makes_a_new_version_and_only_if_something_changed(
        self, deps: Deps, org: Company
    ) -> None:
        first = await policy(deps, org.owner)
        assert (first.version, first.active, first.place.scope.level) == (1, True, ScopeLevel.ORGANIZATION)
        second = await policy(deps, org.owner, id=first.id, text="Never shout.", expected_version=1)
        assert (second.id, second.version) == (first.id, 2)
        assert await policy(deps, org.owner, id=first.id, text="Never shout.") == second
        assert await canon.policies(deps, org.owner) == [second]

    async def test_a_stale_version_is_a_conflict_and_changes_nothing(self, deps: Deps, org: Company) -> None:
        first = await policy(deps, org.owner)
        await policy(deps, org.owner, id=first.id, text="Second.")
        with pytest.raises(Conflict) as caught:
            await policy(deps, org.owner, id=first.id, text="Third.", expected_version=1)
        assert caught.value.current_version == 2
        assert [one.text for one in await canon.policies(deps, org.owner)] == ["Second."]

    async def test_of_ten_concurrent_edits_with_one_expected_version_one_succeeds(
        self, deps: Deps, org: Company
    ) -> None:
        first = await policy(deps, org.owner)
        edits = (policy(deps, org.owner, id=first.id, text=f"Edit {i}.", expected_version=1) for i in range(10))
        outcomes = await asyncio.gather(*edits, return_exceptions=True)
        assert sorted(type(one).__name__ for one in outcomes) == ["Conflict"] * 9 + ["Policy"]

    async def test_two_policies_of_one_scope_cannot_share_a_name(self, deps: Deps, org: Company) -> None:
        made = await asyncio.gather(*(policy(deps, org.owner) for _ in range(5)), return_exceptions=True)
        assert sorted(type(one).__name__ for one in made) == ["Conflict"] * 4 + ["Policy"]
        _, deal = await at_deal(org)
        assert (await policy(deps, org.owner, scope=deal)).place.scope.level is ScopeLevel.DEAL

    async def test_leaving_out_the_scope_of_an_edit_keeps_it(self, deps: Deps, org: Company) -> None:
        _, deal = await at_deal(org)
        first = await policy(deps, org.owner, scope=deal)
        assert (await policy(deps, org.owner, id=first.id, text="Other.")).place == first.place
        wider = await policy(deps, org.owner, id=first.id, scope=ScopeName())
        assert wider.place.scope.level is ScopeLevel.ORGANIZATION

    @pytest.mark.parametrize("role", [Role.SOLUTIONS_ENGINEER, Role.PROJECT_MANAGER, Role.MEMBER, Role.AGENT])
    async def test_only_owner_and_admin_save_policies(self, deps: Deps, org: Company, role: Role) -> None:
        with pytest.raises(Forbidden):
            await policy(deps, await org.member("someone", role))
        assert await policy(deps, await org.member("admin", Role.ADMIN))

    async def test_a_policy_of_a_deal_is_seen_by_who_works_on_it_and_nobody_else(
        self, deps: Deps, org: Company
    ) -> None:
        engineer, deal = await at_deal(org)
        wide, narrow = await policy(deps, org.owner), await policy(deps, org.owner, name="Deal", scope=deal)
        outsider = await org.member("outsider")
        assert {one.id for one in await canon.policies(deps, engineer)} == {wide.id, narrow.id}
        assert {one.id for one in await canon.policies(deps, outsider)} == {wide.id}
        assert await canon.policy(deps, outsider, narrow.id) is None
        assert await canon.policy(deps, engineer, narrow.id) == narrow

    async def test_another_organizations_policy_is_as_unknown_as_a_random_id(self, deps: Deps, org: Company) -> None:
        foreign = await policy(deps, (await company(deps)).owner)
        for id in (foreign.id, deps.new_id("pol")):
            with pytest.raises(NotFound):
                await policy(deps, org.owner, id=id)
            assert await canon.policy(deps, org.owner, id) is None

    @pytest.mark.parametrize("given", [{"name": ""}, {"name": "a\nb"}, {"name": "x" * 201}, {"text": " "}])
    async def test_what_cannot_be_stored_is_refused(self, deps: Deps, org: Company, given: dict[str, str]) -> None:
        with pytest.raises(InvalidInput):
            await policy(deps, org.owner, **given)


class TestVariables:
    async def test_the_narrower_scope_wins_and_the_user_over_all(self, deps: Deps, org: Company) -> None:
        engineer, deal = await at_deal(org)
        client = ScopeName(deal.client_id)
        for scope, value in [(ScopeName(), "org"), (client, "client"), (deal, "deal")]:
            await canon.set_variable(deps, org.owner, NewValue(name="v", value=value, scope=scope))
        assert await values(deps, org.owner) == {"v": "org"}
        assert await values(deps, org.owner, client) == {"v": "client"}
        assert await values(deps, org.owner, deal) == {"v": "deal"}
        await canon.set_variable(deps, engineer, NewValue(name="v", value="mine", private=True))
        assert await values(deps, engineer, deal) == {"v": "mine"}
        assert await values(deps, org.owner, deal) == {"v": "deal"}

    async def test_removing_uncovers_the_wider_value_and_setting_again_counts_on(
        self, deps: Deps, org: Company
    ) -> None:
        _, deal = await at_deal(org)
        await canon.set_variable(deps, org.owner, NewValue(name="v", value="org"))
        await canon.set_variable(deps, org.owner, NewValue(name="v", value="deal", scope=deal))
        removed = await canon.set_variable(deps, org.owner, NewValue(name="v", value=None, scope=deal))
        assert (removed.value, removed.version) == ("deal", 2)
        assert await values(deps, org.owner, deal) == {"v": "org"}
        with pytest.raises(NotFound):
            await canon.set_variable(deps, org.owner, NewValue(name="v", value=None, scope=deal))
        again = await canon.set_variable(deps, org.owner, NewValue(name="v", value="new", scope=deal))
        assert again.version == 3

    async def test_versions_are_checked(self, deps: Deps, org: Company) -> None:
        def write(value: str, expected: int) -> "asyncio.Future[Variable]":
            new = NewValue(name="v", value=value, expected_version=expected)
            return asyncio.ensure_future(canon.set_variable(deps, org.owner, new))

        made = await asyncio.gather(*(write(f"{i}", 0) for i in range(6)), return_exceptions=True)
        assert sorted(type(one).__name__ for one in made) == ["Conflict"] * 5 + ["Variable"]
        assert (await write("next", 1)).version == 2

    async def test_shared_ones_are_for_owner_and_admin_own_ones_for_anybody(self, deps: Deps, org: Company) -> None:
        engineer, deal = await at_deal(org)
        with pytest.raises(Forbidden):
            await canon.set_variable(deps, engineer, NewValue(name="v", value="x", scope=deal))
        assert await canon.set_variable(deps, engineer, NewValue(name="v", value="x", scope=deal, private=True))
        assert await canon.set_variable(deps, await org.member("admin", Role.ADMIN), NewValue(name="v", value="y"))

    async def test_nobody_sees_anothers_own_variables(self, deps: Deps, org: Company) -> None:
        ana, bob = await org.member("ana"), await org.member("bob")
        await canon.set_variable(deps, ana, NewValue(name="v", value="Ana's", private=True))
        await canon.set_variable(deps, bob, NewValue(name="v", value="Bob's", private=True))
        assert await values(deps, ana) == {"v": "Ana's"}
        assert await values(deps, bob) == {"v": "Bob's"}
        assert await values(deps, org.owner) == {}


class TestPins:
    async def test_pinning_again_moves_the_pin(self, deps: Deps, org: Company) -> None:
        id = await remember(deps, org.owner, "We ship weekly.")
        first = await pins.pin(deps, org.owner, NewPin(memory_id=id, slot="charter"))
        assert await pins.pin(deps, org.owner, NewPin(memory_id=id, slot="charter")) == first
        moved = await pins.pin(deps, org.owner, NewPin(memory_id=id, slot="tone", order=2, expected_version=1))
        assert (moved.pin.id, moved.pin.version, moved.pin.slot) == (first.pin.id, 2, "tone")
        assert [one.pin for one in await pins.pins(deps, org.owner, scope=ScopeName())] == [moved.pin]
        with pytest.raises(Conflict):
            await pins.unpin(deps, org.owner, first.pin.id, expected_version=1)

    async def test_unpinning_removes_the_pin_and_leaves_the_memory(self, deps: Deps, org: Company) -> None:
        id = await remember(deps, org.owner, "We ship weekly.")
        made = await pins.pin(deps, org.owner, NewPin(memory_id=id, slot="charter"))
        assert (await pins.unpin(deps, org.owner, made.pin.id)).memory.id == id
        assert await pins.pins(deps, org.owner, scope=ScopeName()) == []
        assert id in await records.by_ids(deps, org.owner, [id])
        with pytest.raises(NotFound):
            await pins.unpin(deps, org.owner, made.pin.id)

    async def test_scope_pins_follow_the_write_gate_and_own_pins_are_for_anybody(
        self, deps: Deps, org: Company
    ) -> None:
        engineer, deal = await at_deal(org)
        member = await org.member("member")
        wide = await remember(deps, org.owner, "For all.")
        assert await pins.pin(deps, engineer, NewPin(memory_id=wide, slot="s", scope=deal))
        for who, scope in ((engineer, ScopeName()), (member, ScopeName())):
            with pytest.raises(Forbidden):
                await pins.pin(deps, who, NewPin(memory_id=wide, slot="s", scope=scope))
        assert await pins.pin(deps, member, NewPin(memory_id=wide, slot="s", private=True))
        assert len(await pins.pins(deps, member, scope=ScopeName())) == 1
        assert await pins.pins(deps, org.owner, scope=ScopeName()) == []

    async def test_others_cannot_remove_what_they_may_not_write(self, deps: Deps, org: Company) -> None:
        member = await org.member("member")
        shared = await remember(deps, org.owner, "For all.")
        pin = (await pins.pin(deps, org.owner, NewPin(memory_id=shared, slot="s"))).pin
        with pytest.raises(Forbidden):
            await pins.unpin(deps, member, pin.id)
        own = (await pins.pin(deps, member, NewPin(memory_id=shared, slot="s", private=True))).pin
        with pytest.raises(NotFound):
            await pins.unpin(deps, org.owner, own.id)
        assert await pins.unpin(deps, member, own.id)

    async def test_a_pin_shows_nobody_what_they_may_not_read(self, deps: Deps, org: Company) -> None:
        engineer, deal = await at_deal(org)
        of_deal = await remember(deps, engineer, "Deal.", client_id=deal.client_id, deal_id=deal.deal_id)
        own = await remember(deps, org.owner, "Mine.", private=True)
        with pytest.raises(InvalidInput, match="not everybody here may read it"):
            await pins.pin(deps, org.owner, NewPin(memory_id=of_deal, slot="s"))
        with pytest.raises(InvalidInput, match="yours alone"):
            await pins.pin(deps, org.owner, NewPin(memory_id=own, slot="s"))
        assert await pins.pin(deps, engineer, NewPin(memory_id=of_deal, slot="s", scope=deal))
        assert await pins.pin(deps, org.owner, NewPin(memory_id=own, slot="s", private=True))

    async def test_foreign_and_unknown_memories_give_one_answer(self, deps: Deps, org: Company) -> None:
        foreign = await remember(deps, (await company(deps)).owner, "Theirs.")
        answers: list[str] = []
        for id in (foreign, RecordId(deps.new_id("mem"))):
            with pytest.raises(NotFound) as caught:
                await pins.pin(deps, org.owner, NewPin(memory_id=id, slot="s"))
            answers.append(str(caught.value).replace(id, "ID"))
        assert answers[0] == answers[1]
        for odd in ("", "x" * 40_000, "fact_01ARZ3NDEKTSV4RRFFQ69G5FAV", "'}) DETACH DELETE n //"):
            with pytest.raises(NotFound):
                await pins.pin(deps, org.owner, NewPin(memory_id=RecordId(odd), slot="s"))


class TestEvergreen:
    async def test_it_is_set_once_with_its_event_and_taken_back(self, deps: Deps, org: Company) -> None:
        id = await remember(deps, org.owner, "Keep me.")
        made = await pins.set_evergreen(deps, org.owner, id, evergreen=True)
        assert (made.signals.evergreen, made.version) == (True, 2)
        assert (await pins.set_evergreen(deps, org.owner, id, evergreen=True)).version == 2
        assert (await records.by_ids(deps, org.owner, [id]))[id].signals.evergreen
        assert not (await pins.set_evergreen(deps, org.owner, id, evergreen=False)).signals.evergreen

    async def test_it_follows_the_write_gate(self, deps: Deps, org: Company) -> None:
        member = await org.member("member")
        shared, own = await remember(deps, org.owner, "a"), await remember(deps, member, "b", private=True)
        expected: list[tuple[RecordId, type[GraphMemError]]] = [
            (shared, Forbidden),
            (RecordId(deps.new_id("mem")), NotFound),
        ]
        for id, error in expected:
            with pytest.raises(error):
                await pins.set_evergreen(deps, member, id, evergreen=True)
        assert (await pins.set_evergreen(deps, member, own, evergreen=True)).signals.evergreen
