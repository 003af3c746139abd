"""Links between records, the chains they make, and the history of a record."""

from datetime import datetime

import strawberry
from strawberry.scalars import JSON

from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.nodes import After, Connection, First, IdArgument, Node, connection, page_of
from graph_mem.api.records import Record, by_id, record_type
from graph_mem.api.session import Info
from graph_mem.core import model, supersession
from graph_mem.core.model import RecordId, RelationState
from graph_mem.errors import NotFound
from graph_mem.services import history, relations
from graph_mem.store.times import ms

_OF, _EVENTS = "record.relations", "record.history"

strawberry.enum(RelationState, description="RETRACTED: somebody found that the link was wrong.")


@strawberry.type(
    description="An explicit link between two records. `kind` is SUPERSEDES or one of the organization's own names."
)
class Relation(Node):
    kind: str = strawberry.field(description="SUPERSEDES or one of the organization's own names.")
    state: RelationState = strawberry.field(description="Whether it stands.")
    by: strawberry.ID = strawberry.field(description="Who made it.")
    at: datetime = strawberry.field(description="When it was made.")
    reason: str | None = strawberry.field(description="Why, as its maker put it.")
    retires: bool = strawberry.field(
        description="False for a finding that supersedes a position: saved, but retires nothing."
    )
    link: strawberry.Private[model.Relation]

    @classmethod
    def of(cls, link: model.Relation) -> "Relation":
        return cls(
            id=strawberry.ID(link.id),
            kind=link.kind,
            state=link.state,
            by=strawberry.ID(link.by),
            at=link.at,
            reason=link.reason,
            retires=link.retires,
            link=link,
        )

    @strawberry.field(name="from", description="The record that it starts from: for SUPERSEDES the newer one.")
    async def source(self, info: Info) -> Record:
        return await _end(info, self.link.from_id)

    @strawberry.field(name="to", description="The record that it points to: for SUPERSEDES the older one.")
    async def target(self, info: Info) -> Record:
        return await _end(info, self.link.to_id)


async def _end(info: Info, id: RecordId) -> Record:
    found = await info.context.once(by_id).load(id)
    if found is None:
        raise NotFound(id)
    return record_type(found)


@strawberry.type(description="One replacement.")
class ChainLink:
    relation: Relation = strawberry.field(description="The link: who, when, why.")
    older: Record = strawberry.field(description="What was replaced.")
    newer: Record = strawberry.field(description="What replaced it.")


@strawberry.type(description="What replaced what, oldest first.")
class SupersessionChain:
    records: list[Record] = strawberry.field(description="Every record, each after all that it replaced.")
    heads: list[Record] = strawberry.field(description="The records that nothing replaced.")
    links: list[ChainLink] = strawberry.field(description="Every link among them, the retracted ones too.")

    @classmethod
    def of(cls, chain: supersession.Chain) -> "SupersessionChain":
        shown = {record.id: record_type(record) for record in chain.records}
        return cls(
            records=list(shown.values()),
            heads=[shown[record.id] for record in chain.heads],
            links=[
                ChainLink(relation=Relation.of(link), older=shown[link.to_id], newer=shown[link.from_id])
                for link in chain.links
            ],
        )


@strawberry.type(description="Something that happened to a record. It stays when the record is erased.")
class HistoryEvent:
    id: strawberry.ID = strawberry.field(description="The id of the event.")
    at: datetime = strawberry.field(description="When.")
    by: strawberry.ID = strawberry.field(description="Who did it.")
    kind: str = strawberry.field(description="What: saved, versioned, folded, superseded, restored, retracted, ...")
    version: int | None = strawberry.field(description="The record's version after it.")
    detail: JSON | None = strawberry.field(description="Ids and numbers that belong to it; never content.")
    strength: float | None = strawberry.field(description="The record's strength then, where that was measured.")

    @classmethod
    def of(cls, event: model.Event) -> "HistoryEvent":
        return cls(
            id=strawberry.ID(event.id),
            at=event.at,
            by=strawberry.ID(event.by),
            kind=event.kind,
            version=event.version,
            detail=None if event.detail is None else JSON(event.detail),
            strength=event.strength,
        )


@strawberry.type(description="A page of a history.")
class HistoryConnection(Connection[HistoryEvent]):
    pass


async def relations_of(info: Info, id: RecordId, *, first: int | None, after: str | None) -> Connection[Relation]:
    """Links from and to a record, newest first."""
    page = page_of(_OF, first=first, after=after)
    found = await relations.of_record(info.context.deps, info.context.principal, id, page)
    return connection(found, page, order=_OF, keys=lambda link: (ms(link.at), link.id), node=Relation.of)


@strawberry.type
class HistoryQuery:
    @strawberry.field(
        description="All that replaced a record and all that it replaced; null if you see no such record."
    )
    async def supersession_chain(self, info: Info, id: IdArgument) -> SupersessionChain | None:
        found = await history.chain(info.context.deps, info.context.principal, id)
        return SupersessionChain.of(found) if found else None

    @strawberry.field(description="What happened to a record, oldest first; null if there is nothing that you may see.")
    async def history(
        self, info: Info, id: IdArgument, first: First = 50, after: After = None
    ) -> HistoryConnection | None:
        page = page_of(_EVENTS, first=first, after=after)
        found = await history.history(info.context.deps, info.context.principal, id, page)
        if not found and page.after is None:
            return None
        made = connection(found, page, order=_EVENTS, keys=lambda event: (ms(event.at), event.id), node=HistoryEvent.of)
        return HistoryConnection(edges=made.edges, nodes=made.nodes, page_info=made.page_info)


@strawberry.input(description="A link to make.")
class RelateInput:
    from_id: strawberry.ID = strawberry.field(description="The record it starts from: for SUPERSEDES the newer one.")
    to_id: strawberry.ID = strawberry.field(description="The record it points to: for SUPERSEDES the older one.")
    kind: str = strawberry.field(description="SUPERSEDES or one of the organization's own names.")
    reason: str | None = strawberry.field(default=None, description="Why, for whoever reads the history.")
    idempotency_key: str | None = strawberry.field(default=None, description="Makes a repetition harmless.")


@strawberry.input(description="A link that was wrong.")
class CorrectRelationInput:
    id: strawberry.ID = strawberry.field(description="The link.")
    reason: str = strawberry.field(description="Why it was wrong.")


@strawberry.type(description="What became of a link.")
class RelationPayload:
    relation: Relation | None = strawberry.field(description="The link; null exactly when there are errors.")
    replayed: bool = strawberry.field(description="True for the answer to an earlier call with the same key.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.type
class RelationMutation:
    @strawberry.mutation(
        description="Links two records. SUPERSEDES retires the older one, unless it outranks the newer."
    )
    async def relate(self, info: Info, input: RelateInput) -> RelationPayload:
        made, errors = await attempt(
            relations.relate(
                info.context.deps,
                info.context.principal,
                from_id=input.from_id,
                to_id=input.to_id,
                kind=input.kind,
                reason=input.reason,
                idempotency_key=input.idempotency_key,
            )
        )
        relation = Relation.of(made.relation) if made else None
        return RelationPayload(relation=relation, replayed=bool(made and made.replayed), errors=errors)

    @strawberry.mutation(description="Marks a link as wrong; what it alone retired is current again.")
    async def correct_relation(self, info: Info, input: CorrectRelationInput) -> RelationPayload:
        corrected, errors = await attempt(
            relations.correct(info.context.deps, info.context.principal, input.id, reason=input.reason)
        )
        relation = Relation.of(corrected) if corrected else None
        return RelationPayload(relation=relation, replayed=False, errors=errors)
