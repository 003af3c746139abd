from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.gates import judge, lands
from graph_mem.core.lifecycle import DEFAULT_WRITE_GATE, GATE_SIGNALS, GateRule, LifecycleConfig
from graph_mem.core.model import (
    ClientId,
    DealId,
    OrganizationId,
    Place,
    Principal,
    Role,
    Scope,
    ScopeLevel,
    Standing,
    UserId,
)

ORG, ANA = OrganizationId("org_a"), UserId("usr_ana")
C1, C2, D1, D2, D3 = ClientId("cli_1"), ClientId("cli_2"), DealId("deal_1"), DealId("deal_2"), DealId("deal_3")
SCOPES = {
    "organization": Scope(),
    "own client": Scope(ScopeLevel.CLIENT, C1),
    "its deal": Scope(ScopeLevel.DEAL, C1, D1),
    "own deal": Scope(ScopeLevel.DEAL, C2, D2),
    "foreign client": Scope(ScopeLevel.CLIENT, C2),
    "foreign deal": Scope(ScopeLevel.DEAL, C2, D3),
}
ACTIVE = {
    Role.OWNER: set(SCOPES),
    Role.ADMIN: set(SCOPES),
    Role.SOLUTIONS_ENGINEER: {"its deal", "own deal"},
    Role.PROJECT_MANAGER: {"own client", "its deal"},
    Role.MEMBER: set[str](),
    Role.AGENT: set[str](),
}


def principal(role: Role) -> Principal:
    return Principal(ORG, ANA, role, client_ids=frozenset({C1}), deals={D1: C1, D2: C2})


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("scope", SCOPES)
def test_what_a_role_saves_for_others_lands_by_the_table(role: Role, scope: str) -> None:
    expected = Standing.CURRENT if scope in ACTIVE[role] else Standing.PROVISIONAL
    assert lands(principal(role), Place(ORG, SCOPES[scope]), DEFAULT_WRITE_GATE) is expected


@pytest.mark.parametrize("role", Role)
def test_everybody_decides_what_is_their_own(role: Role) -> None:
    assert lands(principal(role), Place(ORG, Scope(), ANA), DEFAULT_WRITE_GATE) is Standing.CURRENT
    assert lands(principal(role), Place(ORG, Scope(), UserId("usr_bob")), DEFAULT_WRITE_GATE) is Standing.PROVISIONAL
    assert lands(principal(role), Place(OrganizationId("org_b"), Scope()), DEFAULT_WRITE_GATE) is Standing.PROVISIONAL


def test_an_organization_may_open_its_gate() -> None:
    gate = {**DEFAULT_WRITE_GATE, Role.MEMBER: frozenset({ScopeLevel.ORGANIZATION, ScopeLevel.CLIENT})}
    landing = {name: lands(principal(Role.MEMBER), Place(ORG, scope), gate) for name, scope in SCOPES.items()}
    assert {name for name, standing in landing.items() if standing is Standing.CURRENT} == {
        "organization",
        "own client",
        "its deal",
    }
    assert lands(principal(Role.MEMBER), Place(ORG, Scope()), {}) is Standing.PROVISIONAL


SHARE = st.floats(0, 1)
SIGNALS = st.dictionaries(st.sampled_from(GATE_SIGNALS), st.none() | SHARE)
CONFIG = st.builds(
    LifecycleConfig,
    gate=st.sampled_from(GateRule),
    threshold=SHARE,
    k=st.integers(1, 5),
    bars=st.fixed_dictionaries(dict.fromkeys(GATE_SIGNALS, SHARE)),
    weights=st.fixed_dictionaries(dict.fromkeys(GATE_SIGNALS, st.floats(0.01, 100))),
)


@given(SIGNALS, CONFIG)
def test_the_score_lies_between_the_weakest_and_the_strongest_signal(
    signals: dict[str, float | None], config: LifecycleConfig
) -> None:
    present = [value for value in signals.values() if value is not None]
    verdict = judge(signals, config)
    assert min(present, default=0) - 1e-9 <= verdict.score <= max(present, default=0) + 1e-9
    assert set(verdict.absent) == {name for name in GATE_SIGNALS if signals.get(name) is None}
    assert present or not verdict.passed


@given(SIGNALS, CONFIG, st.sampled_from(GATE_SIGNALS), SHARE)
def test_a_stronger_signal_never_closes_the_gate(
    signals: dict[str, float | None], config: LifecycleConfig, name: str, value: float
) -> None:
    old = signals.get(name)
    if old is None or value < old:
        return
    before, after = judge(signals, config), judge({**signals, name: value}, config)
    assert after.score >= before.score - 1e-9
    assert set(before.over) <= set(after.over)
    if config.gate is GateRule.K_OF_N:
        assert after.passed >= before.passed


@given(SIGNALS, CONFIG, st.randoms(use_true_random=False))
def test_the_order_of_signals_does_not_matter(
    signals: dict[str, float | None], config: LifecycleConfig, random: st.DataObject
) -> None:
    items = list(signals.items())
    random.shuffle(items)
    assert judge(dict(items), config) == judge(signals, config)


@given(st.fixed_dictionaries(dict.fromkeys(GATE_SIGNALS, SHARE)), CONFIG, st.sampled_from(GATE_SIGNALS))
def test_an_absent_signal_is_as_if_it_had_no_weight(
    signals: dict[str, float], config: LifecycleConfig, absent: str
) -> None:
    without = judge({**signals, absent: None}, config)
    weightless = judge(signals, replace(config, weights={**config.weights, absent: 0.0}))
    assert without.score == pytest.approx(weightless.score)


def test_k_of_n_counts_signals_at_their_bars() -> None:
    config = LifecycleConfig(gate=GateRule.K_OF_N, k=2, bars=dict.fromkeys(GATE_SIGNALS, 0.5))
    assert judge({"recurrence": 0.5, "diversity": 0.9, "worth": 0.1}, config).passed
    assert not judge({"recurrence": 0.49, "diversity": 0.9, "worth": 0.1}, config).passed
    assert judge({"recurrence": 0.6, "diversity": 0.9, "worth": 0.1}, config).over == ("recurrence", "diversity")


def test_without_judged_signals_all_that_is_counted_must_reach_its_bar() -> None:
    config = LifecycleConfig(gate=GateRule.K_OF_N, k=3, bars=dict.fromkeys(GATE_SIGNALS, 0.5))
    assert judge({"recurrence": 0.6, "diversity": 0.6}, config).passed
    assert not judge({"recurrence": 0.6, "diversity": 0.4}, config).passed


def test_the_verdict_says_why_in_numbers() -> None:
    reason = judge({"recurrence": 0.8, "diversity": 0.4}, LifecycleConfig(threshold=0.5)).reason
    assert reason == (
        "Blended score 0.53, threshold 0.50: recurrence 0.80 (bar 0.35), diversity 0.40 (bar 0.40);"
        " not measured: centrality, confidence, worth."
    )


@pytest.mark.parametrize("signals", [{"mood": 0.5}, {"worth": 1.1}, {"worth": -0.1}, {"worth": float("nan")}])
def test_signals_that_make_no_sense_are_refused(signals: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        judge(signals, LifecycleConfig())
