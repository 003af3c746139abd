"""Search: the question, the page, and every number behind it."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry.types.nodes import Selection

from graph_mem.api.entities import Entity
from graph_mem.api.nodes import After, First, PageInfo, Scope, ScopeInput, TimeRange, cursor, page_of
from graph_mem.api.records import Record, record_type
from graph_mem.api.session import Context, Info
from graph_mem.core import model, retrieval
from graph_mem.core.model import EntityId, RecordId, RecordKind
from graph_mem.core.retrieval import LegState, Query, RetrievalMode, ScopeName, Span, Tier
from graph_mem.errors import GraphMemError
from graph_mem.services import asking, recall, records
from graph_mem.services.recall import PageStart

strawberry.enum(Tier, description="How far a result can be trusted; says the same from one query to the next.")
strawberry.enum(RetrievalMode, description="Which legs an answer stands on, best first.")
strawberry.enum(LegState, description="Whether a leg ran.")
strawberry.enum(RecordKind, description="Memories or facts.")

_ORDER = "search"
_RELATED = 10


@strawberry.type(description="One leg of a search.")
class Leg:
    name: str = strawberry.field(description="`vector`, `lexical` or `substring`.")
    state: LegState = strawberry.field(description="Whether it ran.")
    reason: str | None = strawberry.field(description="Why it did not, or how its query was cut.")
    candidates: int = strawberry.field(description="How many units it found.")
    took_ms: float = strawberry.field(description="Milliseconds, the query's embedding included.")

    @classmethod
    def of(cls, leg: retrieval.Leg) -> "Leg":
        return cls(name=leg.name, state=leg.state, reason=leg.reason, candidates=leg.candidates, took_ms=leg.took_ms)


@strawberry.type(description="Every number that made the rank.")
class Score:
    final: float = strawberry.field(description="What it is ranked by, before variety and sources.")
    fused: float = strawberry.field(description="Both legs and the graph together, 0..1; the tier is judged by it.")
    lexical: float | None = strawberry.field(description="The share of words, 0..1; null if they did not match.")
    vector: float | None = strawberry.field(description="The share of meaning, 0..1; null if it was not near enough.")
    strength: float = strawberry.field(description="What strength multiplied the fused score by.")
    fade_part: float = strawberry.field(description="0 or negative: what age cost (profile `BLEND`).")
    mmr: float | None = strawberry.field(
        description="Its worth when it was chosen: score less likeness to what is above."
    )
    neighbour: float = strawberry.field(description="The part of `fused` that comes from the passages next to it.")
    participant: float = strawberry.field(description="The part of `fused` it has because the query names who speaks.")

    @classmethod
    def of(cls, score: retrieval.Score) -> "Score":
        return cls(**{name: getattr(score, name) for name in cls.__annotations__})


class Related:
    """The entities of a page's records, looked up once, when first asked for."""

    def __init__(self, context: Context, ids: Sequence[RecordId], *, wanted: bool) -> None:
        self._context = context
        self._ids = ids
        self._wanted = wanted
        self._lookup: asyncio.Task[Mapping[RecordId, list[model.EntityLink]]] | None = None
        self._failed = False

    async def of(self, id: RecordId) -> list[model.EntityLink]:
        return (await self._links()).get(id, [])[:_RELATED]

    async def partial(self) -> bool:
        """Whether the lookup failed; never looks up what nobody asked for."""
        if self._wanted:
            await self._links()
        return self._failed

    async def _links(self) -> Mapping[RecordId, list[model.EntityLink]]:
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._look_up())
        return await self._lookup

    async def _look_up(self) -> Mapping[RecordId, list[model.EntityLink]]:
        try:
            return await records.entity_links(self._context.deps, self._context.principal, list(self._ids))
        except GraphMemError:
            self._failed = True
            return {}


@strawberry.type(description="One result.")
class SearchHit:
    cursor: str = strawberry.field(description="Give this as `after` to continue after the result.")
    rank: int = strawberry.field(description="Its place in the whole ranking, from 1.")
    node: Record = strawberry.field(description="The record.")
    tier: Tier = strawberry.field(description="How far it can be trusted.")
    score: Score = strawberry.field(description="Why it is where it is.")
    snippet: str = strawberry.field(description="The part of its text that answers the query.")
    page_related: strawberry.Private[Related]

    @strawberry.field(description="Entities that the record names.")
    async def related(self) -> list[Entity]:
        links = await self.page_related.of(RecordId(self.node.id))
        return [Entity.of(link.entity) for link in links]

    @classmethod
    def of(cls, hit: retrieval.Hit, trace_id: str, related: Related) -> "SearchHit":
        return cls(
            cursor=cursor(_ORDER, trace_id, hit.rank),
            rank=hit.rank,
            node=record_type(hit.record),
            tier=hit.tier,
            score=Score.of(hit.score),
            snippet=hit.snippet,
            page_related=related,
        )


@strawberry.type(description="A page of results, with the account of how it came to be.")
class SearchPage:
    hits: list[SearchHit] = strawberry.field(
        description="By `rank`. That is by `score.final`, an own record no less than shared ones of equal relevance;"
        " but a look-alike of a better result waits (`mmrLambda`), and at the end of the first page a source not on it"
        " yet goes before a near equal (`sourceShare`). So `final` need not fall from one to the next."
    )
    page_info: PageInfo = strawberry.field(description="Where this page stands in the ranking.")
    mode: RetrievalMode = strawberry.field(description="Which legs the answer stands on.")
    degraded_reason: str | None = strawberry.field(description="Why the mode is not HYBRID.")
    legs: list[Leg] = strawberry.field(description="How each leg fared.")
    pending: int = strawberry.field(description="Records of the scope still being processed.")
    passed_over: int = strawberry.field(description="Matches passed over because they are not current.")
    below_floor: int = strawberry.field(description="Cut by the relevance floor.")
    trace_id: strawberry.ID = strawberry.field(description="The stored account: see `trace`.")
    trace: strawberry.Private[retrieval.Trace]
    page_related: strawberry.Private[Related]

    @strawberry.field(description="The scopes that were searched.")
    async def scopes_searched(self, info: Info) -> list[Scope]:
        return await scopes_of(info, self.trace)

    @strawberry.field(description="True when looking up `related` failed; the page is whole otherwise.")
    async def entities_partial(self) -> bool:
        return await self.page_related.partial()

    @classmethod
    def of(cls, page: retrieval.SearchPage, related: Related) -> "SearchPage":
        trace = page.trace
        hits = [SearchHit.of(hit, trace.id, related) for hit in page.hits]
        return cls(
            hits=hits,
            page_info=PageInfo(
                has_next_page=page.has_next,
                has_previous_page=page.has_previous,
                start_cursor=hits[0].cursor if hits else None,
                end_cursor=hits[-1].cursor if hits else None,
            ),
            mode=trace.mode,
            degraded_reason=trace.degraded_reason,
            legs=[Leg.of(leg) for leg in trace.legs],
            pending=trace.pending,
            passed_over=trace.passed_over,
            below_floor=trace.below_floor,
            trace_id=strawberry.ID(trace.id),
            trace=trace,
            page_related=related,
        )


async def scopes_of(info: Info, trace: retrieval.Trace) -> list[Scope]:
    """The scopes that a trace names; where it named none, all that the caller may read."""
    found = trace.scopes
    if found is None:
        found = await asking.readable(info.context.deps, info.context.principal)
    return [Scope.of(scope) for scope in found]


@strawberry.input(description="A question, and what the answer may hold.")
class SearchInput:
    text: str = strawberry.field(description="The question, or some words. Any text is safe.")
    scope: ScopeInput | None = strawberry.field(
        default=None, description="This place and those around it; left out: everything you may read."
    )
    kinds: list[RecordKind] | None = strawberry.field(default=None, description="Memories, facts, or both.")
    labels: list[str] | None = strawberry.field(default=None, description="Only these labels.")
    entity_ids: list[strawberry.ID] | None = strawberry.field(
        default=None, description="Only records that name one of these entities."
    )
    source_uri: str | None = strawberry.field(default=None, description="Only records of this source.")
    created: TimeRange | None = strawberry.field(default=None, description="Only what was saved in this time.")
    occurred: TimeRange | None = strawberry.field(default=None, description="Only what is said to have happened in it.")
    min_tier: Tier | None = strawberry.field(default=None, description="Only results of this tier or better.")
    include_archived: bool = strawberry.field(default=False, description="Archived records too, for an audit.")
    as_of: datetime | None = strawberry.field(default=None, description="What held then.")
    known_at: datetime | None = strawberry.field(default=None, description="What was known then.")

    def query(self) -> Query:
        scope = self.scope
        return Query(
            self.text,
            scope=None if scope is None else ScopeName(scope.client_id, scope.deal_id),
            kinds=tuple(self.kinds or ()),
            labels=tuple(self.labels or ()),
            entity_ids=tuple(EntityId(id) for id in self.entity_ids or ()),
            source_uri=self.source_uri,
            created=_span(self.created),
            occurred=_span(self.occurred),
            min_tier=self.min_tier,
            include_archived=self.include_archived,
            as_of=self.as_of,
            known_at=self.known_at,
        )


def _span(given: TimeRange | None) -> Span | None:
    return None if given is None else Span(given.start, given.end)


def _asks_for(selections: Sequence[Selection], name: str) -> bool:
    return any(getattr(one, "name", None) == name or _asks_for(one.selections, name) for one in selections)


@strawberry.type
class SearchQuery:
    @strawberry.field(description="The records that answer a question, best first, with the reasons.")
    async def search(
        self,
        info: Info,
        input: Annotated[SearchInput, strawberry.argument(description="What is asked.")],
        first: First = 10,
        after: After = None,
    ) -> SearchPage | None:
        context = info.context
        wanted = page_of(_ORDER, first=first, after=after, keys=(str, int))
        start = PageStart(*wanted.after) if wanted.after else None
        page = await recall.search_page(context.deps, context.principal, input.query(), first=wanted.first, after=start)
        asked = _asks_for(info.selected_fields, "related")
        return SearchPage.of(page, Related(context, [hit.record.id for hit in page.hits], wanted=asked))
