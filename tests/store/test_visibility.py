"""Both layers say the same of every place, and the second one says it aloud."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.model import (
    ClientId,
    DealId,
    OrganizationId,
    Place,
    Principal,
    Role,
    Scope,
    ScopeLevel,
    UserId,
    place_of,
)
from graph_mem.store.db import Row
from graph_mem.store.visibility import (
    SecurityEvents,
    access,
    admit,
    admitted,
    counted,
    place_properties,
    security_events,
    visible,
)

ORGS = [OrganizationId("org_a"), OrganizationId("org_a-b"), OrganizationId("org_a b"), OrganizationId("AND")]
USERS = [UserId("usr_1"), UserId("x.y+z@example.com"), UserId("用户1"), UserId("_")]
CLIENTS = [ClientId("cli_1"), ClientId("cli_2")]
DEALS = {DealId("deal_1"): CLIENTS[0], DealId("deal_2"): CLIENTS[0], DealId("deal_3"): CLIENTS[1]}

scopes = st.one_of(
    st.just(Scope()),
    st.sampled_from(CLIENTS).map(lambda client: Scope(ScopeLevel.CLIENT, client)),
    st.sampled_from(sorted(DEALS.items())).map(lambda pair: Scope(ScopeLevel.DEAL, pair[1], pair[0])),
)
places = st.builds(Place, st.sampled_from(ORGS), scopes, st.none() | st.sampled_from(USERS))


@st.composite
def principals(draw: st.DrawFn) -> Principal:
    clients = draw(st.frozensets(st.sampled_from(CLIENTS)))
    deals = draw(st.frozensets(st.sampled_from(sorted(DEALS))))
    reached = {deal: client for deal, client in DEALS.items() if deal in deals or client in clients}
    role = draw(st.sampled_from(list(Role)))
    return Principal(draw(st.sampled_from(ORGS)), draw(st.sampled_from(USERS)), role, clients, reached)


def passes(principal: Principal, place: Place) -> bool:
    """What the predicate of layer one says, in Python."""
    given, node = access(principal), place_properties(place)
    return node["partition"] in given["partitions"] and (given["scopes"] is None or node["scope"] in given["scopes"])


@given(principals(), places)
def test_both_layers_say_the_same(principal: Principal, place: Place) -> None:
    assert passes(principal, place) == principal.reads(place)


@given(principals(), places)
def test_nobody_reads_another_organization_or_another_users_partition(principal: Principal, place: Place) -> None:
    if place.org_id != principal.org_id or place.owner_id not in (None, principal.user_id):
        assert not principal.reads(place)
        assert not passes(principal, place)


@given(places)
def test_a_place_is_read_back_from_what_its_nodes_carry(place: Place) -> None:
    assert place_of(place_properties(place)) == place


@given(places, places)
def test_different_places_have_different_tokens(one: Place, other: Place) -> None:
    same = (one.partition_token, one.scope_token) == (other.partition_token, other.scope_token)
    assert same == (one == other)


def test_the_predicate_names_its_node_alone() -> None:
    assert visible("m") == "(m.partition IN $partitions AND ($scopes IS NULL OR m.scope IN $scopes))"


@pytest.fixture
def row() -> Row:
    """A row of somebody's private partition."""
    return {"id": "mem_1", **place_properties(Place(ORGS[0], Scope(), USERS[0]))}


def test_a_row_that_may_not_be_seen_is_dropped_counted_and_logged(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    before = security_events.count
    with caplog.at_level(logging.CRITICAL):
        assert admitted(Principal(ORGS[0], USERS[1], Role.OWNER), [row], lambda node: node["id"]) == []
    assert security_events.count == before + 1
    (record,) = caplog.records
    assert record.getMessage() == "security event: a row reached a principal who may not see it"
    assert (record.__dict__["user"], record.__dict__["what"]) == (USERS[1], "mem_1")


def test_a_row_of_ones_own_is_no_event(row: Row) -> None:
    before = security_events.count
    assert admitted(Principal(ORGS[0], USERS[0], Role.MEMBER), [row], lambda node: node["id"]) == ["mem_1"]
    assert security_events.count == before


def test_a_count_leaves_out_what_may_not_be_seen(row: Row) -> None:
    shared = place_properties(Place(ORGS[0], Scope()))
    groups: list[Row] = [{**row, "total": 5}, {**shared, "total": 2}]
    before = security_events.count
    assert counted(Principal(ORGS[0], USERS[1], Role.OWNER), groups, "a count") == 2
    assert security_events.count == before + 1


def test_events_are_counted_for_each_process() -> None:
    events = SecurityEvents()
    events.record(Principal(ORGS[0], USERS[1], Role.MEMBER), "mem_1")
    assert events.count == 1


def test_admission_does_not_trust_the_tokens_of_a_row(row: Row) -> None:
    """The second layer reads the plain ids: a token that was set wrongly opens nothing."""
    intruder = Principal(ORGS[1], USERS[1], Role.OWNER)
    forged = {**row, "partition": Place(ORGS[1], Scope()).partition_token, "scope": Scope().token(ORGS[1])}
    assert not admit(intruder, place_of(forged), "mem_1")
