"""Fused scores into the final order: strength or blend, one's own first, then variety."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graph_mem.core.fusion import Fused
from graph_mem.core.model import RecordId
from graph_mem.core.retrieval import RankingProfile, RetrievalConfig, Score, Tier

EQUAL_RELEVANCE = 0.005
"""Fused scores no further apart than this are equally relevant: one's own record goes first."""

_NEARLY_EQUAL = 0.93
"""Of a weight: matches no further apart are as good as each other. Measured, with `source_share`: bench/README.md."""

_COMMON = 0.3
"""Jaccard likeness that says nothing: texts on one matter share that much by their little words."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fused record with what ranking needs to know of it. `strength`, `importance` and `freshness` are 0..1."""

    fused: Fused
    strength: float
    importance: float = 0.5
    freshness: float = 1.0
    own: bool = False


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its tier and all numbers, in its place. `passage_id` is what the snippet comes from.

    `weight` is the final score, or that of an equally relevant shared record which this own one goes before.
    """

    record_id: RecordId
    passage_id: str
    tier: Tier
    score: Score
    weight: float


def rank(candidates: Sequence[Candidate], config: RetrievalConfig) -> list[Ranked]:
    """All candidates in final order, before variety; ties by id."""
    scored = [(candidate, score_of(candidate, config)) for candidate in candidates]
    keys = _own_first(scored)
    ordered = sorted(scored, key=lambda one: keys[one[0].fused.record_id])
    return [
        Ranked(
            record_id=one.fused.record_id,
            passage_id=one.fused.passage_id,
            tier=config.tier(one.fused.fused),
            score=score,
            weight=-keys[one.fused.record_id][0],
        )
        for one, score in ordered
    ]


def score_of(candidate: Candidate, config: RetrievalConfig) -> Score:
    """The numbers of a candidate under the ranking profile in force."""
    fused = candidate.fused
    if config.profile is RankingProfile.STRENGTH:
        factor = strength_factor(candidate.strength, config)
        final, fade = fused.fused * factor, 0.0
    else:
        factor = 1.0
        fade = -config.fresh_weight * (1 - candidate.freshness) if config.memories_fade else 0.0
        final = config.fusion_weight * fused.fused + config.importance_weight * candidate.importance + fade
    return Score(
        final=final,
        fused=fused.fused,
        strength=factor,
        lexical=fused.lexical,
        vector=fused.vector,
        fade_part=fade,
        neighbour=fused.neighbour,
        participant=fused.participant,
    )


def strength_factor(strength: float, config: RetrievalConfig) -> float:
    """What strength multiplies a score by: 1 - influence for none, 1 for full.

    A match that is better by more than the influence can so never be overtaken, however long it was not used.
    """
    return 1 - config.strength_influence * (1 - strength)


def _own_first(scored: Sequence[tuple[Candidate, Score]]) -> dict[str, tuple[float, bool, str]]:
    """Sort keys: by final score, where an own record counts as much as the best shared one of equal relevance."""
    shared = [(one.fused.fused, score.final) for one, score in scored if not one.own]
    keys: dict[str, tuple[float, bool, str]] = {}
    for one, score in scored:
        final = score.final
        if one.own:
            equals = [rival for fused, rival in shared if abs(fused - one.fused.fused) <= EQUAL_RELEVANCE]
            final = max([final, *equals])
        keys[one.fused.record_id] = (-final, not one.own, one.fused.record_id)
    return keys


def words_of(text: str) -> frozenset[str]:
    """What two passages are compared by."""
    return frozenset(_WORD.findall(text.casefold()))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """How far two passages say the same, 0..1: shared words over all words, beyond what any two texts share."""
    union = len(one | other)
    shared = len(one & other) / union if union else 0.0
    return max(0.0, (shared - _COMMON) / (1 - _COMMON))


def diversify(ranked: Sequence[Ranked], words: Sequence[frozenset[str]], config: RetrievalConfig) -> list[Ranked]:
    """`ranked` so that a passage like one further up waits: maximal marginal relevance.

    `words` belong to the first len(words) of `ranked`; what lies beyond keeps its place. The place in `ranked` breaks
    ties, and weights count relative to the best. Source: Carbonell & Goldstein, SIGIR 1998.
    """
    best = max((one.weight for one in ranked), default=0.0)
    pool = list(range(len(words)))
    if best <= 0 or not pool or config.mmr_lambda >= 1:
        return list(ranked)
    order: list[Ranked] = []
    closest = [0.0] * len(words)
    while pool:
        value = {i: _marginal(ranked[i], closest[i], best, config) for i in pool}
        chosen = max(pool, key=lambda i: (value[i], -i))
        pool.remove(chosen)
        order.append(replace(ranked[chosen], score=replace(ranked[chosen].score, mmr=value[chosen])))
        for i in pool:
            closest[i] = max(closest[i], likeness(words[i], words[chosen]))
    return [*order, *ranked[len(words) :]]


def spread(ranked: Sequence[Ranked], sources: Mapping[RecordId, str], *, page: int, share: float) -> list[Ranked]:
    """`ranked` so that in the last `share` of the first page sources that are not on it yet go before their equals.

    One conversation or document that is all about the question would take the whole page. A record without a source is
    its own; one that is worse than what it would pass, by more than a little, is not brought forward.
    """
    kept = max(1, page - int(page * share))
    shown, rest = list(ranked[:kept]), list(ranked[kept:])
    seen = {sources.get(one.record_id, one.record_id) for one in shown}
    while rest and len(shown) < page:
        worst = rest[0].weight * _NEARLY_EQUAL
        new = (one for one in rest if sources.get(one.record_id, one.record_id) not in seen and one.weight >= worst)
        chosen = next(new, rest[0])
        rest.remove(chosen)
        shown.append(chosen)
        seen.add(sources.get(chosen.record_id, chosen.record_id))
    return [*shown, *rest]


def _marginal(one: Ranked, closest: float, best: float, config: RetrievalConfig) -> float:
    return config.mmr_lambda * one.weight / best - (1 - config.mmr_lambda) * closest
