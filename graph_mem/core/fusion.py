"""Two legs into one score: what words found and what meaning found, as shares that mean the same in every query.

Raw scores do not compare: BM25 has no upper end and cosine lives in a narrow band. Here a cosine is placed between
what unrelated and what equal texts have with the model in use, and BM25 is divided by an estimate of what a perfect
match of this query could score. Neither looks at the other candidates, so that a tier says the same from query to
query; both rank as well as stretching each list to 0..1 (bench/README.md).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graph_mem.core.model import RecordId
from graph_mem.core.retrieval import Calibration, Fusion, RetrievalConfig

RRF_K = 60
"""Source: Cormack, Clarke, Buettcher, SIGIR 2009."""

_USUAL_SHARE = 0.6
"""What a word of a query weighs beside the rarest possible word, measured on three sets."""


_MOST_WORDS = 16
"""Nobody expects one text to hold every word of a longer query: one telling word of 400 must still count."""

_LINEAR = 0.75
"""Up to here a share is what was measured; beyond it nears 1, so that the better match stays the better."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A search unit that a leg found: a chunk or a fact, of `record_id`.

    `neighbours` are the units next to it in its source; `participant` says that the query names who speaks here.
    """

    id: str
    record_id: RecordId
    neighbours: tuple[str, ...] = ()
    participant: bool = False


@dataclass(frozen=True, slots=True)
class Legs:
    """What each leg found: unit id to share, 0..1. None: the leg did not run."""

    words: Mapping[str, float] | None
    meaning: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class Fused:
    """A record's best passage and the numbers of it. `neighbour` and `participant` are parts of `fused`."""

    record_id: RecordId
    passage_id: str
    fused: float
    lexical: float | None = None
    vector: float | None = None
    neighbour: float = 0.0
    participant: float = 0.0


@dataclass(frozen=True, slots=True)
class Fusing:
    """Every record over the floor, best first, and how many the floor cut."""

    kept: tuple[Fused, ...]
    below_floor: int
    candidates: int = field(default=0)


def words_share(score: float, *, words: int, units: int) -> float:
    """BM25 `score` of a query of `words` words as a share of the best it could be, 0..1.

    `units` is how many search units the index holds: the weight of a word grows with its logarithm.
    """
    ideal = min(max(1, words), _MOST_WORDS) * _USUAL_SHARE * math.log(math.e + units)
    share = max(0.0, score) / ideal
    room = 1 - _LINEAR
    return share if share <= _LINEAR else 1 - room * math.exp((_LINEAR - share) / room)


def meaning_share(cosine: float, calibration: Calibration) -> float:
    """`cosine` between unrelated (0) and the same (1)."""
    span = calibration.cosine_same - calibration.cosine_unrelated
    return min(1.0, max(0.0, (cosine - calibration.cosine_unrelated) / span))


def fuse(passages: Iterable[Passage], legs: Legs, config: RetrievalConfig) -> Fusing:
    """The records that `passages` belong to, by their best passage. Order of the input does not matter."""
    known = {passage.id: passage for passage in passages}
    meaning = _over_threshold(legs.meaning, config)
    base = _scores(Legs(legs.words, meaning), known, config)
    best: dict[RecordId, Fused] = {}
    for id in sorted(base):
        passage = known[id]
        near = [base.get(other, 0.0) for other in passage.neighbours if _elsewhere(known, other, passage)]
        neighbour = config.neighbour_weight * max(near, default=0.0)
        participant = config.participant_weight * base[id] if passage.participant else 0.0
        fused = Fused(
            record_id=passage.record_id,
            passage_id=id,
            fused=min(1.0, base[id] + neighbour + participant),
            lexical=None if legs.words is None else legs.words.get(id),
            vector=None if meaning is None else meaning.get(id),
            neighbour=neighbour,
            participant=participant,
        )
        if passage.record_id not in best or fused.fused > best[passage.record_id].fused:
            best[passage.record_id] = fused
    kept = sorted((one for one in best.values() if one.fused >= config.fused_floor), key=best_first)
    return Fusing(tuple(kept), below_floor=len(best) - len(kept), candidates=len(best))


def _elsewhere(known: Mapping[str, Passage], other: str, passage: Passage) -> bool:
    """Whether `other` belongs to another record: a long text must not lift itself by having many passages."""
    return other in known and known[other].record_id != passage.record_id


def best_first(fused: Fused) -> tuple[float, str]:
    return (-fused.fused, fused.record_id)


def _over_threshold(meaning: Mapping[str, float] | None, config: RetrievalConfig) -> dict[str, float] | None:
    if meaning is None:
        return None
    return {id: share for id, share in meaning.items() if share >= config.vector_threshold}


def _scores(legs: Legs, known: Mapping[str, Passage], config: RetrievalConfig) -> dict[str, float]:
    """The fused score of each passage before the graph adds to it."""
    if legs.words is None or legs.meaning is None:
        return _one_leg(legs, config)
    if config.fusion is Fusion.RRF:
        return reciprocal_ranks([legs.words, legs.meaning])
    total = config.lexical_weight + config.vector_weight
    lexical, vector = config.lexical_weight / total, config.vector_weight / total
    alone = min(lexical, config.lexical_only_cap)
    in_meaning = {known[id].record_id for id in legs.meaning}
    return {
        id: min(
            config.lexical_only_cap, _at_least_found(alone * legs.words.get(id, 0.0), legs.words.get(id, 0.0), config)
        )
        if known[id].record_id not in in_meaning
        else lexical * legs.words.get(id, 0.0) + vector * legs.meaning.get(id, 0.0)
        for id in {*legs.words, *legs.meaning}
    }


def _one_leg(legs: Legs, config: RetrievalConfig) -> dict[str, float]:
    """With one leg alone its share is the score: there is nothing to weigh it against."""
    only = legs.words if legs.meaning is None else legs.meaning
    if only is None:
        return {}
    if config.fusion is Fusion.RRF:
        return reciprocal_ranks([only])
    if legs.meaning is not None:
        return dict(only)
    return {id: _at_least_found(share, share, config) for id, share in only.items()}


def _at_least_found(score: float, share: float, config: RetrievalConfig) -> float:
    """`score`, not under the floor: a word that every text holds weighs nothing in BM25, and still it was found."""
    return max(score, min(1.0, config.fused_floor * (1 + share)))


def reciprocal_ranks(rankings: Sequence[Mapping[str, float]], *, k: float = RRF_K) -> dict[str, float]:
    """Reciprocal-rank score of every id, over the best possible: 1 for what is first everywhere.

    Ids of equal score share the better rank, so that the order of the input does not matter.
    """
    best = len(rankings) / (k + 1)
    scores: dict[str, float] = {}
    for ranking in rankings:
        ordered = sorted(ranking.values(), reverse=True)
        rank_of = {score: rank for rank, score in reversed(list(enumerate(ordered, start=1)))}
        for id, score in ranking.items():
            scores[id] = scores.get(id, 0.0) + 1 / (k + rank_of[score]) / best
    return scores
