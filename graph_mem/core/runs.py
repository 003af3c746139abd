"""The account of one context: exactly what was in force, without the words themselves.

It names versions and digests, so a prefix can be rendered again from what the store keeps, and erasing a record
needs to take nothing out of it but digests.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from graph_mem.core.canon import AbsentPin, Policy, Variable
from graph_mem.core.context import FORMAT, PinText, Prefix, ShownPin, Tail, digest, render, words_of
from graph_mem.core.model import Place, RecordId, UserId
from graph_mem.core.text import text_hash

T = TypeVar("T", Policy, Variable)


@dataclass(frozen=True, slots=True)
class VersionRef:
    """One version of a policy or variable."""

    id: str
    version: int


@dataclass(frozen=True, slots=True)
class Held:
    """A text that a run's context held, by the hash that copies share, and the record it came from."""

    text_hash: str
    record_id: RecordId


@dataclass(frozen=True, slots=True)
class RunTrace:
    """One assembly. `place` is where it ran, owned by the caller if anything private was in it.

    `named` are the places of all that it names: whoever may see these all may see the trace. `format` is the
    rendering it was made with.
    """

    id: str
    run_id: str
    at: datetime
    by: UserId
    place: Place
    named: tuple[Place, ...]
    format: int
    budget: int
    used: int
    over_budget: bool
    policies: tuple[VersionRef, ...]
    variables: tuple[VersionRef, ...]
    pins: tuple[ShownPin, ...]
    absent: tuple[AbsentPin, ...]
    semantic_tail: bool
    tail_record_ids: tuple[RecordId, ...]
    prefix_hash: str
    prefix_tokens: int
    tail_hash: str | None
    retrieval_trace_id: str | None


class RebuildState(StrEnum):
    """EXACT: the very bytes. ERASED: something it named was erased since. CHANGED: rendered differently now."""

    EXACT = "EXACT"
    ERASED = "ERASED"
    CHANGED = "CHANGED"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The prefix that a run saw. `text` is None unless it is exactly that; `missing` are erased memories."""

    state: RebuildState
    text: str | None = None
    missing: tuple[RecordId, ...] = ()


def held(prefix: Prefix, pinned: Mapping[RecordId, str], tail: Tail) -> Iterator[Held]:
    """Every text that could come back as if it were new: each record's, and each part as a whole.

    A part as a whole stands for the first record in it.
    """
    for id, text in pinned.items():
        yield Held(text_hash(text), id)
    for hit in tail.items:
        yield Held(text_hash(words_of(hit.record)), hit.record.id)
    if prefix.pins:
        yield Held(text_hash(prefix.text), prefix.pins[0].memory_id)
    if tail.items:
        yield Held(text_hash(tail.text), tail.items[0].record.id)


def rebuilt(
    trace: RunTrace,
    policies: Sequence[Policy],
    variables: Sequence[Variable],
    words: Mapping[RecordId, PinText],
) -> Rebuilt:
    """The prefix of `trace`, rendered from the versions it names; `words` lacks erased memories."""
    missing = tuple(pin.memory_id for pin in trace.pins if pin.memory_id not in words)
    if missing:
        return Rebuilt(RebuildState.ERASED, missing=missing)
    ordered_policies, ordered_variables = _named(trace.policies, policies), _named(trace.variables, variables)
    if trace.format != FORMAT or ordered_policies is None or ordered_variables is None:
        return Rebuilt(RebuildState.CHANGED)
    pins = [(pin, words[pin.memory_id]) for pin in trace.pins]
    text = render(trace.place.scope, ordered_policies, ordered_variables, pins)
    return Rebuilt(RebuildState.EXACT, text) if digest(text) == trace.prefix_hash else Rebuilt(RebuildState.CHANGED)


def _named(refs: Sequence[VersionRef], found: Sequence[T]) -> list[T] | None:
    by_ref = {VersionRef(one.id, one.version): one for one in found}
    return [by_ref[ref] for ref in refs] if all(ref in by_ref for ref in refs) else None
