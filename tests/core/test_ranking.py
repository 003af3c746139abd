"""Strength, age, ownership and variety decide among near-equals, and only among them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.fusion import Fused
from graph_mem.core.model import RecordId
from graph_mem.core.ranking import Candidate, Ranked, diversify, likeness, rank, spread, words_of
from graph_mem.core.retrieval import RankingProfile, RetrievalConfig, Tier

shares = st.floats(0, 1)
STRENGTH = RetrievalConfig()
BLEND = RetrievalConfig(profile=RankingProfile.BLEND)


def candidate(
    name: str,
    fused: float,
    strength: float = 0.5,
    *,
    own: bool = False,
    importance: float = 0.5,
    freshness: float = 1.0,
) -> Candidate:
    found = Fused(RecordId(name), f"{name}/0", fused)
    return Candidate(found, strength=strength, own=own, importance=importance, freshness=freshness)


candidates = st.lists(
    st.builds(
        lambda i, fused, strength, own, importance, freshness: candidate(
            f"r{i:02d}", fused, strength, own=own, importance=importance, freshness=freshness
        ),
        st.integers(0, 99),
        shares,
        shares,
        st.booleans(),
        shares,
        shares,
    ),
    max_size=15,
    unique_by=lambda one: one.fused.record_id,
)
profiles = st.sampled_from([STRENGTH, BLEND])


@given(candidates, profiles, st.randoms())
def test_order_of_the_candidates_does_not_matter(given: list[Candidate], config: RetrievalConfig, random) -> None:
    assert rank(random.sample(given, len(given)), config) == rank(given, config)


@given(candidates, profiles)
def test_everything_is_ranked_once_by_its_weight(given: list[Candidate], config: RetrievalConfig) -> None:
    ranked = rank(given, config)
    assert sorted(one.record_id for one in ranked) == sorted(one.fused.record_id for one in given)
    weights = [one.weight for one in ranked]
    assert weights == sorted(weights, reverse=True)
    assert all(one.weight >= one.score.final - 1e-12 for one in ranked)


@given(shares, shares, shares)
def test_strength_never_lifts_over_what_is_better_by_more_than_its_influence(
    fused: float, weak: float, strong: float
) -> None:
    lesser = fused * (1 - STRENGTH.strength_influence) * 0.999
    ranked = rank([candidate("best", fused, weak), candidate("other", lesser, strong)], STRENGTH)
    assert ranked[0].record_id == "best" or fused == 0


def test_strength_decides_among_near_equals() -> None:
    ranked = rank([candidate("worn", 0.6, 0.1), candidate("used", 0.58, 0.9)], STRENGTH)
    assert [one.record_id for one in ranked] == ["used", "worn"]


@given(candidates)
def test_final_is_fused_times_strength(given: list[Candidate]) -> None:
    for one in rank(given, STRENGTH):
        assert abs(one.score.final - one.score.fused * one.score.strength) < 1e-12
        assert 0 <= one.score.strength <= 1
        assert one.score.fade_part == 0


@given(candidates)
def test_blend_adds_importance_and_takes_age(given: list[Candidate]) -> None:
    by_id = {one.fused.record_id: one for one in given}
    for one in rank(given, BLEND):
        source = by_id[one.record_id]
        expected = BLEND.fusion_weight * one.score.fused + BLEND.importance_weight * source.importance
        assert abs(one.score.final - expected - one.score.fade_part) < 1e-9
        assert -BLEND.fresh_weight <= one.score.fade_part <= 0


@given(candidates)
def test_nothing_fades_where_memories_do_not(given: list[Candidate]) -> None:
    config = replace(BLEND, memories_fade=False)
    assert all(one.score.fade_part == 0 for one in rank(given, config))


@given(shares, shares, shares)
def test_ones_own_record_goes_before_a_shared_one_of_equal_relevance(fused: float, mine: float, theirs: float) -> None:
    ranked = rank([candidate("a-shared", fused, theirs), candidate("b-own", fused, mine, own=True)], STRENGTH)
    assert ranked[0].record_id == "b-own"
    assert diversify(ranked, [words_of("same text")] * 2, STRENGTH)[0].record_id == "b-own"


def test_ones_own_record_does_not_go_before_a_better_shared_one() -> None:
    ranked = rank([candidate("shared", 0.8), candidate("own", 0.5, own=True)], STRENGTH)
    assert ranked[0].record_id == "shared"


def test_ties_are_broken_by_id() -> None:
    ranked = rank([candidate("b", 0.5), candidate("a", 0.5), candidate("c", 0.5)], STRENGTH)
    assert [one.record_id for one in ranked] == ["a", "b", "c"]


@given(st.floats(0, 1))
def test_tiers_are_judged_by_the_fused_score_alone(fused: float) -> None:
    weak, strong = (rank([candidate("r", fused, strength)], STRENGTH)[0].tier for strength in (0.0, 1.0))
    assert weak is strong is STRENGTH.tier(fused)


def test_tiers_are_monotone() -> None:
    tiers = [STRENGTH.tier(step / 100).rank for step in range(101)]
    assert tiers == sorted(tiers, reverse=True)
    assert {STRENGTH.tier(0.0), STRENGTH.tier(1.0)} == {Tier.LOW, Tier.HIGH}


words = st.frozensets(st.sampled_from("abcdefgh"), max_size=6)


@given(st.lists(st.tuples(shares, words), max_size=10), st.floats(0, 1))
def test_variety_keeps_all_and_begins_with_the_best(given: list[tuple[float, frozenset[str]]], mmr: float) -> None:
    config = replace(STRENGTH, mmr_lambda=mmr)
    ranked = rank([candidate(f"r{i:02d}", fused) for i, (fused, _) in enumerate(given)], config)
    texts = {f"r{i:02d}": text for i, (_, text) in enumerate(given)}
    varied = diversify(ranked, [texts[one.record_id] for one in ranked], config)
    assert sorted(varied_id(varied)) == sorted(varied_id(ranked))
    if mmr == 1:
        assert varied_id(varied) == varied_id(ranked)
    if ranked and mmr > 0:
        assert varied[0].record_id == ranked[0].record_id


def test_look_alikes_of_a_better_result_wait() -> None:
    ranked = rank([candidate("a", 0.60), candidate("b", 0.59), candidate("c", 0.55)], STRENGTH)
    same = words_of("the rate for Northwind was raised to 185 euros")
    varied = diversify(ranked, [same, same, words_of("Contoso pays by the day since last spring")], STRENGTH)
    assert varied_id(varied) == ["a", "c", "b"]


def test_what_lies_beyond_the_compared_keeps_its_place() -> None:
    ranked = rank([candidate(f"r{i}", 1 - i / 10) for i in range(6)], STRENGTH)
    varied = diversify(ranked, [words_of("x")] * 3, STRENGTH)
    assert varied_id(varied)[3:] == ["r3", "r4", "r5"]


def test_the_end_of_a_page_goes_to_sources_that_are_not_on_it() -> None:
    ranked = rank([candidate(f"r{i:02d}", 0.9 - i / 200) for i in range(14)], STRENGTH)
    sources = {RecordId(f"r{i:02d}"): "talk" if i < 12 else f"other{i}" for i in range(14)}
    page = varied_id(spread(ranked, sources, page=10, share=0.2))
    assert page[:10] == [*(f"r{i:02d}" for i in range(8)), "r12", "r13"]
    assert sorted(page) == varied_id(ranked)


@given(candidates, st.integers(1, 20), shares)
def test_records_of_different_sources_keep_their_order(given: list[Candidate], page: int, share: float) -> None:
    ranked = rank(given, STRENGTH)
    assert spread(ranked, {}, page=page, share=share) == ranked


@pytest.mark.parametrize("worse", [0.2, 0.8])
def test_a_worse_record_is_not_brought_forward(worse: float) -> None:
    ranked = rank([*(candidate(f"r{i}", 0.9) for i in range(5)), candidate("far", worse)], STRENGTH)
    sources = {RecordId(f"r{i}"): "talk" for i in range(5)}
    assert varied_id(spread(ranked, sources, page=4, share=0.5))[-1] == "far"


@given(words, words)
def test_likeness_is_a_share_and_symmetric(one: frozenset[str], other: frozenset[str]) -> None:
    assert 0 <= likeness(one, other) <= 1
    assert likeness(one, other) == likeness(other, one)
    assert not one or likeness(one, one) == 1


def varied_id(ranked: list[Ranked]) -> list[str]:
    return [one.record_id for one in ranked]
