"""Two legs become one score: properties that hold whatever the legs bring."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from graph_mem.core.fusion import Fusing, Legs, Passage, fuse, meaning_share, reciprocal_ranks, words_share
from graph_mem.core.model import RecordId
from graph_mem.core.retrieval import Calibration, Fusion, RetrievalConfig

shares = st.floats(0, 1)
ids = st.sampled_from([f"u{i}" for i in range(12)])
ranking = st.dictionaries(ids, shares, max_size=12)
configs = st.builds(
    lambda lexical, cap, floor, threshold, fusion: RetrievalConfig(
        lexical_weight=lexical,
        vector_weight=1 - lexical,
        lexical_only_cap=cap,
        fused_floor=floor,
        vector_threshold=threshold,
        fusion=fusion,
    ),
    shares,
    shares,
    shares,
    shares,
    st.sampled_from(Fusion),
)


def passages(*names: str, neighbours: dict[str, tuple[str, ...]] | None = None, named: str = "") -> list[Passage]:
    return [
        Passage(name, RecordId(f"r-{name}"), (neighbours or {}).get(name, ()), participant=name in named.split())
        for name in names
    ]


def both(words: dict[str, float], meaning: dict[str, float], config: RetrievalConfig) -> Fusing:
    return fuse(passages(*{*words, *meaning}), Legs(words, meaning), config)


@given(ranking, ranking, configs)
def test_scores_are_shares_and_nothing_under_the_floor_returns(
    words: dict[str, float], meaning: dict[str, float], config: RetrievalConfig
) -> None:
    found = both(words, meaning, config)
    assert all(config.fused_floor <= one.fused <= 1 for one in found.kept)
    assert len(found.kept) + found.below_floor == found.candidates
    assert all(one.vector is None or one.vector >= config.vector_threshold for one in found.kept)


@given(ranking, ranking, configs, st.randoms())
def test_order_of_what_the_legs_brought_does_not_matter(
    words: dict[str, float], meaning: dict[str, float], config: RetrievalConfig, random
) -> None:
    units = passages(*{*words, *meaning})
    shuffled = random.sample(units, len(units))
    again = Legs(dict(random.sample(list(words.items()), len(words))), dict(reversed(meaning.items())))
    assert fuse(shuffled, again, config) == fuse(units, Legs(words, meaning), config)


@given(ranking, ranking, ids, shares, configs)
def test_more_in_one_leg_is_never_less_in_the_sum(
    words: dict[str, float], meaning: dict[str, float], unit: str, more: float, config: RetrievalConfig
) -> None:
    config = replace(config, fused_floor=0.0, fusion=Fusion.WEIGHTED)
    assume(unit in words or unit in meaning)
    before = _fused(both(words, meaning, config), unit)
    for leg in (words, meaning):
        if unit in leg and more >= leg[unit]:
            raised = leg | {unit: more}
            legs = (raised, meaning) if leg is words else (words, raised)
            assert _fused(both(*legs, config), unit) >= before - 1e-12


@given(ranking, ranking, configs)
def test_words_alone_are_capped_beside_a_leg_of_meaning(
    words: dict[str, float], meaning: dict[str, float], config: RetrievalConfig
) -> None:
    config = replace(config, fusion=Fusion.WEIGHTED)
    near = {id for id, share in meaning.items() if share >= config.vector_threshold}
    for one in both(words, meaning, config).kept:
        if one.passage_id not in near:
            assert one.fused <= config.lexical_only_cap


def test_of_two_perfect_matches_of_words_the_better_goes_first() -> None:
    exact, near = (words_share(score, words=1, units=3) for score in (4.0, 3.0))
    found = both({"near": near, "exact": exact}, {"other": 0.5}, RetrievalConfig())
    assert [one.passage_id for one in found.kept if one.vector is None] == ["exact", "near"]


@given(ranking)
def test_a_leg_that_stands_alone_is_the_score_itself(words: dict[str, float]) -> None:
    config = RetrievalConfig(fused_floor=0.0)
    found = fuse(passages(*words), Legs(words, None), config)
    assert {one.passage_id: one.fused for one in found.kept} == words
    assert all(one.vector is None for one in found.kept)


def test_a_record_is_its_best_passage() -> None:
    record = RecordId("r")
    units = [Passage("a", record), Passage("b", record)]
    (only,) = fuse(units, Legs({"a": 0.2}, {"a": 0.2, "b": 0.9}), RetrievalConfig()).kept
    assert only.passage_id == "b"
    assert only.vector == 0.9


@given(shares, shares)
def test_a_neighbour_lifts_and_the_better_one_counts(mine: float, theirs: float) -> None:
    config = RetrievalConfig(fused_floor=0.0, vector_threshold=0.0, neighbour_weight=0.2)
    meaning = {"a": mine, "b": theirs, "c": theirs / 2}
    plain = fuse(passages("a", "b", "c"), Legs({}, meaning), config)
    linked = fuse(passages("a", "b", "c", neighbours={"a": ("b", "c")}), Legs({}, meaning), config)
    gained = _fused(linked, "a") - _fused(plain, "a")
    assert abs(gained - 0.2 * _fused(plain, "b")) < 1e-9
    assert _fused(linked, "b") == _fused(plain, "b")


def test_passages_of_one_record_do_not_lift_each_other() -> None:
    units = [Passage("a", RecordId("r"), ("b",)), Passage("b", RecordId("r"), ("a",))]
    (only,) = fuse(units, Legs({}, {"a": 0.5, "b": 0.5}), RetrievalConfig()).kept
    assert only.neighbour == 0


def test_a_neighbour_that_no_leg_found_adds_nothing() -> None:
    found = fuse(passages("a", neighbours={"a": ("far",)}), Legs({}, {"a": 0.5}), RetrievalConfig())
    assert found.kept[0].neighbour == 0.0


def test_whom_the_query_names_goes_before_an_equal_of_somebody_else() -> None:
    found = fuse(passages("a", "b", named="b"), Legs({}, {"a": 0.5, "b": 0.5}), RetrievalConfig())
    assert [one.passage_id for one in found.kept] == ["b", "a"]
    assert found.kept[0].participant > 0 == found.kept[1].participant


@given(st.lists(ranking, min_size=1, max_size=3))
def test_reciprocal_ranks_are_shares_and_first_everywhere_is_one(rankings: list[dict[str, float]]) -> None:
    scores = reciprocal_ranks(rankings)
    assert all(0 < score <= 1 + 1e-12 for score in scores.values())
    first_everywhere = [id for id in scores if all(id in one and one[id] == max(one.values()) for one in rankings)]
    assert all(abs(scores[id] - 1) < 1e-12 for id in first_everywhere)


@given(st.floats(0, 1e6), st.integers(0, 500), st.integers(0, 10**7))
def test_words_share_is_a_share_and_grows_with_the_score(score: float, words: int, units: int) -> None:
    share = words_share(score, words=words, units=units)
    assert 0 <= share <= 1
    assert words_share(score + 1, words=words, units=units) >= share


@given(st.floats(-1, 1), st.floats(0, 0.01))
def test_meaning_share_is_a_share_and_grows_with_the_cosine(cosine: float, more: float) -> None:
    calibration = Calibration(0.7, 0.9)
    share = meaning_share(cosine, calibration)
    assert 0 <= share <= 1
    assert meaning_share(cosine + more, calibration) >= share


def _fused(found: Fusing, unit: str) -> float:
    """The score of a unit; 0 where a threshold or floor took it."""
    return next((one.fused for one in found.kept if one.passage_id == unit), 0.0)


@given(ranking, configs)
def test_words_alone_find_whatever_they_match_however_common_it_is(
    words: dict[str, float], config: RetrievalConfig
) -> None:
    assume(config.fusion is Fusion.WEIGHTED)
    found = fuse(passages(*words), Legs(words, None), config)
    assert {one.passage_id for one in found.kept} == set(words)
