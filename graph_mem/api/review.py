"""The review queue over the API: what waits, deciding, following; and all of housekeeping put together."""

from collections.abc import AsyncGenerator
from typing import Annotated

import strawberry

from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.housekeeping import HousekeepingMutation, HousekeepingQuery
from graph_mem.api.nodes import After, Connection, First, connection, page_of
from graph_mem.api.proposals import Proposal, Rehearsal, TrustStat, rehearsals_of
from graph_mem.api.session import Info
from graph_mem.core.proposals import Decision, ProposalKind, ProposalState
from graph_mem.services import consolidation, review
from graph_mem.store.reviews import Filter
from graph_mem.store.times import ms

_OLDEST = "proposal.oldest"
_SOONEST = "rehearsal.soonest"

Kinds = Annotated[list[ProposalKind] | None, strawberry.argument(description="Only these kinds.")]


@strawberry.input(description="A person's word on a proposal.")
class DecideInput:
    id: strawberry.ID = strawberry.field(description="The proposal.")
    decision: Decision = strawberry.field(description="Keep or revert.")
    reason: str | None = strawberry.field(default=None, description="Why, for whoever reads the history.")
    expected_version: int | None = strawberry.field(default=None, description="Refuse if the proposal has another.")


@strawberry.type(description="What became of a decision.")
class ProposalPayload:
    proposal: Proposal | None = strawberry.field(description="The proposal now; null exactly when there are errors.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.type(description="A proposal was filed or decided.")
class ReviewQueueEvent:
    proposal: Proposal = strawberry.field(description="The proposal as it is now.")
    remaining: int = strawberry.field(description="How many proposals wait for you now, of these kinds.")


@strawberry.type
class ReviewQuery(HousekeepingQuery):
    @strawberry.field(description="Proposals, oldest first; those that wait, if no states are named.")
    async def review_queue(
        self,
        info: Info,
        kinds: Kinds = None,
        states: Annotated[
            list[ProposalState] | None, strawberry.argument(description="Only these; left out: PENDING.")
        ] = None,
        first: First = 20,
        after: After = None,
    ) -> Connection[Proposal] | None:
        context = info.context
        page = page_of(_OLDEST, first=first, after=after, keys=(str,))
        wanted = (ProposalState.PENDING,) if states is None else tuple(states)
        filter = Filter(None if kinds is None else tuple(kinds), wanted)
        return connection(
            await review.queue(context.deps, context.principal, filter, page),
            page,
            order=_OLDEST,
            keys=lambda one: (one.id,),
            node=Proposal.of,
            count=lambda: review.count(context.deps, context.principal, filter),
        )

    @strawberry.field(description="What people decided so far, by shape of change.")
    async def trust(self, info: Info) -> list[TrustStat]:
        return [TrustStat.of(one) for one in await review.trusted(info.context.deps, info.context.principal)]

    @strawberry.field(description="Records to look at again, soonest first.")
    async def rehearsals(
        self,
        info: Info,
        due: Annotated[bool, strawberry.argument(description="Only what is due now.")] = True,
        first: First = 20,
        after: After = None,
    ) -> Connection[Rehearsal] | None:
        page = page_of(_SOONEST, first=first, after=after)
        found = await review.due(info.context.deps, info.context.principal, only_due=due, page=page)
        return connection(
            await rehearsals_of(info, found),
            page,
            order=_SOONEST,
            keys=lambda pair: (ms(pair[0].rehearsal.due_at), pair[0].record_id),
            node=lambda pair: pair[1],
        )


@strawberry.type
class ReviewMutation(HousekeepingMutation):
    @strawberry.mutation(description="Keeps or reverts a proposal, with all that follows, in one transaction.")
    async def decide(self, info: Info, input: DecideInput) -> ProposalPayload:
        context = info.context
        done = review.decide(
            context.deps,
            context.principal,
            input.id,
            input.decision,
            reason=input.reason,
            expected_version=input.expected_version,
        )
        proposal, errors = await attempt(done)
        return ProposalPayload(proposal=Proposal.of(proposal) if proposal else None, errors=errors)

    @strawberry.mutation(description="Runs the consolidation cycle now; returns how many proposals it filed.")
    async def consolidate(self, info: Info) -> int:
        return (await consolidation.consolidate(info.context.deps, info.context.principal)).filed


@strawberry.type
class ReviewSubscription:
    @strawberry.subscription(description="Every proposal as it is filed or decided, from now on.")
    async def review_queue(self, info: Info, kinds: Kinds = None) -> AsyncGenerator[ReviewQueueEvent, None]:
        context = info.context
        wanted = None if kinds is None else tuple(kinds)
        async for event in review.watch(context.deps, context.principal, wanted, since=context.deps.clock()):
            yield ReviewQueueEvent(proposal=Proposal.of(event.proposal), remaining=event.remaining)
