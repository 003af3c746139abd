"""Strength: in (0, 1], falling with time, never under its floor, growing with every signal."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.fusion import Fused
from graph_mem.core.model import RecordId, Signals
from graph_mem.core.ranking import Candidate, rank
from graph_mem.core.retrieval import DEFAULT_STRENGTH_WEIGHTS, SIGNALS, RetrievalConfig
from graph_mem.core.strength import (
    EVERGREEN_FLOOR,
    Strength,
    floor_of,
    freshness,
    retention,
    strength,
    weighted_mean,
)
from graph_mem.core.vocabulary import DEFAULT

NOW = datetime(2026, 11, 30, tzinfo=UTC)
shares = st.floats(0, 1)
days = st.floats(0, 20_000)
signals = st.builds(
    lambda retrievals, kinds, centrality, confidence, trust, start: Signals(
        retrievals=retrievals,
        query_kinds=tuple(f"k{i}" for i in range(kinds)),
        centrality=centrality,
        confidence=confidence,
        source_trust=trust,
        starting_strength=start,
    ),
    st.integers(0, 10**6),
    st.integers(0, 64),
    st.none() | shares,
    st.none() | shares,
    shares,
    st.none() | shares,
)
weights = st.dictionaries(st.sampled_from(SIGNALS), st.floats(0.01, 10), min_size=1)


def measured(
    given: Signals, *, age_days: float = 0.0, floor: float = 0.0, weights: dict[str, float] | None = None
) -> Strength:
    return strength(
        given,
        fresh_at=NOW - timedelta(days=age_days),
        now=NOW,
        floor=floor,
        weights=weights or DEFAULT_STRENGTH_WEIGHTS,
    )


@given(signals, days, shares, weights)
def test_strength_is_above_zero_at_most_one_and_over_its_floor(
    given: Signals, age: float, floor: float, weights: dict[str, float]
) -> None:
    found = measured(given, age_days=age, floor=floor, weights=weights)
    assert 0 < found.value <= 1
    assert found.value >= floor


@given(signals, days, days)
def test_strength_only_falls_while_nothing_happens(given: Signals, one: float, other: float) -> None:
    younger, older = sorted((one, other))
    assert measured(given, age_days=older).value <= measured(given, age_days=younger).value + 1e-12


@given(signals, days)
def test_retrieval_and_validation_strengthen(given: Signals, age: float) -> None:
    before = measured(given, age_days=age).value
    retrieved = replace(given, retrievals=given.retrievals + 1, last_retrieved_at=NOW)
    assert measured(retrieved, age_days=age).value >= before - 1e-12
    assert measured(replace(given, last_validated_at=NOW), age_days=age).value >= before - 1e-12


@given(days, days)
def test_retention_starts_at_one_falls_and_never_ends(one: float, other: float) -> None:
    assert retention(0) == 1
    assert 0 < retention(max(one, other)) <= retention(min(one, other)) <= 1


def test_a_week_fades_and_the_tail_spares() -> None:
    """Source: the formula of SPEC 6 with its defaults, worked out by hand."""
    assert abs(retention(7) - 0.759) < 0.001
    assert abs(retention(400) - 0.4 * (1 + 400 / 180) ** -0.3) < 1e-9


@given(st.dictionaries(st.sampled_from(SIGNALS), st.none() | shares), weights)
def test_an_unknown_signal_drops_out_of_the_mean(values: dict[str, float | None], weights: dict[str, float]) -> None:
    known = {name: value for name, value in values.items() if value is not None}
    assert weighted_mean(values, weights) == weighted_mean(known, weights)
    if known:
        assert weighted_mean(values, weights) <= max(known.values()) + 1e-9


def test_protected_and_evergreen_have_floors() -> None:
    playbook, note = DEFAULT.labels["playbook"], DEFAULT.labels["note"]
    assert floor_of(playbook, evergreen=False) == 0.8
    assert floor_of(note, evergreen=True) == EVERGREEN_FLOOR == floor_of(playbook, evergreen=True)
    assert floor_of(None, evergreen=False) == 0


@given(signals, days)
def test_an_exact_answer_unused_for_400_days_is_still_first(given: Signals, age: float) -> None:
    """Everything else is as strong as can be; it only has to be worse by more than strength's influence."""
    config = RetrievalConfig()
    old = measured(replace(given, last_retrieved_at=None), age_days=400)
    others = [
        Candidate(Fused(RecordId(f"r{i}"), f"r{i}/0", 0.95 * (1 - config.strength_influence)), strength=1.0)
        for i in range(5)
    ]
    exact = Candidate(Fused(RecordId("exact"), "exact/0", 0.96), strength=old.value)
    assert rank([*others, exact], config)[0].record_id == "exact"


@given(days, st.floats(0.1, 1000))
def test_freshness_halves_by_the_half_life(age: float, half_life: float) -> None:
    assert 0 <= freshness(age, half_life) <= 1
    assert freshness(age, None) == 1
    assert abs(freshness(half_life, half_life) - 0.5) < 1e-9
