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
from graph_mem.core.model import Memory, Place, Principal, RecordId, Scope, UserId
from graph_mem.core.text import text_hash

T = TypeVar("T", Policy, Variable)


@dataclass(frozen=True, slots=True)
class VersionRef:
    """One version of a policy or variable."""

    id: str
    version: int


@dataclass(frozen=True, slots=True)
class Held:
    """A text that a run's context held, by the hash that copies share, and the record it came from, if from one."""

    text_hash: str
    record_id: RecordId | None


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


def account(
    *,
    id: str,
    run_id: str,
    at: datetime,
    principal: Principal,
    scope: Scope,
    budget_tokens: int,
    prefix: Prefix,
    tail: Tail | None,
    memories: Mapping[RecordId, Memory],
    retrieval_trace_id: str | None,
) -> RunTrace:
    """The trace of one assembly. `memories` are those behind the pins.

    It is its maker's alone as soon as anything private is in it.
    """
    named = {Place(principal.org_id, scope), *_places(prefix, tail, memories)}
    private = any(place.private for place in named)
    return RunTrace(
        id=id,
        run_id=run_id,
        at=at,
        by=principal.user_id,
        place=Place(principal.org_id, scope, principal.user_id if private else None),
        named=tuple(sorted(named, key=lambda place: (place.scope_token, place.owner_id or ""))),
        format=FORMAT,
        budget=budget_tokens,
        used=prefix.tokens + (tail.tokens if tail else 0),
        over_budget=prefix.tokens > budget_tokens,
        policies=tuple(VersionRef(policy.id, policy.version) for policy in prefix.policies),
        variables=tuple(VersionRef(variable.id, variable.version) for variable in prefix.variables),
        pins=prefix.pins,
        absent=prefix.absent,
        semantic_tail=tail is not None,
        tail_record_ids=tuple(hit.record.id for hit in tail.items) if tail else (),
        prefix_hash=prefix.hash,
        prefix_tokens=prefix.tokens,
        tail_hash=digest(tail.text) if tail else None,
        retrieval_trace_id=retrieval_trace_id,
    )


def _places(prefix: Prefix, tail: Tail | None, memories: Mapping[RecordId, Memory]) -> Iterator[Place]:
    """Where everything lives that shows in the two parts or in their account."""
    yield from (policy.place for policy in prefix.policies)
    yield from (variable.place for variable in prefix.variables)
    yield from (absent.pin.place for absent in prefix.absent)
    for shown in prefix.pins:
        yield from (shown.pin.place, memories[shown.memory_id].place)
    yield from (hit.record.place for hit in (tail.items if tail else ()))


def held(prefix: Prefix, tail: Tail | None, memories: Mapping[RecordId, Memory]) -> Iterator[Held]:
    """Every text that could come back as if it were new: each record's, and each part as a whole.

    A part as a whole stands for the first record in it, if there is one.
    """
    for shown in prefix.pins:
        yield Held(text_hash(words_of(memories[shown.memory_id])), shown.memory_id)
    yield Held(text_hash(prefix.text), prefix.pins[0].memory_id if prefix.pins else None)
    if tail is not None and tail.items:
        for hit in tail.items:
            yield Held(text_hash(words_of(hit.record)), hit.record.id)
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
