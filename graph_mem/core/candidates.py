"""What the consolidation cycle finds worth proposing. Pure: a record and its signals in, a candidate or None out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any

from graph_mem.core import gates
from graph_mem.core.lifecycle import LifecycleConfig
from graph_mem.core.lookalikes import ASCII_LOOKALIKES
from graph_mem.core.model import Entity, Memory
from graph_mem.core.proposals import ProposalKind
from graph_mem.core.strength import days_between, saturating, strength_of
from graph_mem.core.text import how_many, name_key
from graph_mem.core.vocabulary import Vocabulary

OFTEN_AT_HALF = 5.0
KINDS_AT_HALF = 3.0
SAID_AT_HALF = 1.0
SATURATED = 0.8
"""A record that came up 20 times; what else it is worth should show by then."""
LOW_VALUE = 0.3
LEAST_AGE_DAYS = 30.0
"""Nothing younger is proposed for the archive or lower rank, whatever its numbers."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something worth proposing. `basis` changes when there is reason to propose it again."""

    kind: ProposalKind
    subject_ids: tuple[str, ...]
    score: float
    signals: Mapping[str, float]
    gate: str
    reason: str
    basis: tuple[object, ...] = ()
    change: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Seen:
    """A current memory as the cycle reads it. `judged` are signals that a model gave, if one was asked."""

    memory: Memory
    pinned: bool = False
    judged: Mapping[str, float] = field(default_factory=dict[str, float])


def measured(seen: Seen) -> dict[str, float | None]:
    """The gate's signals: what is counted from activity, and what the graph, the author or a model says."""
    signals = seen.memory.signals
    return {
        "recurrence": saturating(signals.retrievals + seen.memory.fold_count, OFTEN_AT_HALF),
        "diversity": saturating(len(signals.query_kinds), KINDS_AT_HALF),
        "centrality": signals.centrality if signals.centrality is not None else seen.judged.get("centrality"),
        "confidence": signals.confidence if signals.confidence is not None else seen.judged.get("confidence"),
        "worth": seen.judged.get("worth"),
    }


def promotion(seen: Seen, *, vocabulary: Vocabulary, config: LifecycleConfig) -> Candidate | None:
    """A finding whose signals pass the gate, proposed for the label that the organization promotes to."""
    memory, target = seen.memory, vocabulary.labels.get(config.promote_to)
    label = vocabulary.labels.get(memory.label)
    if target is None or target.position or memory.position or memory.label == target.name:
        return None
    if label is not None and (label.protected or label.default_importance >= target.default_importance):
        return None
    verdict = gates.judge(measured(seen), config)
    if not verdict.passed:
        return None
    return Candidate(
        ProposalKind.PROMOTE_MEMORY,
        (memory.id,),
        verdict.score,
        _numbers(seen),
        gate=verdict.reason,
        reason=f"Came up {how_many(memory.signals.retrievals, 'time')},"
        f" for {how_many(len(memory.signals.query_kinds), 'kind')} of question.",
        basis=(memory.label, target.name),
        change={"from": memory.label, "to": target.name, "importance": target.default_importance},
    )


def demotion(seen: Seen, *, vocabulary: Vocabulary, now: datetime) -> Candidate | None:
    """A finding that comes up all the time and is worth little by every other measure."""
    memory, signals = seen.memory, measured(seen)
    if _spared(seen, vocabulary) or _age_days(memory, now) < LEAST_AGE_DAYS or memory.importance < 0.1:
        return None
    often = saturating(memory.signals.retrievals, OFTEN_AT_HALF)
    others = [value for name, value in signals.items() if name != "recurrence" and value is not None]
    value = sum(others) / len(others) if others else 0.0
    if often < SATURATED or value >= LOW_VALUE:
        return None
    return Candidate(
        ProposalKind.DEMOTE,
        (memory.id,),
        value,
        _numbers(seen),
        gate=f"retrieved {how_many(memory.signals.retrievals, 'time')}, value apart from that {value:.2f},"
        f" bar {LOW_VALUE:.2f}",
        reason="Comes up all the time, for one kind of question, and nothing else speaks for it.",
        basis=(memory.signals.retrievals // 50,),
        change={"importance": memory.importance / 2},
    )


def weak(
    seen: Seen, *, vocabulary: Vocabulary, config: LifecycleConfig, weights: Mapping[str, float], now: datetime
) -> Candidate | None:
    """A finding so weak that it may go to the archive."""
    memory = seen.memory
    if _spared(seen, vocabulary) or _age_days(memory, now) < LEAST_AGE_DAYS:
        return None
    strength = strength_of(memory, vocabulary=vocabulary, weights=weights, now=now).value
    if strength >= config.archive_below:
        return None
    used = memory.signals.last_retrieved_at
    return Candidate(
        ProposalKind.ARCHIVE,
        (memory.id,),
        strength,
        {**_numbers(seen), "strength": strength},
        gate=f"strength {strength:.3f}, bar {config.archive_below:.3f}",
        reason="Never retrieved."
        if used is None
        else f"Last retrieved {how_many(days_between(used, now), 'day')} ago.",
        basis=(used, memory.signals.last_validated_at, memory.fresh_at),
    )


def claim_score(
    *, statements: int, retrievals: int, query_kinds: int, confidence: float, config: LifecycleConfig
) -> gates.Verdict:
    """What the gate says of a claim that `statements` memories make, which were retrieved so often."""
    diversity = saturating(query_kinds, KINDS_AT_HALF) if retrievals else None
    recurrence = saturating(statements + retrievals, SAID_AT_HALF)
    return gates.judge({"recurrence": recurrence, "diversity": diversity, "confidence": confidence}, config)


def _spared(seen: Seen, vocabulary: Vocabulary) -> bool:
    """Whether nobody proposes less of it: positions, protected labels, evergreen and pinned memories."""
    label = vocabulary.labels.get(seen.memory.label)
    protected = label is not None and label.protected
    return seen.memory.position or protected or seen.memory.signals.evergreen or seen.pinned


def _age_days(memory: Memory, now: datetime) -> float:
    return days_between(max(memory.fresh_at, memory.signals.last_validated_at or memory.fresh_at), now)


def _numbers(seen: Seen) -> dict[str, float]:
    known = {name: round(value, 4) for name, value in measured(seen).items() if value is not None}
    signals = seen.memory.signals
    return {**known, "retrievals": signals.retrievals, "queryKinds": len(signals.query_kinds)}


_LEGAL_FORMS = frozenset(
    {"ag", "bv", "co", "company", "corp", "corporation", "gmbh", "inc", "incorporated", "llc", "llp", "ltd", "limited"}
    | {"plc", "sa", "sarl", "srl"}
)
_LARGEST_BLOCK = 50


def twins(entities: Sequence[Entity]) -> Iterator[Candidate]:
    """Pairs of entities of one label and place whose names are nearly one; the better-known name stays.

    Linear in the number of entities: only those that share a rare part of their name are compared, and of a part
    that very many share only the first few.
    """
    blocks: dict[tuple[object, ...], list[_Named]] = {}
    for entity in entities:
        named = _Named(entity, _core_name(entity.name), tuple(map(_core_name, entity.aliases)))
        for part in named.parts:
            blocks.setdefault((entity.place, entity.label, part), []).append(named)
    told: set[frozenset[str]] = set()
    for block in blocks.values():
        for one, other in combinations(block[:_LARGEST_BLOCK], 2):
            found = _likeness(one, other)
            pair = frozenset((one.entity.id, other.entity.id))
            if found is not None and len(pair) == 2 and pair not in told:
                told.add(pair)
                yield _twin(one.entity, other.entity, likeness=found[0], why=found[1])


def _twin(one: Entity, other: Entity, *, likeness: float, why: str) -> Candidate:
    heir, gone = sorted((one, other), key=lambda entity: (-(entity.centrality or 0.0), entity.id))
    return Candidate(
        ProposalKind.MERGE_ENTITIES,
        (heir.id, gone.id),
        likeness,
        {"likeness": likeness},
        gate=f"names {likeness:.2f} alike, bar {_ALIKE:.2f}",
        reason=why,
        basis=(heir.name, gone.name),
    )


_ALIKE = 0.75
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Named:
    """An entity with its names in the form they are compared in."""

    entity: Entity
    name: str
    aliases: tuple[str, ...]

    @property
    def parts(self) -> set[str]:
        """What twins have at least one of in common: a word, how the name begins, how it ends."""
        names = [name for name in (self.name, *self.aliases) if name]
        joined = ["".join(name.split()) for name in names]
        words = {word for name in names for word in name.split() if len(word) > 2}
        return {*words, *(f"{name[:4]}-" for name in joined), *(f"-{name[-4:]}" for name in joined)}


def _core_name(name: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in name_key(name).translate(ASCII_LOOKALIKES)).split()
    core = [word for word in words if word not in _LEGAL_FORMS]
    return " ".join(core or words)


def _likeness(one: _Named, other: _Named) -> tuple[float, str] | None:
    """How alike two entities are named, 0.75..1, and by what; None if they are not.

    Of names with digits every character counts: part and order numbers that are nearly one are two.
    """
    mine, theirs = one.name, other.name
    if not mine or not theirs:
        return None
    if _NUMBER.findall(mine) != _NUMBER.findall(theirs):
        return None
    if mine == theirs or mine.replace(" ", "") == theirs.replace(" ", ""):
        return 0.95, "The names differ only in spelling or legal form."
    if mine in other.aliases or theirs in one.aliases:
        return 0.95, "The name of one is an alias of the other."
    if _NUMBER.search(mine):
        return None
    if _initials(mine.split(), theirs.split()):
        return 0.8, "One name shortens the other."
    if min(len(mine), len(theirs)) >= 6 and mine[0] == theirs[0] and _one_slip(mine, theirs):
        return 0.75, "The names differ in one character."
    return None


def _initials(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the names have the same words, some of them as initials, and one word in full in common."""
    if len(one) != len(other) or len(one) < 2:
        return False
    pairs = list(zip(one, other, strict=True))
    fits = all(a == b or (a[0] == b[0] and 1 in (len(a), len(b))) for a, b in pairs)
    return fits and any(a == b and len(a) > 2 for a, b in pairs)


def _one_slip(one: str, other: str) -> bool:
    """Whether one letter was replaced, left out or put in."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[start:], other[start:]
    return (a[1:] == b[1:]) or (a == b[1:]) or (a[1:] == b)
