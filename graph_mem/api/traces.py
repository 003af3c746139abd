"""The accounts that searches leave, and the access log."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry

from graph_mem.api.nodes import (
    After,
    Connection,
    First,
    IdArgument,
    Node,
    PageInfo,
    Scope,
    TimeRange,
    connection,
    page_of,
)
from graph_mem.api.records import Record, by_id, record_type
from graph_mem.api.retrieval import RetrievalConfig
from graph_mem.api.search import Leg, Score, scopes_of
from graph_mem.api.session import Info
from graph_mem.core import retrieval
from graph_mem.core.model import RecordId, UserId
from graph_mem.core.retrieval import RetrievalMode, Tier
from graph_mem.services import accounts
from graph_mem.store import traces as stored
from graph_mem.store.times import ms
from graph_mem.store.traces import Between

_NEWEST = "trace.newest"
_ACCESS = "access.newest"

Modes = Annotated[list[RetrievalMode] | None, strawberry.argument(description="Only these modes.")]
At = Annotated[TimeRange | None, strawberry.argument(description="Only what happened in this time.")]


@strawberry.type(description="A result as it was ranked.")
class TraceHit:
    rank: int = strawberry.field(description="Its place.")
    record_id: strawberry.ID = strawberry.field(description="Which record.")
    tier: Tier = strawberry.field(description="Its tier.")
    score: Score = strawberry.field(description="Every number that made its rank.")

    @strawberry.field(description="Null when no longer visible.")
    async def node(self, info: Info) -> Record | None:
        found = await info.context.once(by_id).load(RecordId(self.record_id))
        return record_type(found) if found else None


@strawberry.type(description="The stored account of one search: why it answered what it did.")
class RetrievalTrace(Node):
    at: datetime = strawberry.field(description="When it was asked.")
    by: strawberry.ID = strawberry.field(description="Who asked.")
    query: str | None = strawberry.field(description="What was asked; null once something it found is erased.")
    mode: RetrievalMode = strawberry.field(description="Which legs the answer stands on.")
    degraded_reason: str | None = strawberry.field(description="Why the mode is not HYBRID.")
    legs: list[Leg] = strawberry.field(description="How each leg fared.")
    config: RetrievalConfig = strawberry.field(description="Weights and thresholds in force.")
    fused_candidates: int = strawberry.field(description="How many records the legs brought together.")
    below_floor: int = strawberry.field(description="How many of them the relevance floor cut.")
    passed_over: int = strawberry.field(description="Matches passed over because they are not current.")
    pending: int = strawberry.field(description="Records of the scope that were still being processed.")
    diversified: bool = strawberry.field(description="Whether look-alikes were made to wait (MMR).")
    took_ms: float = strawberry.field(description="Milliseconds until the ranking stood.")
    notes: list[str] = strawberry.field(description="What else had a part: signals that were missing, for instance.")
    hits: list[TraceHit] = strawberry.field(description="What was handed out, in order.")
    trace: strawberry.Private[retrieval.Trace]

    @strawberry.field(description="The scopes that were searched.")
    async def scopes_searched(self, info: Info) -> list[Scope]:
        return await scopes_of(info, self.trace)

    @classmethod
    def of(cls, found: tuple[retrieval.Trace, int]) -> "RetrievalTrace":
        trace, served = found
        return cls(
            id=strawberry.ID(trace.id),
            at=trace.at,
            by=strawberry.ID(trace.by),
            query=trace.query,
            mode=trace.mode,
            degraded_reason=trace.degraded_reason,
            legs=[Leg.of(leg) for leg in trace.legs],
            config=RetrievalConfig.of(trace.config),
            fused_candidates=trace.fused_candidates,
            below_floor=trace.below_floor,
            passed_over=trace.passed_over,
            pending=trace.pending,
            diversified=trace.diversified,
            took_ms=trace.took_ms,
            notes=list(trace.notes),
            hits=[
                TraceHit(
                    rank=hit.rank, record_id=strawberry.ID(hit.record_id), tier=hit.tier, score=Score.of(hit.score)
                )
                for hit in trace.hits[:served]
            ],
            trace=trace,
        )


@strawberry.type(description="One access: who did what, when.")
class AccessLogEntry:
    id: strawberry.ID = strawberry.field(description="The id of the entry.")
    at: datetime = strawberry.field(description="When.")
    by: strawberry.ID = strawberry.field(description="Who.")
    action: str = strawberry.field(description="What was done: `search`, for instance.")
    mode: RetrievalMode | None = strawberry.field(description="For a search: which legs its answer stood on.")
    record_id: strawberry.ID | None = strawberry.field(description="The record concerned, if it was one.")
    trace_id: strawberry.ID | None = strawberry.field(description="The account of a search.")
    allowed: bool = strawberry.field(description="Whether it was allowed.")

    @classmethod
    def of(cls, entry: stored.AccessEntry) -> "AccessLogEntry":
        return cls(
            id=strawberry.ID(entry.id),
            at=entry.at,
            by=strawberry.ID(entry.by),
            action=entry.action,
            mode=entry.mode,
            record_id=strawberry.ID(entry.record_id) if entry.record_id else None,
            trace_id=strawberry.ID(entry.trace_id) if entry.trace_id else None,
            allowed=entry.allowed,
        )


@strawberry.type(description="A page of the access log.")
class AccessLogConnection:
    nodes: list[AccessLogEntry] = strawberry.field(description="The entries.")
    page_info: PageInfo = strawberry.field(description="Where this page stands in the log.")


def _between(at: TimeRange | None, mode: Sequence[RetrievalMode] | None, by: str | None = None) -> Between:
    return Between(
        start=at.start if at else None,
        end=at.end if at else None,
        modes=None if mode is None else tuple(mode),
        by=UserId(by) if by else None,
    )


@strawberry.type
class TraceQuery:
    @strawberry.field(description="The account of one search; null if there is none that you may see.")
    async def trace(self, info: Info, id: IdArgument) -> RetrievalTrace | None:
        found = await accounts.trace(info.context.deps, info.context.principal, id)
        return RetrievalTrace.of(found) if found else None

    @strawberry.field(description="Accounts of searches, newest first.")
    async def traces(
        self, info: Info, mode: Modes = None, at: At = None, first: First = 20, after: After = None
    ) -> Connection[RetrievalTrace] | None:
        page = page_of(_NEWEST, first=first, after=after)
        found = await accounts.traces(info.context.deps, info.context.principal, _between(at, mode), page)
        return connection(
            found, page, order=_NEWEST, keys=lambda one: (ms(one[0].at), one[0].id), node=RetrievalTrace.of
        )

    @strawberry.field(description="Who searched what, newest first: all for owners and admins, else your own.")
    async def access_log(
        self,
        info: Info,
        mode: Modes = None,
        by: Annotated[strawberry.ID | None, strawberry.argument(description="Only this user.")] = None,
        at: At = None,
        first: First = 50,
        after: After = None,
    ) -> AccessLogConnection | None:
        page = page_of(_ACCESS, first=first, after=after)
        found = await accounts.access_log(info.context.deps, info.context.principal, _between(at, mode, by), page)
        made = connection(
            found, page, order=_ACCESS, keys=lambda entry: (ms(entry.at), entry.id), node=AccessLogEntry.of
        )
        return AccessLogConnection(nodes=made.nodes, page_info=made.page_info)
