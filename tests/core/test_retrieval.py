"""The configuration refuses what makes no sense, and the clocks answer for other days."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.fitting import Judged, fit
from graph_mem.core.fusion import Legs, Passage
from graph_mem.core.model import FAR, Interval, RecordId
from graph_mem.core.retrieval import OVERRIDABLE, RankingProfile, RetrievalConfig, held_then
from graph_mem.errors import InvalidInput

T = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"lexical_weight": -0.1},
        {"fused_floor": 1.1},
        {"mmr_lambda": float("nan")},
        {"tier_high": 0.1, "tier_standard": 0.2},
        {"lexical_weight": 0.0, "vector_weight": 0.0},
        {"strength_weights": {"charm": 1.0}},
        {"strength_weights": {"recency": -1.0}},
        {"strength_weights": {"recency": 0.0}},
        {"strength_weights": {"recency": True}},
        {"strength_weights": []},
        {"vector_threshold": "0.5"},
        {"version": 7},
        {"charm": 1},
    ],
)
def test_configuration_that_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        RetrievalConfig().changed(changes)


def test_only_what_differs_from_the_model_s_defaults_is_stored() -> None:
    defaults = RetrievalConfig(lexical_weight=0.6, vector_weight=0.4)
    changed = defaults.changed({"fused_floor": 0.1, "profile": "BLEND"})
    assert changed.profile is RankingProfile.BLEND
    assert changed.overrides(defaults) == {"fused_floor": 0.1, "profile": "BLEND"}
    assert defaults.changed(changed.overrides(defaults)) == changed


@given(st.sampled_from(sorted(OVERRIDABLE - {"fusion", "profile", "memories_fade", "strength_weights"})), st.floats())
def test_every_number_is_a_share(name: str, value: float) -> None:
    standing = {"tier_standard": 0.0} if name == "tier_high" else {"tier_high": 1.0}
    if 0 <= value <= 1:
        assert getattr(RetrievalConfig().changed({**standing, name: value}), name) == value
    else:
        with pytest.raises(InvalidInput):
            RetrievalConfig().changed({name: value})


def test_two_clocks() -> None:
    """Held from day 0 until a successution on day 20 that was learned on day 30."""
    interval = Interval(valid_from=T, known_from=T + 5 * DAY, valid_to=T + 20 * DAY, known_to=T + 30 * DAY)

    def held(as_of: int | None, known_at: int | None) -> bool:
        at = None if as_of is None else T + as_of * DAY
        known = None if known_at is None else T + known_at * DAY
        return held_then(interval, as_of=at, known_at=known)

    assert held(10, None)
    assert not held(20, None)
    assert not held(-1, None)
    assert held(None, 29)
    assert not held(None, 30)
    assert not held(None, 4)
    assert held(25, 25), "on day 25 nobody knew that it had ended"
    assert not held(25, 30)


def test_an_end_that_was_stated_counts_at_every_time() -> None:
    interval = Interval(valid_from=T, known_from=T, valid_to=T + 5 * DAY, known_to=FAR)
    assert not held_then(interval, as_of=T + 6 * DAY, known_at=T + DAY, stated_to=T + 5 * DAY)
    assert held_then(interval, as_of=T + 4 * DAY, known_at=T + DAY, stated_to=T + 5 * DAY)


def judged(words: dict[str, float], meaning: dict[str, float], right: str) -> Judged:
    passages = [Passage(name, RecordId(name)) for name in {*words, *meaning}]
    return Judged(passages, Legs(words, meaning), frozenset({RecordId(right)}))


def test_fit_finds_the_leg_that_is_right() -> None:
    """Words put the right record first, meaning the wrong one."""
    queries = [judged({"right": 0.9, "wrong": 0.2}, {"right": 0.3, "wrong": 0.8}, "right") for _ in range(20)]
    found = fit(queries, RetrievalConfig(lexical_weight=0.1, vector_weight=0.9))
    assert found.before.ndcg < found.after.ndcg == 1
    assert found.config.lexical_weight > 0.1
    assert found.config.fused_floor > 0
    assert found.tiers["HIGH"].precision >= max((one.precision for one in found.tiers.values()), default=0)


@given(
    st.lists(
        st.tuples(st.dictionaries(st.sampled_from("abcde"), st.floats(0, 1), min_size=1), st.sampled_from("abcde")),
        min_size=1,
        max_size=6,
    )
)
def test_fit_never_makes_it_worse_beyond_its_smoothing(given: list[tuple[dict[str, float], str]]) -> None:
    queries = [judged(words, {}, right) for words, right in given]
    found = fit(queries, RetrievalConfig())
    assert 0 <= found.after.ndcg <= 1
    assert found.config.tier_standard <= found.config.tier_high
    assert sum(one.results for one in found.tiers.values()) <= 10 * len(queries)


def test_fit_refuses_nothing_to_fit_to() -> None:
    with pytest.raises(ValueError, match="no queries"):
        fit([], RetrievalConfig())
