"""Finds the weights, floor and tiers that fit an organization's own labelled queries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graph_mem.core.fusion import Legs, Passage, fuse
from graph_mem.core.model import RecordId
from graph_mem.core.retrieval import RetrievalConfig

DEPTH = 10
_LEXICAL_WEIGHTS = tuple(step / 20 for step in range(21))
_LOST_RECALL = 0.002
"""The share of relevant results that the floor may cost."""

_HIGH_SHARE, _STANDARD_SHARE = 0.15, 0.5
"""Of all results, how many are HIGH, and how many STANDARD or better."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A query as the legs answered it, with the records that are right."""

    passages: Sequence[Passage]
    legs: Legs
    relevant: frozenset[RecordId]


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over the queries, 0..1, at ten results."""

    ndcg: float
    recall: float


@dataclass(frozen=True, slots=True)
class TierFigures:
    """How many results a tier has, and which share of them is right."""

    results: int
    precision: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What one lexical weight would give."""

    lexical_weight: float
    figures: Figures


@dataclass(frozen=True, slots=True)
class Fit:
    """The configuration that fits best, what it gives, and what else was tried."""

    config: RetrievalConfig
    before: Figures
    after: Figures
    trials: tuple[Trial, ...]
    tiers: Mapping[str, TierFigures]


def fit(queries: Sequence[Judged], config: RetrievalConfig) -> Fit:
    """The best weights for `queries`, then the floor and tiers for these weights.

    Errors: ValueError without queries.
    """
    if not queries:
        raise ValueError("no queries, expected some with at least one relevant record each")
    trials = [Trial(weight, figures(queries, _weighted(config, weight))) for weight in _LEXICAL_WEIGHTS]
    best = max(trials, key=lambda trial: (round(_smoothed(trials, trial), 6), -abs(trial.lexical_weight - 0.5)))
    weighted = _weighted(config, best.lexical_weight)
    fitted = _with_tiers(queries, _with_floor(queries, weighted))
    return Fit(fitted, figures(queries, config), figures(queries, fitted), tuple(trials), tier_figures(queries, fitted))


def _weighted(config: RetrievalConfig, lexical_weight: float) -> RetrievalConfig:
    return replace(config, lexical_weight=lexical_weight, vector_weight=round(1 - lexical_weight, 6))


def _smoothed(trials: Sequence[Trial], trial: Trial) -> float:
    """The score of a weight and its neighbours: a peak that stands alone is an accident of few queries."""
    near = [one for one in trials if abs(one.lexical_weight - trial.lexical_weight) < 0.06]
    return sum(one.figures.ndcg for one in near) / len(near)


def _ranked(query: Judged, config: RetrievalConfig) -> list[tuple[RecordId, float]]:
    return [(one.record_id, one.fused) for one in fuse(query.passages, query.legs, config).kept]


def figures(queries: Sequence[Judged], config: RetrievalConfig) -> Figures:
    """nDCG and recall at ten with binary relevance, as ir-measures computes them."""
    rankings = [([id for id, _ in _ranked(query, config)[:DEPTH]], query.relevant) for query in queries]
    count = len(rankings)
    return Figures(
        ndcg=sum(_ndcg(ids, relevant) for ids, relevant in rankings) / count,
        recall=sum(len(relevant.intersection(ids)) / len(relevant) for ids, relevant in rankings) / count,
    )


def _ndcg(ids: Sequence[RecordId], relevant: frozenset[RecordId]) -> float:
    gain = sum(1 / math.log2(place + 1) for place, id in enumerate(ids, start=1) if id in relevant)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(relevant), DEPTH) + 1))
    return gain / ideal


def _shown(queries: Sequence[Judged], config: RetrievalConfig) -> list[tuple[float, bool]]:
    """Score and correctness of every result shown, best first."""
    shown = [(score, id in query.relevant) for query in queries for id, score in _ranked(query, config)[:DEPTH]]
    return sorted(shown, reverse=True)


def _with_floor(queries: Sequence[Judged], config: RetrievalConfig) -> RetrievalConfig:
    """The highest floor that costs next to no right result."""
    right = sorted(score for score, correct in _shown(queries, replace(config, fused_floor=0.0)) if correct)
    if not right:
        return config
    return replace(config, fused_floor=_down(right[int(len(right) * _LOST_RECALL)] * 0.9))


def _with_tiers(queries: Sequence[Judged], config: RetrievalConfig) -> RetrievalConfig:
    """Tiers by their share of results."""
    shown = _shown(queries, config)
    if not shown:
        return config
    high = shown[int(len(shown) * _HIGH_SHARE)][0]
    standard = shown[int(len(shown) * _STANDARD_SHARE)][0]
    return replace(config, tier_high=_down(high), tier_standard=min(_down(standard), _down(high)))


def _down(value: float) -> float:
    return math.floor(value * 1000) / 1000


def tier_figures(queries: Sequence[Judged], config: RetrievalConfig) -> dict[str, TierFigures]:
    """Size and precision of each tier over every result shown."""
    counts: dict[str, list[int]] = {}
    for score, correct in _shown(queries, config):
        one = counts.setdefault(config.tier(score).value, [0, 0])
        one[0] += 1
        one[1] += correct
    return {name: TierFigures(results, right / results) for name, (results, right) in counts.items()}
