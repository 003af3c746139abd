from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core import supersession as s
from graph_mem.core.model import (
    SUPERSEDES,
    ClientId,
    Fact,
    Interval,
    Memory,
    OrganizationId,
    Place,
    Processing,
    RecordId,
    Relation,
    RelationState,
    Scope,
    ScopeLevel,
    Source,
    SourceKind,
    Standing,
    UserId,
)
from graph_mem.errors import Conflict, InvalidInput

START = datetime(2026, 1, 1, tzinfo=UTC)
SHARED = Place(OrganizationId("org_a"), Scope())
ANA, BOB = (replace(SHARED, owner_id=UserId(user)) for user in ("usr_ana", "usr_bob"))


def memory(name: str, *, place: Place = SHARED, position: bool = False, day: int = 0, **changes: object) -> Memory:
    at = START + timedelta(days=day)
    made = Memory(
        id=RecordId(name),
        place=place,
        label="decision" if position else "note",
        position=position,
        text=name,
        source=Source(SourceKind.USER, UserId("usr_ana")),
        processing=Processing.READY,
        standing=Standing.CURRENT,
        version=1,
        importance=0.5,
        created_at=at,
        fresh_at=at,
        interval=Interval(at, at),
    )
    return replace(made, **changes)


def fact(name: str, *, day: int = 0, standing: Standing = Standing.CURRENT) -> Fact:
    at = START + timedelta(days=day)
    return Fact(
        RecordId(name), SHARED, "Ana", "salary", name, standing, 1, 1.0, at, Interval(at, at), author=UserId("usr_ana")
    )


def link(newer: str, older: str, *, retires: bool = True, active: bool = True, kind: str = SUPERSEDES) -> Relation:
    state = RelationState.ACTIVE if active else RelationState.RETRACTED
    return Relation(
        f"rel_{newer}{older}", kind, RecordId(newer), RecordId(older), state, UserId("u"), START, retires=retires
    )


@pytest.mark.parametrize(
    ("newer_position", "older_position", "retires"),
    [(True, True, True), (True, False, True), (False, False, True), (False, True, False)],
)
def test_only_a_position_replaces_a_position(newer_position: bool, older_position: bool, retires: bool) -> None:
    newer, older = memory("b", position=newer_position), memory("a", position=older_position)
    assert s.check_link(newer, older, kind=SUPERSEDES) is retires


def test_a_fact_replaces_a_fact_unless_it_is_provisional() -> None:
    assert s.check_link(fact("b"), fact("a"), kind=SUPERSEDES)
    assert not s.check_link(fact("b", standing=Standing.PROVISIONAL), fact("a"), kind=SUPERSEDES)


def test_the_organizations_own_relations_retire_nothing() -> None:
    assert not s.check_link(memory("b", position=True), memory("a"), kind="supports")
    assert not s.check_link(memory("b"), fact("a"), kind="supports")


@pytest.mark.parametrize("kind", [SUPERSEDES, "supports"])
@pytest.mark.parametrize(("newer", "older"), [(ANA, SHARED), (SHARED, ANA), (ANA, BOB)])
def test_no_link_crosses_partitions(kind: str, newer: Place, older: Place) -> None:
    with pytest.raises(InvalidInput, match="one partition"):
        s.check_link(memory("b", place=newer), memory("a", place=older), kind=kind)


def test_scopes_of_one_partition_may_be_linked() -> None:
    client = replace(SHARED, scope=Scope(ScopeLevel.CLIENT, ClientId("cli_1")))
    assert s.check_link(memory("b", place=client), memory("a"), kind=SUPERSEDES)
    assert s.check_link(memory("b", place=ANA), memory("a", place=ANA), kind=SUPERSEDES)


def test_self_links_cycles_and_mixed_kinds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="linked to itself"):
        s.check_link(memory("a"), memory("a"), kind="supports")
    with pytest.raises(InvalidInput, match="no cycles"):
        s.check_link(memory("a"), memory("c"), kind=SUPERSEDES, reached={RecordId("b"), RecordId("a")})
    with pytest.raises(InvalidInput, match="supersedes its like"):
        s.check_link(memory("a"), fact("b"), kind=SUPERSEDES)
    assert s.check_link(memory("a"), memory("c"), kind=SUPERSEDES, reached={RecordId("b")})


def test_a_corrected_link_makes_the_older_current_unless_another_retires_it() -> None:
    old = memory("a", standing=Standing.SUPERSEDED)
    for others, standing in (
        ([], Standing.CURRENT),
        ([link("c", "a", active=False)], Standing.CURRENT),
        ([link("c", "a", retires=False)], Standing.CURRENT),
        ([link("a", "c")], Standing.CURRENT),
        ([link("c", "a", kind="supports")], Standing.CURRENT),
        ([link("c", "a")], Standing.SUPERSEDED),
    ):
        assert s.standing_after_correction(old, others=others) is standing


@pytest.mark.parametrize("standing", sorted(set(Standing) - {Standing.SUPERSEDED}))
def test_a_correction_leaves_every_other_standing(standing: Standing) -> None:
    assert s.standing_after_correction(memory("a", standing=standing), others=[]) is standing


def test_a_correction_never_makes_a_second_active_fact() -> None:
    with pytest.raises(Conflict, match="retract that one first"):
        s.standing_after_correction(fact("a", standing=Standing.SUPERSEDED), others=[], in_slot=fact("b"))
    assert s.standing_after_correction(fact("a", standing=Standing.SUPERSEDED), others=[]) is Standing.CURRENT


PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda p: p[0] != p[1]), max_size=20)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Memory], list[Relation]]:
    """Records of any age with links that close no cycle: newer ends have the greater number."""
    days = draw(st.lists(st.integers(0, 3), min_size=9, max_size=9))
    pairs = {(max(pair), min(pair)) for pair in draw(PAIRS)}
    links = [link(str(b), str(a), retires=draw(st.booleans()), active=draw(st.booleans())) for b, a in sorted(pairs)]
    return [memory(str(n), day=day) for n, day in enumerate(days)], links


@given(graphs(), st.randoms(use_true_random=False))
def test_a_chain_is_the_same_for_any_order_of_input(graph: tuple[list[Memory], list[Relation]], random: Random) -> None:
    records, links = graph
    expected = s.chain(records, links)
    random.shuffle(records)
    random.shuffle(links)
    assert s.chain(records, links) == expected


@given(graphs())
def test_every_record_stands_after_all_it_replaced(graph: tuple[list[Memory], list[Relation]]) -> None:
    records, links = graph
    found = s.chain(records, links)
    place = {record.id: n for n, record in enumerate(found.records)}
    assert place.keys() == {record.id for record in records}
    assert all(place[one.from_id] > place[one.to_id] for one in links if one.state is RelationState.ACTIVE)


@given(graphs())
def test_the_heads_are_what_nothing_retires(graph: tuple[list[Memory], list[Relation]]) -> None:
    records, links = graph
    heads = {head.id for head in s.chain(records, links).heads}
    assert heads == {record.id for record in records if not s.retired(record.id, links)}
    assert heads


def test_a_linear_chain_of_a_thousand_is_in_order() -> None:
    found = s.chain([fact(f"f{n:04}") for n in range(1000)], [link(f"f{n + 1:04}", f"f{n:04}") for n in range(999)])
    assert [record.id for record in found.records] == [f"f{n:04}" for n in range(1000)]
    assert [head.id for head in found.heads] == ["f0999"]
    assert [(one.from_id, one.to_id) for one in found.links][:1] == [("f0001", "f0000")]


def test_links_to_records_one_may_not_see_are_left_out() -> None:
    found = s.chain([memory("a")], [link("b", "a"), link("a", "z")])
    assert (found.links, [head.id for head in found.heads]) == ((), ["a"])


def test_a_cycle_in_damaged_data_still_lists_every_record() -> None:
    found = s.chain([memory("a"), memory("b"), memory("c")], [link("a", "b"), link("b", "a"), link("c", "a")])
    assert {record.id for record in found.records} == {"a", "b", "c"}
