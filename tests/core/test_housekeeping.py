"""The pure half of housekeeping: configuration, states, keys, candidates, names, the gate's fit."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.candidates import Seen, demotion, promotion, twins, weak
from graph_mem.core.gate_sweep import Labelled, best, outcomes
from graph_mem.core.lifecycle import GATE_SIGNALS, GateRule, LifecycleConfig
from graph_mem.core.model import (
    ORGANIZATION,
    Entity,
    EntityId,
    Interval,
    Memory,
    OrganizationId,
    Place,
    Processing,
    RecordId,
    Role,
    Scope,
    ScopeLevel,
    Signals,
    Source,
    SourceKind,
    Standing,
    UserId,
)
from graph_mem.core.proposals import (
    Decision,
    Effect,
    Proposal,
    ProposalKind,
    ProposalState,
    low_risk,
    proposal_key,
    shape_of,
    step,
)
from graph_mem.core.retrieval import DEFAULT_STRENGTH_WEIGHTS
from graph_mem.core.vocabulary import DEFAULT
from graph_mem.errors import Conflict, InvalidInput

NOW = datetime(2026, 11, 30, tzinfo=UTC)
PLACE = Place(OrganizationId("org_1"), ORGANIZATION)
CONFIG = LifecycleConfig()


def proposal(state: ProposalState, *, undone: bool = False) -> Proposal:
    return Proposal(
        id="prop_1", key="k", place=PLACE, kind=ProposalKind.ARCHIVE, shape="note", state=state,
        subject_ids=("mem_1",), evidence_ids=(), signals={}, score=0.1, gate="g", reason="r", proposed_at=NOW,
        proposed_by=UserId("usr_1"), undone=undone,
    )  # fmt: skip


def memory(*, age_days: float = 400, label: str = "note", position: bool = False, **signals: Any) -> Memory:
    born = NOW - timedelta(days=age_days)
    return Memory(
        id=RecordId("mem_1"), place=PLACE, label=label, position=position, text="x",
        source=Source(SourceKind.USER, UserId("usr_1")), processing=Processing.READY, standing=Standing.CURRENT,
        version=1, importance=0.5, created_at=born, fresh_at=born, interval=Interval(born, born),
        signals=Signals(last_validated_at=born, **signals),
    )  # fmt: skip


def weakness(seen: Seen) -> Any:
    return weak(seen, vocabulary=DEFAULT, config=CONFIG, weights=DEFAULT_STRENGTH_WEIGHTS, now=NOW)


@given(st.lists(st.sampled_from(list(Decision)), max_size=6), st.sampled_from(list(ProposalState)))
def test_apply_and_undo_take_turns_whatever_is_decided(decisions: list[Decision], start: ProposalState) -> None:
    one = proposal(start)
    applied = start in (ProposalState.KEPT, ProposalState.AUTO_KEPT)
    for decision in decisions:
        try:
            following = step(one, decision)
        except Conflict:
            continue
        assert following.effect is not (Effect.APPLY if applied else Effect.UNDO)
        applied = {Effect.APPLY: True, Effect.UNDO: False}.get(following.effect, applied)
        one = replace(one, state=following.state, undone=following.undone)
        assert applied == (one.state in (ProposalState.KEPT, ProposalState.AUTO_KEPT))


def test_what_was_kept_unasked_goes_back_to_people_and_counts_as_reverted() -> None:
    undone = step(proposal(ProposalState.AUTO_KEPT), Decision.REVERT)
    assert (undone.state, undone.effect, undone.undone) == (ProposalState.PENDING, Effect.UNDO, True)
    assert step(proposal(ProposalState.PENDING, undone=True), Decision.KEEP).undone


@given(st.lists(st.text(max_size=5), min_size=1, max_size=3, unique=True), st.text(max_size=5))
def test_a_proposal_is_the_same_in_any_order_and_another_on_another_basis(ids: list[str], basis: str) -> None:
    key = proposal_key(PLACE, ProposalKind.ARCHIVE, ids, basis)
    assert key == proposal_key(PLACE, ProposalKind.ARCHIVE, ids[::-1], basis)
    assert key != proposal_key(PLACE, ProposalKind.ARCHIVE, ids, basis + "x")
    assert key != proposal_key(PLACE, ProposalKind.DEMOTE, ids, basis)
    assert key != proposal_key(Place(PLACE.org_id, ORGANIZATION, UserId("u")), ProposalKind.ARCHIVE, ids, basis)


def test_only_unmarked_findings_are_low_risk() -> None:
    assert low_risk(ProposalKind.ARCHIVE, shape_of("note"))
    assert not low_risk(ProposalKind.ARCHIVE, shape_of("decision", "position"))
    assert not low_risk(ProposalKind.MERGE_ENTITIES, shape_of("person"))
    assert not low_risk(ProposalKind.PROMOTE_FACT, shape_of("fact"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 1.1},
        {"threshold": True},
        {"k": 0},
        {"k": 6},
        {"bars": {"fame": 0.1}},
        {"bars": {"worth": "much"}},
        {"weights": dict.fromkeys(GATE_SIGNALS, 0)},
        {"weights": [1]},
        {"rehearsal_days": []},
        {"rehearsal_days": [3, 1]},
        {"rehearsal_days": [0, 1]},
        {"write_gate": {"KING": []}},
        {"write_gate": {"MEMBER": ["MOON"]}},
        {"write_gate": {"OWNER": []}},
        {"trust_minimum": 0},
        {"colour": 1},
    ],
    ids=str,
)
def test_rules_that_cannot_be_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        CONFIG.changed(wrong)


def test_a_change_of_rules_survives_being_stored() -> None:
    changed = CONFIG.changed({"write_gate": {"MEMBER": ["DEAL"]}, "bars": {"worth": 0.1}, "archive": "AUTO", "k": 2})
    assert changed.write_gate[Role.MEMBER] == {ScopeLevel.DEAL}
    assert changed.write_gate[Role.OWNER] == set(ScopeLevel)
    assert CONFIG.changed(changed.overrides(CONFIG)) == changed


def test_what_comes_up_for_many_kinds_of_question_is_promoted_and_what_is_committed_to_is_not() -> None:
    used: dict[str, Any] = {"retrievals": 15, "query_kinds": tuple("abcdefg")}
    found = promotion(Seen(memory(**used)), vocabulary=DEFAULT, config=CONFIG)
    assert found is not None
    assert found.change == {"from": "note", "to": "insight", "importance": 0.6}
    assert found.reason == "Came up 15 times, for 7 kinds of question."
    for other in (memory(label="decision", position=True, **used), memory(label="playbook", **used), memory()):
        assert promotion(Seen(other), vocabulary=DEFAULT, config=CONFIG) is None
    gone = replace(CONFIG, promote_to="nothing")
    assert promotion(Seen(memory(**used)), vocabulary=DEFAULT, config=gone) is None


def test_a_hub_is_demoted_and_neither_promoted_nor_spared_by_being_frequent() -> None:
    hub = Seen(memory(retrievals=60, query_kinds=("one",)))
    found = demotion(hub, vocabulary=DEFAULT, now=NOW)
    assert found is not None
    assert found.score < 0.3
    assert promotion(hub, vocabulary=DEFAULT, config=CONFIG) is None
    assert demotion(replace(hub, pinned=True), vocabulary=DEFAULT, now=NOW) is None
    assert demotion(Seen(memory(age_days=3, retrievals=60)), vocabulary=DEFAULT, now=NOW) is None


@given(st.floats(0, 2000), st.integers(0, 100), st.sampled_from(["note", "playbook", "framework"]))
def test_nothing_protected_young_or_pinned_is_ever_weak(age_days: float, retrievals: int, label: str) -> None:
    seen = Seen(memory(age_days=age_days, label=label, retrievals=retrievals))
    assert weakness(replace(seen, pinned=True)) is None
    if label != "note" or age_days < 30:
        assert weakness(seen) is None


def test_what_nobody_used_for_a_year_is_weak_until_somebody_validates_it() -> None:
    assert weakness(Seen(memory())) is not None
    fresh = replace(memory(), signals=Signals(last_validated_at=NOW))
    assert weakness(Seen(fresh)) is None


def entity(
    name: str, number: int, *, label: str = "company", aliases: tuple[str, ...] = (), place: Place = PLACE
) -> Entity:
    return Entity(EntityId(f"ent_{number}"), place, name, label, aliases)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Acme Inc.", "Acme"),
        ("Ana Garcia", "ana  garcia"),
        ("А. Garcia", "Ana Garcia"),
        ("J. Smith", "John Smith"),
        ("Northwind", "Nortwind"),
        ("Data Base", "Database"),
        ("RX-7741-Q", "rx 7741 q"),
        ("RX7741Q", "RX-7741-Q"),
    ],
)
def test_names_that_are_nearly_one_are_twins(one: str, other: str) -> None:
    (found,) = twins([entity(one, 1), entity(other, 2)])
    assert set(found.subject_ids) == {"ent_1", "ent_2"}
    assert 0.75 <= found.score <= 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mercury", "Venus"),
        ("Ana Garcia", "Ana Lopez"),
        ("Phase 1", "Phase 2"),
        ("Li", "Lu"),
        ("RX-7741", "RX-7742"),
        ("RX-7741-Q", "RX-7741-R"),
        ("RX-7741-Q", "RX-7741"),
        ("R 7741 Queen", "RX 7741 Queen"),
        ("77-41", "7-741"),
    ],
)
def test_names_that_only_resemble_each_other_are_not(one: str, other: str) -> None:
    assert list(twins([entity(one, 1), entity(other, 2)])) == []


def test_no_twins_across_labels_or_places_and_an_alias_counts() -> None:
    client = Place(PLACE.org_id, Scope(ScopeLevel.CLIENT, "cli_1"))  # type: ignore[arg-type] # an id
    assert list(twins([entity("Acme", 1), entity("Acme", 2, label="product"), entity("Acme", 3, place=client)])) == []
    (found,) = twins([entity("International Business Machines", 1, aliases=("IBM Corp",)), entity("IBM", 2)])
    assert found.reason == "The name of one is an alias of the other."


def test_comparing_names_stays_linear_where_very_many_share_a_part() -> None:
    many = [entity(f"Company {chr(97 + i % 26) * (3 + i // 26)}", i) for i in range(3000)]
    assert isinstance(list(twins(many)), list)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_the_fitted_gate_is_no_worse_than_any_other(rows: list[tuple[float, bool]]) -> None:
    labelled = [Labelled({"recurrence": value, "diversity": value}, keep) for value, keep in rows]
    found = outcomes(labelled, CONFIG)
    for rule in GateRule:
        top = best(found, rule)
        assert top.f1 == max(one.f1 for one in found if one.config.gate is rule)
        assert all(0 <= value <= 1 for value in (top.precision, top.recall, top.f1))
