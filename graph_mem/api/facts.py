"""Facts: the type, its lists, and what changes them."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry

from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.nodes import After, Connection, First, IdArgument, Node, ScopeInput, connection, page_of
from graph_mem.api.records import Record, by_id, common, lineage, several
from graph_mem.api.session import Info
from graph_mem.core import model
from graph_mem.core.model import FAR, EntityId, RecordId, Standing
from graph_mem.core.slots import FactOutcome
from graph_mem.services import fact_lists, facts
from graph_mem.services.facts import NewFact
from graph_mem.store.times import ms

if TYPE_CHECKING:
    from graph_mem.api.entities import Entity
    from graph_mem.api.memories import Memory

_NEWEST, _OF, _ABOUT, _SOURCES = "fact.newest", "memory.facts", "entity.facts", "fact.sources"

strawberry.enum(FactOutcome, description="What became of a saved sentence.")


@strawberry.type(description="A subject, a relation, and one sentence that stands by itself.")
class Fact(Record, Node):
    subject: str = strawberry.field(description="Who or what it is about, as written.")
    relation: str = strawberry.field(description="What it says of the subject, in a word or two.")
    statement: str = strawberry.field(description="The sentence.")
    confidence: float = strawberry.field(description="How sure its author was, 0..1; 1 if nobody said.")
    valid_from: datetime | None = strawberry.field(description="Since when it holds.")
    valid_to: datetime | None = strawberry.field(description="Until when it held; null: no end is known.")
    revoked_at: datetime | None = strawberry.field(description="When it was superseded, retracted or rejected.")

    @classmethod
    def of(cls, fact: model.Fact) -> "Fact":
        interval = fact.interval
        return cls(
            **common(fact),
            subject=fact.subject,
            relation=fact.relation,
            statement=fact.statement,
            confidence=fact.confidence,
            valid_from=interval.valid_from,
            valid_to=None if interval.valid_to >= FAR else interval.valid_to,
            revoked_at=fact.revoked_at,
        )

    @strawberry.field(description="The entity that its subject names, if it is known.")
    async def entity(self, info: Info) -> Annotated["Entity", strawberry.lazy("graph_mem.api.entities")] | None:
        from graph_mem.api.entities import Entity  # noqa: PLC0415 # the two types name each other

        found = await fact_lists.entity(info.context.deps, info.context.principal, RecordId(self.id))
        return Entity.of(found) if found else None

    @strawberry.field(description="The memories that state it, newest first.")
    async def sources(
        self, info: Info, first: First = 20, after: After = None
    ) -> Connection[Annotated["Memory", strawberry.lazy("graph_mem.api.memories")]]:
        from graph_mem.api.memories import Memory  # noqa: PLC0415 # the two types name each other

        page = page_of(_SOURCES, first=first, after=after)
        found = await fact_lists.sources(info.context.deps, info.context.principal, RecordId(self.id), page)
        return connection(
            found, page, order=_SOURCES, keys=lambda memory: (ms(memory.created_at), memory.id), node=Memory.of
        )

    @strawberry.field(description="The fact that it replaced.")
    async def supersedes(self, info: Info) -> "Fact | None":
        return await _last(info, (await info.context.once(lineage).load(RecordId(self.id))).older)

    @strawberry.field(description="The fact that replaced it.")
    async def superseded_by(self, info: Info) -> "Fact | None":
        return await _last(info, (await info.context.once(lineage).load(RecordId(self.id))).newer)


async def _last(info: Info, ids: tuple[RecordId, ...]) -> Fact | None:
    """The neighbour that was linked last: the nearest, where a late fact came in between."""
    found = await several(info, ids[-1:])
    return next((Fact.of(record) for record in found if isinstance(record, model.Fact)), None)


async def facts_of(info: Info, id: RecordId, *, first: int | None, after: str | None) -> Connection[Fact]:
    """The facts that a memory states."""
    page = page_of(_OF, first=first, after=after)
    found = await fact_lists.of_memory(info.context.deps, info.context.principal, id, page)
    return connection(found, page, order=_OF, keys=_keys, node=Fact.of)


async def facts_about(info: Info, id: EntityId, *, first: int | None, after: str | None) -> Connection[Fact]:
    """Current facts about an entity."""
    page = page_of(_ABOUT, first=first, after=after)
    found = await fact_lists.about(info.context.deps, info.context.principal, id, page)
    return connection(found, page, order=_ABOUT, keys=_keys, node=Fact.of)


def _keys(fact: model.Fact) -> tuple[int, str]:
    return ms(fact.created_at), fact.id


@strawberry.type
class FactQuery:
    @strawberry.field(description="A fact by its id; null if there is none that you may see.")
    async def fact(self, info: Info, id: IdArgument) -> Fact | None:
        found = await info.context.once(by_id).load(RecordId(id))
        return Fact.of(found) if isinstance(found, model.Fact) else None

    @strawberry.field(description="Facts, newest first.")
    async def facts(
        self,
        info: Info,
        scope: Annotated[
            ScopeInput | None, strawberry.argument(description="Only this place; left out: everything you may read.")
        ] = None,
        subject: Annotated[
            str | None, strawberry.argument(description="Only about this; case and spacing do not matter.")
        ] = None,
        relation: Annotated[
            str | None, strawberry.argument(description="Only this relation; case and spacing do not matter.")
        ] = None,
        standing: Annotated[
            list[Standing] | None,
            strawberry.argument(description="Only these; left out: CURRENT. With `asOf` or `knownAt`: as it was then."),
        ] = None,
        as_of: Annotated[datetime | None, strawberry.argument(description="What held then.")] = None,
        known_at: Annotated[datetime | None, strawberry.argument(description="What was known then.")] = None,
        first: First = 20,
        after: After = None,
    ) -> Connection[Fact] | None:
        context = info.context
        page = page_of(_NEWEST, first=first, after=after)
        filter = await fact_lists.list_filter(
            context.deps,
            context.principal,
            scope=(scope.client_id, scope.deal_id) if scope else None,
            subject=subject,
            relation=relation,
            standings=(Standing.CURRENT,) if standing is None else tuple(standing),
            as_of=as_of,
            known_at=known_at,
        )
        return connection(
            await fact_lists.page(context.deps, context.principal, filter, page),
            page,
            order=_NEWEST,
            keys=_keys,
            node=Fact.of,
            count=lambda: fact_lists.count(context.deps, context.principal, filter),
        )


@strawberry.input(description="A sentence for a slot: scope, owner, subject and relation.")
class SaveFactInput:
    subject: str = strawberry.field(description="Who or what it is about.")
    relation: str = strawberry.field(description="What it says of the subject, in a word or two.")
    statement: str = strawberry.field(description="One sentence that stands by itself.")
    scope: ScopeInput | None = strawberry.field(default=None, description="Where it lives; left out: organization.")
    private: bool = strawberry.field(default=False, description="For your own eyes only.")
    confidence: float | None = strawberry.field(default=None, description="How sure you are, 0..1.")
    valid_from: datetime | None = strawberry.field(default=None, description="Since when it holds; left out: now.")
    valid_to: datetime | None = strawberry.field(default=None, description="Until when it holds, if that is known.")
    source_ids: list[strawberry.ID] = strawberry.field(
        default_factory=list[strawberry.ID], description="Memories that state it."
    )
    idempotency_key: str | None = strawberry.field(default=None, description="Makes a repetition harmless.")

    def new(self) -> NewFact:
        return NewFact(
            subject=self.subject,
            relation=self.relation,
            statement=self.statement,
            client_id=self.scope.client_id if self.scope else None,
            deal_id=self.scope.deal_id if self.scope else None,
            private=self.private,
            confidence=self.confidence,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            source_ids=tuple(self.source_ids),
        )


@strawberry.input(description="A fact to take back without a new value.")
class RetractFactInput:
    id: strawberry.ID = strawberry.field(description="The fact.")
    reason: str = strawberry.field(description="Why, for whoever reads the history.")
    reject: bool = strawberry.field(
        default=False, description="Also keep automatic extraction from bringing this value back."
    )
    expected_version: int | None = strawberry.field(default=None, description="Refuse if it has changed since.")


@strawberry.type(description="What became of a fact.")
class SaveFactPayload:
    fact: Fact | None = strawberry.field(description="The fact as it is now.")
    outcome: FactOutcome | None = strawberry.field(description="What saving did; null for a retraction.")
    revoked: Fact | None = strawberry.field(description="The fact that stopped being active, if one did.")
    replayed: bool = strawberry.field(description="True for the answer to an earlier call with the same key.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.type
class FactMutation:
    @strawberry.mutation(description="Says what is true of a subject; the former value is revoked in the same instant.")
    async def save_fact(self, info: Info, input: SaveFactInput) -> SaveFactPayload:
        context = info.context
        saved, errors = await attempt(
            facts.save(context.deps, context.principal, input.new(), idempotency_key=input.idempotency_key)
        )
        return SaveFactPayload(
            fact=Fact.of(saved.fact) if saved and saved.fact else None,
            outcome=saved.outcome if saved else None,
            revoked=Fact.of(saved.revoked) if saved and saved.revoked else None,
            replayed=bool(saved and saved.replayed),
            errors=errors,
        )

    @strawberry.mutation(description="Takes a fact back without a new value.")
    async def retract_fact(self, info: Info, input: RetractFactInput) -> SaveFactPayload:
        gone, errors = await attempt(
            facts.retract(
                info.context.deps,
                info.context.principal,
                input.id,
                reason=input.reason,
                reject=input.reject,
                expected_version=input.expected_version,
            )
        )
        fact = Fact.of(gone) if gone else None
        return SaveFactPayload(fact=fact, outcome=None, revoked=fact, replayed=False, errors=errors)
