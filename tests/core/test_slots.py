from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core import slots as s
from graph_mem.core.model import (
    SUPERSEDES,
    Fact,
    Interval,
    OrganizationId,
    Place,
    RecordId,
    Relation,
    RelationState,
    Scope,
    Standing,
    UserId,
)
from graph_mem.core.supersession import chain
from graph_mem.errors import InvalidInput

START = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = Place(OrganizationId("org_a"), Scope())


def fact(name: str, *, day: int = 0, standing: Standing = Standing.CURRENT) -> Fact:
    at = START + timedelta(days=day)
    return Fact(
        RecordId(name), PLACE, "Ana", "salary", name, standing, 1, 1.0, at, Interval(at, at), author=UserId("usr_ana")
    )


def link(one: s.Link) -> Relation:
    return Relation(
        f"rel_{one.newer}{one.older}",
        SUPERSEDES,
        one.newer,
        one.older,
        RelationState.ACTIVE,
        UserId("u"),
        START,
        retires=one.retires,
    )


def claim(name: str, *, day: int = 0, to_day: int | None = None, **changes: object) -> s.Claim:
    valid_from = START + timedelta(days=day)
    made = s.Claim(RecordId(name), name, valid_from, Standing.CURRENT, by_person=True)
    if to_day is not None:
        made = replace(made, valid_to=START + timedelta(days=to_day))
    return replace(made, **changes)


def lasting(name: str, day: int, to_day: int) -> Fact:
    made = fact(name, day=day, standing=Standing.SUPERSEDED)
    return replace(made, interval=replace(made.interval, valid_to=START + timedelta(days=to_day)))


def test_the_first_claim_is_created() -> None:
    assert s.decide(claim("a"), s.SlotState()) == s.FactPlan(s.FactOutcome.CREATED, Standing.CURRENT)


def test_another_sentence_replaces_the_active_one_and_ends_it() -> None:
    plan = s.decide(claim("b", day=5), s.SlotState(active=fact("a")))
    assert (plan.outcome, plan.standing, plan.revoked) == (s.FactOutcome.SUPERSEDED, Standing.CURRENT, "a")
    assert plan.links == (s.Link(RecordId("b"), RecordId("a"), retires=True),)
    assert plan.ends == (("a", START + timedelta(days=5)),)


def test_a_fact_that_had_ended_by_itself_keeps_its_end() -> None:
    plan = s.decide(claim("b", day=5), s.SlotState(active=lasting("a", 0, 3)))
    assert dict(plan.ends).get(RecordId("a"), START + timedelta(days=3)) == START + timedelta(days=3)


def test_the_same_sentence_only_adds_a_source() -> None:
    held = replace(fact("a"), statement="Ana earns 110k EUR.")
    for standing in (Standing.CURRENT, Standing.PROVISIONAL):
        again = claim("b", day=9, statement="  ana EARNS  110k EUR. ", standing=standing)
        plan = s.decide(again, s.SlotState(active=held))
        assert plan == s.FactPlan(s.FactOutcome.DEDUPLICATED, existing=RecordId("a"))


def test_a_provisional_claim_touches_nothing() -> None:
    plan = s.decide(claim("b", standing=Standing.PROVISIONAL), s.SlotState(active=fact("a")))
    assert plan == s.FactPlan(s.FactOutcome.PROVISIONAL, Standing.PROVISIONAL)
    waiting = s.SlotState(active=fact("a"), pending=replace(fact("p", standing=Standing.PROVISIONAL), statement="b"))
    plan = s.decide(claim("b", standing=Standing.PROVISIONAL), waiting)
    assert plan == s.FactPlan(s.FactOutcome.DEDUPLICATED, existing=RecordId("p"))


def test_a_rejected_value_comes_back_only_by_a_person() -> None:
    state = s.SlotState(active=fact("a"), rejected=True)
    assert s.decide(claim("b", by_person=False), state) == s.FactPlan(s.FactOutcome.REJECTED_BEFORE)
    plan = s.decide(claim("b"), state)
    assert (plan.outcome, plan.lifts_rejection) == (s.FactOutcome.SUPERSEDED, True)
    assert not s.decide(claim("b"), s.SlotState(active=fact("a"))).lifts_rejection
    unsure = s.decide(claim("b", standing=Standing.PROVISIONAL), state)
    assert (unsure.outcome, unsure.lifts_rejection) == (s.FactOutcome.PROVISIONAL, False)


def test_in_a_set_different_sentences_live_side_by_side() -> None:
    assert s.decide(claim("c"), s.SlotState(many=True)) == s.FactPlan(s.FactOutcome.CREATED, Standing.CURRENT)
    again = s.decide(claim("x", statement="b"), s.SlotState(active=fact("b"), many=True))
    assert again == s.FactPlan(s.FactOutcome.DEDUPLICATED, existing=RecordId("b"))


def test_a_relation_that_is_a_set_no_more_is_left_with_one_fact() -> None:
    plan = s.decide(claim("c", day=1), s.SlotState(active=fact("b"), others=[fact("a")]))
    assert {(one.older, one.retires) for one in plan.links} == {("a", True), ("b", True)}


def test_a_late_fact_is_history_in_its_place_and_retires_nothing() -> None:
    state = s.SlotState(active=fact("d", day=30), past=[lasting("c", 20, 30), lasting("a", 0, 20)])
    plan = s.decide(claim("b", day=10, to_day=15), state)
    assert (plan.outcome, plan.standing, plan.revoked) == (s.FactOutcome.CREATED, Standing.SUPERSEDED, None)
    assert plan.links == (
        s.Link(RecordId("c"), RecordId("b"), retires=True),
        s.Link(RecordId("b"), RecordId("a"), retires=False),
    )
    assert dict(plan.ends) == {"a": START + timedelta(days=10), "b": START + timedelta(days=15)}


def test_late_history_saved_twice_is_one_fact() -> None:
    state = s.SlotState(active=fact("d", day=30), past=[lasting("b", 10, 15)])
    assert s.decide(claim("x", statement="b", day=10, to_day=15), state).existing == "b"
    assert s.decide(claim("x", statement="b", day=1, to_day=5), state).outcome is s.FactOutcome.CREATED


def test_a_claim_that_overlaps_the_active_fact_replaces_it() -> None:
    plan = s.decide(claim("b", day=10, to_day=31), s.SlotState(active=fact("d", day=30)))
    assert plan.revoked == "d"


def test_a_claim_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not after validFrom"):
        claim("a", day=5, to_day=5)


CLAIMS = st.lists(
    st.tuples(
        st.sampled_from("abcde"), st.integers(0, 20), st.none() | st.integers(1, 15), st.booleans(), st.booleans()
    ),
    max_size=25,
)


@given(CLAIMS)
def test_whatever_is_saved_a_slot_has_one_active_fact_and_one_truth_a_day(
    saved: list[tuple[str, int, int | None, bool, bool]],
) -> None:
    facts: dict[str, Fact] = {}
    links: list[Relation] = []
    rejected = "e"
    for n, (sentence, day, lasts, by_person, provisional) in enumerate(saved):
        new = claim(
            f"f{n:02}",
            statement=sentence,
            day=day,
            to_day=None if lasts is None else day + lasts,
            by_person=by_person,
            standing=Standing.PROVISIONAL if provisional else Standing.CURRENT,
        )
        by_standing = {one: [f for f in facts.values() if f.standing is one] for one in Standing}
        state = s.SlotState(
            active=next(iter(by_standing[Standing.CURRENT]), None),
            past=by_standing[Standing.SUPERSEDED],
            pending=next((f for f in by_standing[Standing.PROVISIONAL] if f.statement == sentence), None),
            rejected=sentence == rejected,
        )
        plan = s.decide(new, state)
        again = s.decide(new, replace(state, past=state.past[::-1]))
        assert replace(plan, ends=()) == replace(again, ends=())
        assert dict(plan.ends) == dict(again.ends)
        assert (plan.standing is None) == (plan.outcome in (s.FactOutcome.DEDUPLICATED, s.FactOutcome.REJECTED_BEFORE))
        rejected = "" if plan.lifts_rejection else rejected
        if plan.standing is not None:
            facts[new.id] = replace(
                fact(new.id, standing=plan.standing),
                statement=sentence,
                created_at=START + timedelta(days=n),
                interval=Interval(new.valid_from, START, valid_to=new.valid_to),
            )
        if plan.revoked is not None:
            facts[plan.revoked] = replace(facts[plan.revoked], standing=Standing.SUPERSEDED)
        for id, end in plan.ends:
            facts[id] = replace(facts[id], interval=replace(facts[id].interval, valid_to=end))
        links += [link(one) for one in plan.links]

        told = [f for f in facts.values() if f.standing in (Standing.CURRENT, Standing.SUPERSEDED)]
        active = [f.id for f in told if f.standing is Standing.CURRENT]
        assert len(active) <= 1
        for at in (START + timedelta(days=day) for day in range(40)):
            assert sum(f.interval.held(at) for f in told) <= 1
        ordered = chain(told, links)
        assert [head.id for head in ordered.heads] == active
        place = {record.id: k for k, record in enumerate(ordered.records)}
        assert all(place[one.from_id] > place[one.to_id] for one in ordered.links)
