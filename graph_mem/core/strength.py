"""Signals into one number: how much a record still counts, and how fresh it is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from graph_mem.core.model import Fact, Memory, Record, Signals
from graph_mem.core.vocabulary import Label, Vocabulary

EVERGREEN_FLOOR = 0.9
LEAST = 1e-6
"""Strength never reaches 0: a record that matches may sink, and cannot vanish."""


@dataclass(frozen=True, slots=True)
class Decay:
    """The forgetting curve: `share` of it fades within `fast_days`, the rest along a power law of `slow_days`.

    Source: Ebbinghaus 1885; Murre & Dros 2015; Anderson & Schooler 1991 (power-law tail).
    """

    share: float = 0.6
    fast_days: float = 14.0
    slow_days: float = 180.0
    exponent: float = 0.3


DECAY = Decay()
_RECENCY_HALF_LIFE_DAYS = 30.0
_VALIDATION_HALF_LIFE_DAYS = 90.0
_RETRIEVALS_AT_HALF = 5.0
_KINDS_AT_HALF = 3.0


@dataclass(frozen=True, slots=True)
class Strength:
    """Each signal now, 0..1, and what they come to. None: not known, and left out of the average."""

    value: float
    floor: float
    retention: float
    recency: float
    frequency: float
    diversity: float
    centrality: float | None
    confidence: float
    validation: float
    source_trust: float
    last_validated_at: datetime


NEUTRAL_CONFIDENCE = 0.5
"""What counts where nobody said how sure they are."""


def retention(days: float, decay: Decay = DECAY) -> float:
    """What is left after `days` without validation: 1 at once, falling, never 0."""
    fast = math.exp(-days / decay.fast_days)
    slow = (1 + days / decay.slow_days) ** -decay.exponent
    return decay.share * fast + (1 - decay.share) * slow


def days_between(start: datetime, end: datetime) -> float:
    """Days from `start` to `end`; 0 where `start` lies later."""
    return max(0.0, (end - start) / timedelta(days=1))


def halving(days: float, half_life_days: float) -> float:
    return 0.5 ** (days / half_life_days)


def saturating(count: float, at_half: float) -> float:
    """0 for none, 1/2 for `at_half`, towards 1."""
    return count / (count + at_half)


def floor_of(label: Label | None, *, evergreen: bool) -> float:
    return max(label.floor if label else 0.0, EVERGREEN_FLOOR if evergreen else 0.0)


def strength(
    signals: Signals, *, fresh_at: datetime, now: datetime, floor: float, weights: Mapping[str, float]
) -> Strength:
    """`signals` collapsed at `now`. `fresh_at` is when the record was last saved.

    value = max(floor, retention(days since validation) * weighted mean of the known signals), in (0, 1]. A starting
    strength is what the mean cannot fall under.
    """
    validated = max(signals.last_validated_at or fresh_at, fresh_at)
    since_validated = days_between(validated, now)
    accessed = max(signals.last_retrieved_at or fresh_at, fresh_at)
    confidence = NEUTRAL_CONFIDENCE if signals.confidence is None else signals.confidence
    known = {
        "recency": halving(days_between(accessed, now), _RECENCY_HALF_LIFE_DAYS),
        "frequency": saturating(signals.retrievals, _RETRIEVALS_AT_HALF),
        "diversity": saturating(len(signals.query_kinds), _KINDS_AT_HALF),
        "centrality": signals.centrality,
        "confidence": confidence,
        "validation": halving(since_validated, _VALIDATION_HALF_LIFE_DAYS),
        "sourceTrust": signals.source_trust,
    }
    kept = retention(since_validated)
    mean = max(weighted_mean(known, weights), signals.starting_strength or 0.0)
    return Strength(
        value=min(1.0, max(LEAST, floor, kept * mean)),
        floor=floor,
        retention=kept,
        recency=known["recency"] or 0.0,
        frequency=known["frequency"] or 0.0,
        diversity=known["diversity"] or 0.0,
        centrality=signals.centrality,
        confidence=confidence,
        validation=known["validation"] or 0.0,
        source_trust=signals.source_trust,
        last_validated_at=validated,
    )


def weighted_mean(values: Mapping[str, float | None], weights: Mapping[str, float]) -> float:
    """The mean of what is known, by weight; 0 where nothing with a weight is known."""
    pairs = [(weights.get(name, 0.0), value) for name, value in values.items() if value is not None]
    total = sum(weight for weight, _ in pairs)
    return sum(weight * value for weight, value in pairs) / total if total > 0 else 0.0


def strength_of(record: Record, *, vocabulary: Vocabulary, weights: Mapping[str, float], now: datetime) -> Strength:
    """The strength of a record under its organization's words and weights."""
    match record:
        case Memory():
            label, fresh_at = vocabulary.labels.get(record.label), record.fresh_at
        case Fact():
            label, fresh_at = None, record.created_at
    floor = floor_of(label, evergreen=record.signals.evergreen)
    return strength(record.signals, fresh_at=fresh_at, now=now, floor=floor, weights=weights)


def freshness(age_days: float, half_life_days: float | None) -> float:
    """1 today, half after the half-life; always 1 without one."""
    return 1.0 if half_life_days is None else halving(age_days, half_life_days)
