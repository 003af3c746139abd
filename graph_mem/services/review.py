"""The review queue: what waits, deciding, what people decided so far."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from graph_mem.core import trust
from graph_mem.core.model import FAR, Page, Principal, RecordId, is_id
from graph_mem.core.proposals import Decision, Effect, Proposal, ProposalKind, ProposalState, TrustCount, low_risk, step
from graph_mem.core.text import check_reason
from graph_mem.errors import Conflict, Forbidden, NotFound
from graph_mem.services import Deps, applying, lifecycle, promoting
from graph_mem.services.applying import Decider
from graph_mem.services.standards import standards_of
from graph_mem.store import rehearsals, reviews, traces
from graph_mem.store.db import Tx
from graph_mem.store.rehearsals import Enrolled
from graph_mem.store.reviews import Filter

_OVERLAP = timedelta(seconds=5)
_POLL_S = 1.0
_MOST_RETRIEVALS = 20
_LATELY = timedelta(days=2)
"""What is older was enrolled by the nightly cycle."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """What people decided about a shape of change, and whether the next is kept unasked."""

    count: TrustCount
    auto_keep: bool


@dataclass(frozen=True, slots=True)
class QueueEvent:
    """A proposal that was filed or decided, and how many wait now."""

    proposal: Proposal
    remaining: int


async def decide(
    deps: Deps,
    principal: Principal,
    id: str,
    decision: Decision,
    *,
    reason: str | None = None,
    expected_version: int | None = None,
) -> Proposal:
    """Keep or revert a proposal, with all that follows, in one transaction.

    Of two who decide at the same time one wins. Errors: NotFound; Forbidden; Conflict if somebody decided first or
    the change can no longer be made, or restored exactly.
    """
    check_reason(reason)
    seen = await _seen(deps, principal, id)
    standards = await standards_of(deps, principal.org_id)
    if not lifecycle.may_decide(principal, seen.place, standards.lifecycle):
        raise Forbidden(f"Your role {principal.role} decides nothing in this scope.")
    expected = seen.version if expected_version is None else expected_version
    who = Decider(principal, principal.user_id, standards)

    async def work(tx: Tx) -> Proposal:
        proposal = await reviews.lock(tx, principal, id)
        if proposal is None:
            raise NotFound(id, path=("id",))
        if proposal.version != expected:
            raise Conflict(
                f"The proposal is at version {proposal.version}, expected {expected}: somebody decided first.",
                current_version=proposal.version,
            )
        next_step = step(proposal, decision)
        match next_step.effect:
            case Effect.APPLY:
                await applying.apply(tx, deps, who, proposal)
            case Effect.UNDO:
                await applying.undo(tx, deps, who, proposal)
            case Effect.NOTHING if decision is Decision.REVERT and proposal.kind is ProposalKind.PROMOTE_FACT:
                await promoting.decline(tx, deps, principal, RecordId(proposal.subject_ids[0]), reason=reason)
            case Effect.NOTHING:
                pass
        return await reviews.decide(tx, principal, id, next_step, by=principal.user_id, at=deps.clock(), reason=reason)

    decided = await deps.db.write(work)
    deps.wakeups.notify()
    return decided


async def _seen(deps: Deps, principal: Principal, id: str) -> Proposal:
    found = await by_ids(deps, principal, [id]) if is_id(id, "prop") else []
    if not found:
        raise NotFound(id, path=("id",))
    return found[0]


async def by_ids(deps: Deps, principal: Principal, ids: list[str]) -> list[Proposal]:
    """The proposals among `ids` that `principal` may see."""

    async def work(tx: Tx) -> list[Proposal]:
        return await reviews.by_ids(tx, principal, ids)

    return await deps.db.read(work)


async def retrievals(deps: Deps, principal: Principal, proposals: Sequence[Proposal]) -> list[list[str]]:
    """For each proposal the traces of the searches its counts come from, newest first, that `principal` may see."""
    counted = {one.id: _counted(one) for one in proposals}
    ids = {id for those in counted.values() for id in those}

    async def work(tx: Tx) -> dict[RecordId, list[tuple[datetime, str]]]:
        return await traces.returning(tx, principal, ids, most=_MOST_RETRIEVALS)

    of = await deps.db.read(work) if ids else {}
    return [_newest({found for id in counted[one.id] for found in of[id]}, until=one.proposed_at) for one in proposals]


def _counted(one: Proposal) -> list[RecordId]:
    """The records whose retrievals were counted for a proposal: those a claim was read in, else its subject."""
    if "retrievals" not in one.signals:
        return []
    ids = one.evidence_ids if one.kind is ProposalKind.PROMOTE_FACT else one.subject_ids
    return [RecordId(id) for id in ids]


def _newest(found: Collection[tuple[datetime, str]], *, until: datetime) -> list[str]:
    return [id for at, id in sorted(found, reverse=True) if at <= until][:_MOST_RETRIEVALS]


async def queue(deps: Deps, principal: Principal, filter: Filter, page: Page) -> list[Proposal]:
    """Proposals, oldest first; one more than asked for when there are more."""

    async def work(tx: Tx) -> list[Proposal]:
        return await reviews.page(tx, principal, filter, page)

    return await deps.db.read(work)


async def count(deps: Deps, principal: Principal, filter: Filter) -> int:
    async def work(tx: Tx) -> int:
        return await reviews.count(tx, principal, filter)

    return await deps.db.read(work)


async def trusted(deps: Deps, principal: Principal) -> list[Trusted]:
    """Every shape of change on shared records that people decided about."""
    config = await deps.settings.lifecycle(principal.org_id)

    async def work(tx: Tx) -> list[TrustCount]:
        return await reviews.trust(tx, principal, owner_id=None)

    counts = await deps.db.read(work)
    return [Trusted(one, trust.keeps_unasked(one, config, low_risk=low_risk(one.kind, one.shape))) for one in counts]


async def due(deps: Deps, principal: Principal, *, only_due: bool, page: Page) -> list[Enrolled]:
    """Rehearsals, soonest first, what was saved lately among them; one more than asked for when there are more."""
    now = deps.clock()
    await lifecycle.enrol(deps, principal, since=now - _LATELY)
    until = now if only_due else FAR

    async def work(tx: Tx) -> list[Enrolled]:
        return await rehearsals.page(tx, principal, until=until, page=page)

    return await deps.db.read(work)


async def watch(
    deps: Deps, principal: Principal, kinds: tuple[ProposalKind, ...] | None, *, since: datetime
) -> AsyncIterator[QueueEvent]:
    """Every proposal as it is filed or decided from `since` on, wherever that happens."""
    told: dict[str, int] = {}
    while True:
        for proposal, at in await _changed(deps, principal, kinds, since - _OVERLAP):
            if told.get(proposal.id) != proposal.version and (proposal.id in told or at >= since):
                told[proposal.id] = proposal.version
                waiting = Filter(kinds, (ProposalState.PENDING,))
                yield QueueEvent(proposal, await count(deps, principal, waiting))
            since = max(since, at)
        await deps.wakeups.wait(_POLL_S)
        await asyncio.sleep(0)


async def _changed(
    deps: Deps, principal: Principal, kinds: tuple[ProposalKind, ...] | None, since: datetime
) -> list[tuple[Proposal, datetime]]:
    async def work(tx: Tx) -> list[tuple[Proposal, datetime]]:
        return await reviews.changed(tx, principal, kinds=kinds, since=since)

    return await deps.db.read(work)
