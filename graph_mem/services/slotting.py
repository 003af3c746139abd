"""The steps that every change of a slot is made of, each within the transaction that holds the slot's lock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graph_mem.core.model import (
    SUPERSEDES,
    Event,
    Fact,
    Principal,
    RecordId,
    Relation,
    RelationState,
    Standing,
)
from graph_mem.core.slots import FactPlan
from graph_mem.services import Deps
from graph_mem.store import audit, facts, standing
from graph_mem.store.db import Tx
from graph_mem.store.facts import Ending, Seated
from graph_mem.store.jobs import NewJob

EMBED = "embed_fact"
"""The kind of job that gives a fact its embedding."""


def planned(fact: Fact, plan: FactPlan) -> Fact:
    """`fact` with the standing and the end that the plan gives it. What is provisional is not known yet."""
    interval = fact.interval
    for id, end in plan.ends:
        if id == fact.id:
            interval = replace(interval, valid_to=end)
    if plan.standing is Standing.PROVISIONAL:
        interval = replace(interval, known_from=interval.known_to)
    assert plan.standing is not None  # noqa: S101  only called for a plan that writes a fact
    return replace(fact, standing=plan.standing, interval=interval)


@dataclass(frozen=True, slots=True)
class Room:
    """What makes room for a fact: who leaves the seat, whose time ends, what history says, and whom it revoked."""

    leaving: frozenset[RecordId]
    endings: tuple[Ending, ...]
    events: tuple[Event, ...]
    revoked: Fact | None


def room(deps: Deps, principal: Principal, plan: FactPlan, *, fact: Fact, active: Sequence[Fact], at: datetime) -> Room:
    """The room that `plan` makes for `fact` among the facts that are `active`."""
    leaving = frozenset(link.older for link in plan.links if link.newer == fact.id and link.retires)
    ends = {id: end for id, end in plan.ends if id != fact.id}
    gone = [_superseded(one, ends.get(one.id), at) for one in active if one.id in leaving]
    return Room(
        leaving,
        tuple(Ending(id, end, at if id in leaving else None) for id, end in sorted(ends.items())),
        tuple(event(deps, principal, one, "superseded", at, {"by": fact.id}) for one in gone),
        next((one for one in gone if one.id == plan.revoked), None),
    )


def _superseded(fact: Fact, end: datetime | None, at: datetime) -> Fact:
    interval = replace(fact.interval, known_to=at, valid_to=fact.interval.valid_to if end is None else end)
    return replace(fact, standing=Standing.SUPERSEDED, version=fact.version + 1, interval=interval, revoked_at=at)


def links(deps: Deps, principal: Principal, plan: FactPlan, *, at: datetime) -> list[Relation]:
    """The plan's SUPERSEDES links."""
    return [
        Relation(
            id=deps.new_id("rel"),
            kind=SUPERSEDES,
            from_id=one.newer,
            to_id=one.older,
            state=RelationState.ACTIVE,
            by=principal.user_id,
            at=at,
            retires=one.retires,
        )
        for one in plan.links
    ]


async def withdraw(
    tx: Tx, deps: Deps, principal: Principal, seated: Seated, *, at: datetime, reason: str, never: bool
) -> None:
    """Take a fact of a locked slot back: it held until `at`, or with `never` not at all and is refused from now on."""
    fact = seated.fact
    rejected = never or fact.standing is Standing.PROVISIONAL
    await standing.retire(tx, principal, [fact.id], to=Standing.REJECTED if rejected else Standing.SUPERSEDED, at=at)
    begun = fact.interval.valid_from
    until = begun if rejected else max(begun, min(fact.interval.valid_to, at))
    await facts.withdraw(tx, principal, fact.id, at=at, valid_to=until, reason=reason)
    if never:
        await refuse(tx, principal, seated, at=at)
    kind = "rejected" if never else "retracted"
    await audit.append(tx, fact.place, event(deps, principal, fact, kind, at, version=fact.version + 1))


async def refuse(tx: Tx, principal: Principal, seated: Seated, *, at: datetime) -> None:
    """Remember that a person wants this value kept away from this slot."""
    await facts.reject(
        tx,
        seated.fact.place,
        key=seated.seat.rejection_key,
        slot_key=seated.seat.slot_key,
        at=at,
        by=principal.user_id,
    )


def embedding(deps: Deps, fact: Fact) -> NewJob:
    """The job that embeds a fact; until it is done, the fact's words find it."""
    return NewJob(
        id=deps.new_id("job"),
        kind=EMBED,
        record_id=fact.id,
        org_id=fact.place.org_id,
        partition=fact.place.partition_token,
    )


def event(
    deps: Deps,
    principal: Principal,
    fact: Fact,
    kind: str,
    at: datetime,
    detail: dict[str, Any] | None = None,
    *,
    version: int | None = None,
) -> Event:
    """One line of a fact's history: ids and kinds, never its words."""
    return Event(
        id=deps.new_id("evt"),
        record_id=fact.id,
        at=at,
        by=principal.user_id,
        kind=kind,
        version=fact.version if version is None else version,
        detail=detail,
    )


def saved(deps: Deps, principal: Principal, fact: Fact, plan: FactPlan, sources: Sequence[RecordId]) -> Event:
    replaced = [one.older for one in plan.links if one.newer == fact.id and one.retires]
    detail: dict[str, Any] = {"outcome": plan.outcome.value, "standing": fact.standing.value}
    if replaced:
        detail["supersedes"] = replaced
    if sources:
        detail["sources"] = list(sources)
    if plan.lifts_rejection:
        detail["liftsRejection"] = True
    return event(deps, principal, fact, "saved", fact.created_at, detail)


def attested(deps: Deps, principal: Principal, fact: Fact, sources: Sequence[RecordId], *, at: datetime) -> Event:
    return event(deps, principal, fact, "attested", at, {"sources": list(sources)} if sources else None)
