import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.lifecycle import LifecycleConfig
from graph_mem.core.proposals import ProposalKind, TrustCount
from graph_mem.core.trust import Z_95, keeps_unasked, lower_bound, trusted

COUNT = st.integers(0, 5000)


def count(kept: int, reverted: int = 0) -> TrustCount:
    return TrustCount(ProposalKind.ARCHIVE, "note", kept, reverted)


@given(COUNT, COUNT)
def test_the_bound_is_a_share_below_what_was_observed(kept: int, reverted: int) -> None:
    bound = lower_bound(kept, reverted)
    assert 0 <= bound < 1
    assert bound <= kept / max(kept + reverted, 1) + 1e-12


@given(COUNT, COUNT)
def test_a_kept_change_raises_trust_and_a_reverted_one_lowers_it(kept: int, reverted: int) -> None:
    assert lower_bound(kept + 1, reverted) > lower_bound(kept, reverted) - 1e-12
    assert lower_bound(kept, reverted + 1) < lower_bound(kept, reverted) + 1e-12


@pytest.mark.parametrize(
    ("kept", "reverted", "bound"),
    [(19, 0, 0.8754), (0, 0, 0.0), (0, 5, 0.0), (9, 1, 0.6523), (95, 5, 0.9009), (10_000, 0, 0.9997)],
)
def test_the_bound_is_wilsons(kept: int, reverted: int, bound: float) -> None:
    assert lower_bound(kept, reverted) == pytest.approx(bound, abs=1e-4)


def test_the_quantile_is_that_of_95_percent() -> None:
    assert 0.5 * (1 + math.erf(Z_95 / math.sqrt(2))) == pytest.approx(0.95, abs=1e-12)


@given(st.integers(1, 300), st.integers(0, 300))
def test_without_a_revert_the_minimum_is_what_it_takes(minimum: int, kept: int) -> None:
    assert trusted(count(kept), minimum=minimum) is (kept >= minimum)


def test_nineteen_of_nineteen_are_enough_and_one_revert_costs_many() -> None:
    assert not trusted(count(18), minimum=19)
    assert trusted(count(19), minimum=19)
    assert not trusted(count(19, 1), minimum=19)
    assert not trusted(count(40, 2), minimum=19)
    assert trusted(count(60, 2), minimum=19)


def test_only_low_risk_changes_are_kept_unasked_and_only_where_switched_on() -> None:
    on, off = LifecycleConfig(auto_keep=True), LifecycleConfig()
    assert keeps_unasked(count(19), on, low_risk=True)
    assert not keeps_unasked(count(19), on, low_risk=False)
    assert not keeps_unasked(count(19), off, low_risk=True)
    assert not keeps_unasked(count(18), on, low_risk=True)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="no negative count"):
        lower_bound(-1, 0)
