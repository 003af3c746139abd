"""The slot of a fact, and what saving a sentence does to it.

Pure: the store reads the slot under its lock, `decide` says what is to be written, the store writes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from graph_mem.core.model import FAR, Fact, Place, RecordId, Standing, token
from graph_mem.core.text import name_key, statement_hash
from graph_mem.errors import InvalidInput


class FactOutcome(StrEnum):
    CREATED = "CREATED"
    SUPERSEDED = "SUPERSEDED"
    DEDUPLICATED = "DEDUPLICATED"
    PROVISIONAL = "PROVISIONAL"
    REJECTED_BEFORE = "REJECTED_BEFORE"


def slot_key(place: Place, *, subject: str, relation: str) -> str:
    """The key of a slot: organization, owner, scope, normalized subject and relation."""
    return token("slot", place.partition_token, place.scope_token, name_key(subject), name_key(relation))


def active_key(slot: str, *, statement: str, many: bool) -> str:
    """What is unique among active facts: the slot, or in a set-valued slot the slot and the sentence."""
    return token("active", slot, statement_hash(statement) if many else "")


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact to be saved, under the id it will have. `standing` is what the write gate says: CURRENT or PROVISIONAL.

    `by_person` is False for everything that reaches the store unasked: agents and extraction.
    """

    id: RecordId
    statement: str
    valid_from: datetime
    standing: Standing
    by_person: bool
    valid_to: datetime = FAR

    def __post_init__(self) -> None:
        if self.valid_to <= self.valid_from:
            raise InvalidInput(
                f"validTo {self.valid_to.isoformat()} is not after validFrom {self.valid_from.isoformat()}.",
                path=("validTo",),
            )


@dataclass(frozen=True, slots=True)
class SlotState:
    """What the store holds, read under the slot's lock.

    `active`: the active fact, in a set-valued slot the one with the claim's sentence. `others` are active beside it
    because the relation was set-valued once. `past`: superseded facts of the slot in any order, needed only for a
    claim that begins before the active fact. `pending`: the provisional fact with the claim's sentence. `rejected`:
    whether a person rejected this value.
    """

    active: Fact | None = None
    others: Sequence[Fact] = ()
    past: Sequence[Fact] = ()
    pending: Fact | None = None
    rejected: bool = False
    many: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A SUPERSEDES link to write."""

    newer: RecordId
    older: RecordId
    retires: bool


@dataclass(frozen=True, slots=True)
class FactPlan:
    """What saving a claim writes.

    `standing`: of the new fact, None if none is written. `existing`: the fact that gains the claim's sources
    instead. `revoked`: the fact that stops being active. `ends`: the end of validity that facts get, the claim too
    where it would run into a fact after it. `bypassed`: a link that the new fact now stands in the middle of.
    `lifts_rejection`: the marker goes.
    """

    outcome: FactOutcome
    standing: Standing | None = None
    existing: RecordId | None = None
    revoked: RecordId | None = None
    links: tuple[Link, ...] = ()
    ends: tuple[tuple[RecordId, datetime], ...] = ()
    bypassed: tuple[RecordId, RecordId] | None = None
    lifts_rejection: bool = False


def decide(claim: Claim, state: SlotState) -> FactPlan:
    """What becomes of `claim` in its slot. Pure: the same claim and state give the same plan.

    A value that a person rejected comes back only by a person. A provisional claim touches nothing. The same sentence
    adds a source. A claim whose time ended before the active fact's began is history; any other
    replaces the active fact.
    """
    if state.rejected and not claim.by_person:
        return FactPlan(FactOutcome.REJECTED_BEFORE)
    if claim.standing is Standing.PROVISIONAL:
        return _provisional(claim, state)
    plan = _into_set(claim, state) if state.many else _into_slot(claim, state)
    return replace(plan, lifts_rejection=state.rejected)


def _same(claim: Claim, fact: Fact | None) -> bool:
    return fact is not None and statement_hash(claim.statement) == statement_hash(fact.statement)


def _provisional(claim: Claim, state: SlotState) -> FactPlan:
    known = next((fact for fact in (state.active, state.pending) if fact is not None and _same(claim, fact)), None)
    if known is not None:
        return FactPlan(FactOutcome.DEDUPLICATED, existing=known.id)
    return FactPlan(FactOutcome.PROVISIONAL, standing=Standing.PROVISIONAL)


def _into_set(claim: Claim, state: SlotState) -> FactPlan:
    if state.active is not None and _same(claim, state.active):
        return FactPlan(FactOutcome.DEDUPLICATED, existing=state.active.id)
    return FactPlan(FactOutcome.CREATED, standing=Standing.CURRENT)


def _into_slot(claim: Claim, state: SlotState) -> FactPlan:
    active = state.active
    if active is None:
        return FactPlan(FactOutcome.CREATED, standing=Standing.CURRENT)
    if claim.valid_to <= active.interval.valid_from:
        return _history(claim, active, state.past)
    if _same(claim, active):
        return FactPlan(FactOutcome.DEDUPLICATED, existing=active.id)
    return FactPlan(
        FactOutcome.SUPERSEDED,
        standing=Standing.CURRENT,
        revoked=active.id,
        links=tuple(Link(claim.id, fact.id, retires=True) for fact in (active, *state.others)),
        ends=tuple(
            (fact.id, _end(fact, claim.valid_from))
            for fact in (active, *state.others, *state.past)
            if fact.interval.valid_to > claim.valid_from
        ),
    )


def _end(fact: Fact, successor_from: datetime) -> datetime:
    """Until when `fact` held: its own end or its successor's beginning, never before it began."""
    return max(fact.interval.valid_from, min(fact.interval.valid_to, successor_from))


def _history(claim: Claim, active: Fact, past: Sequence[Fact]) -> FactPlan:
    """A late-arriving fact: not current, between its neighbours in time, retiring nothing.

    Facts that a correction or a back-dated successor left no time to hold are nobody's neighbours: the others follow
    each other in time as they do in the chain, so that no link can close a ring.
    """
    held = [fact for fact in past if fact.interval.valid_from < fact.interval.valid_to]
    chain = sorted((*held, active), key=_by_validity)
    twin = next((fact for fact in chain if _same(claim, fact) and _overlap(claim, fact)), None)
    if twin is not None:
        return FactPlan(FactOutcome.DEDUPLICATED, existing=twin.id)
    newer = next(fact for fact in chain if fact.interval.valid_from > claim.valid_from)
    older = next((fact for fact in reversed(chain) if fact.interval.valid_from <= claim.valid_from), None)
    return FactPlan(
        FactOutcome.CREATED,
        standing=Standing.SUPERSEDED,
        links=(
            Link(newer.id, claim.id, retires=True),
            *([Link(claim.id, older.id, retires=False)] if older else []),
        ),
        ends=(
            (claim.id, min(claim.valid_to, newer.interval.valid_from)),
            *([(older.id, _end(older, claim.valid_from))] if older else []),
        ),
        bypassed=(newer.id, older.id) if older else None,
    )


def _by_validity(fact: Fact) -> tuple[datetime, datetime, str]:
    return (fact.interval.valid_from, fact.created_at, fact.id)


def _overlap(claim: Claim, fact: Fact) -> bool:
    return claim.valid_from < fact.interval.valid_to and fact.interval.valid_from < claim.valid_to
