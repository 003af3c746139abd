"""One query in, one page out; further pages continue the same ranking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from graph_mem.core.model import Fact, Place, Principal, Record, RecordId
from graph_mem.core.query_kind import query_kind
from graph_mem.core.retrieval import Hit, Query, SearchPage, Span, Tier, Trace, TracedHit
from graph_mem.core.text import snippet
from graph_mem.errors import InvalidInput
from graph_mem.services import Deps, asking, metrics
from graph_mem.services.judging import ask, noted
from graph_mem.services.spans import Told, spanned
from graph_mem.services.tracing import Retrieval
from graph_mem.store import search, traces
from graph_mem.store.db import Tx
from graph_mem.store.search import Where
from graph_mem.store.traces import Saved

_SHOWN_QUERY = 4_000
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class PageStart:
    """Where a later page begins: in the ranking of a stored trace, after this place."""

    trace_id: str
    place: int


def _told(page: SearchPage) -> Told:
    return {"graph_mem.mode": page.trace.mode.value, "graph_mem.hits": len(page.hits)}


@spanned("search", _told)
async def search_page(
    deps: Deps, principal: Principal, query: Query, *, first: int, after: PageStart | None = None
) -> SearchPage:
    """The best `first` results of `query`, or those that follow `after` in the same ranking.

    Errors: InvalidInput for a filter that cannot be or a foreign `after`; NotFound for a scope one may not read.
    """
    if after is not None:
        return await _later_page(deps, principal, query, first=first, after=after)
    answer = await ask(deps, principal, query, first=first)
    metrics.count_search(answer.trace)
    rows, looked_at = await _standing(deps, principal, answer.trace.hits, answer.where, first=first)
    hits = [_hit(traced, record, answer.snippet(record.id)) for traced, record in rows]
    left = _Left(query, answer.trace, answer.places, served=looked_at)
    await _leave(deps, principal, left, hits)
    more = looked_at < len(answer.trace.hits) or not answer.exhausted
    return SearchPage(tuple(hits), has_next=more and bool(hits), has_previous=False, trace=answer.trace)


async def _later_page(deps: Deps, principal: Principal, query: Query, *, first: int, after: PageStart) -> SearchPage:
    """The next page of a stored ranking; beyond its end, of what else there was when it was made."""
    trace = await _own_trace(deps, principal, query, after)
    then = replace(query, created=_until(query.created, trace.at))
    answer = None
    if after.place + first >= len(trace.hits):
        answer = await ask(deps, principal, then, first=after.place + 2 * first)
        trace = _extended(trace, answer.trace)
    where = answer.where if answer else await _where(deps, principal, then)
    rows, looked_at = await _standing(deps, principal, trace.hits[after.place :], where, first=first)
    hits = [_hit(traced, record, snippet(_text(record), query.text[:_SHOWN_QUERY])) for traced, record in rows]
    served = after.place + looked_at
    left = _Left(query, trace, answer.places if answer else frozenset(), served=served)
    await _leave(deps, principal, left, hits)
    more = served < len(trace.hits) or (answer is not None and not answer.exhausted)
    return SearchPage(tuple(hits), has_next=more and bool(hits), has_previous=True, trace=trace)


async def _own_trace(deps: Deps, principal: Principal, query: Query, after: PageStart) -> Trace:
    """The trace that a cursor names, if it is the caller's, of this query, and was handed out that far."""
    await deps.traces.flush()

    async def work(tx: Tx) -> tuple[Trace, int] | None:
        return await traces.by_id(tx, principal, after.trace_id)

    found = await deps.db.read(work)
    if found is not None and found[0].by == principal.user_id and found[0].query == noted(query.text):
        trace, served = found
        if 0 < after.place <= served:
            return trace
    raise InvalidInput("`after` is no cursor of this search, or too old: search again without it.", path=("after",))


async def _where(deps: Deps, principal: Principal, query: Query) -> Where:
    return await asking.where(deps, principal, query, await deps.settings.vocabulary(principal.org_id))


def _until(span: Span | None, at: datetime) -> Span:
    """`span`, ending with what there was at `at`."""
    end = at + _MS
    if span is None:
        return Span(None, end)
    return Span(span.start, end if span.end is None else min(span.end, end))


def _extended(trace: Trace, deeper: Trace) -> Trace:
    """`trace` with what `deeper` found beyond it, in its order."""
    known = {hit.record_id for hit in trace.hits}
    beyond = [hit for hit in deeper.hits if hit.record_id not in known]
    more = (replace(hit, rank=rank) for rank, hit in enumerate(beyond, start=len(trace.hits) + 1))
    return replace(trace, hits=(*trace.hits, *more))


async def _standing(
    deps: Deps, principal: Principal, ranking: Sequence[TracedHit], where: Where, *, first: int
) -> tuple[list[tuple[TracedHit, Record]], int]:
    """The first `first` of `ranking` that still stand when they are read, and how far down that went."""
    shown: list[tuple[TracedHit, Record]] = []
    looked_at = 0
    while len(shown) < first and looked_at < len(ranking):
        wanted = ranking[looked_at : looked_at + first - len(shown)]
        found = await _records(deps, principal, [one.record_id for one in wanted], where)
        shown += [(one, found[one.record_id]) for one in wanted if one.record_id in found]
        looked_at += len(wanted)
    return shown, looked_at


async def _records(
    deps: Deps, principal: Principal, ids: Sequence[RecordId], where: Where
) -> Mapping[RecordId, Record]:
    return await deps.db.glance(lambda tx: search.records(tx, principal, ids, where.standings))


def _hit(traced: TracedHit, record: Record, shown: str) -> Hit:
    return Hit(traced.rank, record, traced.tier, traced.score, shown)


def _text(record: Record) -> str:
    return record.statement if isinstance(record, Fact) else record.text or ""


def _answers(hit: Hit) -> bool:
    """Whether coming up says anything for a record: the nearest of what is all far away, without a common word, says
    nothing.
    """
    return hit.tier is not Tier.LOW or bool(hit.score.lexical)


@dataclass(frozen=True, slots=True)
class _Left:
    """What a page leaves behind: the trace, where that is which it names or counts, and how much was handed out."""

    query: Query
    trace: Trace
    places: frozenset[Place]
    served: int


async def _leave(deps: Deps, principal: Principal, left: _Left, hits: Sequence[Hit]) -> None:
    """Hand over the trace, and the records that this page strengthens: none if it looked at the past."""
    searched = {scope.token(principal.org_id) for scope in left.trace.scopes or ()}
    saved = Saved(
        left.trace,
        principal.org_id,
        partitions=tuple(sorted({place.partition_token for place in left.places})),
        scopes=tuple(sorted(searched | {place.scope_token for place in left.places})),
        everywhere=left.trace.scopes is None,
        served=left.served,
        counts=not left.query.is_audit,
    )
    returned = tuple((hit.record.id, hit.record.place.partition_token) for hit in hits if _answers(hit))
    kind = query_kind(left.query.text[:_SHOWN_QUERY])
    await deps.traces.put(Retrieval(saved, deps.clock(), kind, returned if saved.counts else ()))
