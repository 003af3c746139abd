from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.canon import (
    Absence,
    Pin,
    PinnedMemory,
    Policy,
    Variable,
    arranged,
    arranged_pins,
    erased,
    in_force,
    resolved,
)
from graph_mem.core.model import ClientId, DealId, OrganizationId, Place, RecordId, Scope, ScopeLevel, UserId

ORG, ANA = OrganizationId("org_a"), UserId("usr_ana")
CLIENT, DEAL = ClientId("cli_1"), DealId("deal_1")
SCOPES = (Scope(), Scope(ScopeLevel.CLIENT, CLIENT), Scope(ScopeLevel.DEAL, CLIENT, DEAL))
PLACES = tuple(Place(ORG, scope, owner) for owner in (None, ANA) for scope in SCOPES)
"""From the weakest to the strongest."""


def policy(name: str, *, priority: int = 0, place: Place = PLACES[0], active: bool = True) -> Policy:
    return Policy(f"pol_{name}", place, name, f"text of {name}", priority, active, 1)


def variable(name: str, value: str | None, place: Place = PLACES[0]) -> Variable:
    return Variable(f"var_{name}{PLACES.index(place)}", place, name, value, 1)


def pinned(
    memory: str, *, slot: str = "canon", order: int = 0, place: Place = PLACES[0], pin: str = ""
) -> PinnedMemory:
    made = Pin(pin or f"pin_{memory}", place, RecordId(memory), slot, order, 1)
    return PinnedMemory(made, erased(made))


def test_policies_come_by_priority_then_width_then_name() -> None:
    given = [
        policy("d", place=PLACES[2]),
        policy("c"),
        policy("b"),
        policy("a", priority=5, place=PLACES[1]),
        policy("off", priority=9, active=False),
    ]
    assert [one.name for one in in_force(given)] == ["a", "b", "c", "d"]


@given(st.dictionaries(st.sampled_from(PLACES), st.none() | st.text(max_size=3), min_size=1), st.randoms())
def test_the_strongest_place_that_has_a_value_decides_a_variable(
    values: dict[Place, str | None], random: Random
) -> None:
    variables = [variable("rate", value, place) for place, value in values.items()]
    random.shuffle(variables)
    set_at = [place for place in PLACES if values.get(place) is not None]
    assert [(one.name, one.place) for one in resolved(variables)] == ([("rate", set_at[-1])] if set_at else [])


def test_variables_are_listed_by_name() -> None:
    given = [variable("b", "1"), variable("a", "2"), variable("B", "3"), variable("ä", "4")]
    assert [one.name for one in resolved(given)] == ["B", "a", "b", "ä"]


def test_within_a_slot_a_users_pin_comes_before_a_deals_a_clients_and_the_organizations() -> None:
    given = [pinned(f"mem_{n}", place=place) for n, place in enumerate(PLACES)]
    assert [one.memory.id for one in arranged(given)[0]] == [f"mem_{n}" for n in (5, 4, 3, 2, 1, 0)]


def test_a_slot_stands_where_its_lowest_order_puts_it() -> None:
    given = [
        pinned("mem_a", slot="style", order=2),
        pinned("mem_b", slot="style", order=9),
        pinned("mem_c", slot="rules", order=3),
        pinned("mem_d", slot="rules", order=1),
        pinned("mem_e", slot="about", order=2),
    ]
    assert [one.memory.id for one in arranged(given)[0]] == ["mem_d", "mem_c", "mem_e", "mem_a", "mem_b"]


def test_a_memory_pinned_twice_is_shown_once_at_its_strongest_pin() -> None:
    given = [pinned("mem_a", pin="pin_shared"), pinned("mem_a", place=PLACES[3], pin="pin_own")]
    shown, absent = arranged(given)
    assert [one.pin.id for one in shown] == ["pin_own"]
    assert [(one.pin.id, one.reason) for one in absent] == [("pin_shared", Absence.DUPLICATE)]


PINS = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from("ab"), st.integers(-1, 2), st.sampled_from(PLACES)),
    max_size=10,
    unique=True,
)


@given(PINS, st.randoms())
def test_pins_stand_the_same_for_any_order_of_input(given: list[tuple[int, str, int, Place]], random: Random) -> None:
    pins = [
        pinned(f"mem_{memory}", slot=slot, order=order, place=place, pin=f"pin_{n}")
        for n, (memory, slot, order, place) in enumerate(given)
    ]
    expected = arranged(pins)
    random.shuffle(pins)
    shown, absent = arranged(pins)
    assert shown == expected[0]
    assert {one.pin.id for one in absent} == {one.pin.id for one in expected[1]}
    assert len({one.memory.id for one in shown}) == len(shown)
    assert len(shown) + len(absent) == len(pins)


def test_the_list_of_pins_has_the_order_of_the_context() -> None:
    given = [pinned("mem_a", slot="z"), pinned("mem_b", slot="a"), pinned("mem_c", slot="a", place=PLACES[4])]
    assert arranged_pins([one.pin for one in given]) == [one.pin for one in arranged(given)[0]]


def test_nothing_about_when_a_pin_was_made_moves_it() -> None:
    given = [pinned("mem_b", pin="pin_1"), pinned("mem_a", pin="pin_2")]
    renamed = [replace(one, pin=replace(one.pin, id=f"pin_{9 - n}")) for n, one in enumerate(given)]
    assert [one.memory.id for one in arranged(given)[0]] == [one.memory.id for one in arranged(renamed)[0]]
