"""What memories and facts have in common: their standing, their strength, where they live."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import strawberry
from strawberry.dataloader import DataLoader

from graph_mem.api.nodes import Node, Scope
from graph_mem.api.session import Context, Info
from graph_mem.core import model
from graph_mem.core.model import Processing, RecordId, SourceKind, Standing
from graph_mem.core.strength import Strength as Measured
from graph_mem.services import records
from graph_mem.store.lineage import Lineage

if TYPE_CHECKING:
    from graph_mem.api.facts import Fact
    from graph_mem.api.memories import Memory

strawberry.enum(
    Processing, description="How far the background work has come. A SAVED text is already found by its words."
)
strawberry.enum(SourceKind, description="What kind of source a text came from.")


@strawberry.type(description="Each signal as stored, 0..1, and what ranking makes of them now.")
class Strength:
    value: float = strawberry.field(description="The strength now: above 0, at most 1.")
    floor: float = strawberry.field(description="The least it can be, by label or because it is evergreen.")
    retention: float = strawberry.field(description="What forgetting left since it was last validated.")
    recency: float = strawberry.field(description="How lately it was saved or retrieved.")
    frequency: float = strawberry.field(description="How often it was retrieved, saturating.")
    diversity: float = strawberry.field(description="How many kinds of query reach it, saturating.")
    centrality: float | None = strawberry.field(description="PageRank within the organization; null if not computed.")
    confidence: float = strawberry.field(description="How sure its author was; 0.5 if nobody said.")
    validation: float = strawberry.field(description="How lately somebody confirmed it.")
    source_trust: float = strawberry.field(description="How far its kind of source is trusted.")
    last_validated_at: datetime = strawberry.field(description="When it was last validated; at first, when saved.")


@strawberry.type(description="How often searches returned the record.")
class RecallStats:
    count: int = strawberry.field(description="How many searches.")
    query_kinds: int = strawberry.field(description="How many different kinds of query.")
    last_at: datetime | None = strawberry.field(description="The last time; null if never.")


@strawberry.type(description="Where a text came from.")
class Source:
    kind: SourceKind = strawberry.field(description="What kind of source.")
    uri: str | None = strawberry.field(description="Where it can be found, if its saver said so.")
    author: strawberry.ID = strawberry.field(description="The user who saved it.")
    run_id: strawberry.ID | None = strawberry.field(description="The agent's run it was saved in.")
    occurred_at: datetime | None = strawberry.field(description="When what it tells happened, if that was said.")
    trust: float = strawberry.field(description="How far this kind of source is trusted, 0..1.")

    @classmethod
    def of(cls, source: model.Source) -> "Source":
        return cls(
            kind=source.kind,
            uri=source.uri,
            author=strawberry.ID(source.author),
            run_id=strawberry.ID(source.run_id) if source.run_id else None,
            occurred_at=source.occurred_at,
            trust=source.trust,
        )


@strawberry.interface(description="A memory or a fact.")
class Record(Node):
    standing: Standing = strawberry.field(description="Whether it speaks for today.")
    scope: Scope = strawberry.field(description="Where it lives.")
    private: bool = strawberry.field(description="True when only its owner, the viewer, sees it.")
    version: int = strawberry.field(description="Counts its changes, from 1.")
    created_at: datetime = strawberry.field(description="When it was saved first.")
    record: strawberry.Private[model.Record]

    @strawberry.field(description="How strong it is now, and why.")
    async def strength(self, info: Info) -> Strength:
        return strength_of(await records.strength(info.context.deps, info.context.principal, self.record))

    @strawberry.field(description="How often searches returned it.")
    def recall(self) -> RecallStats:
        signals = self.record.signals
        return RecallStats(
            count=signals.retrievals, query_kinds=len(signals.query_kinds), last_at=signals.last_retrieved_at
        )


def common(record: model.Record) -> dict[str, Any]:
    """The fields of `Record` for a type's constructor."""
    return {
        "id": strawberry.ID(record.id),
        "standing": record.standing,
        "scope": Scope.of(record.place.scope),
        "private": record.place.private,
        "version": record.version,
        "created_at": record.created_at,
        "record": record,
    }


def strength_of(measured: Measured) -> Strength:
    return Strength(**{name: getattr(measured, name) for name in Strength.__annotations__})


def record_type(record: model.Record) -> "Memory | Fact":
    """`record` as the API shows it."""
    from graph_mem.api.facts import Fact  # noqa: PLC0415 # the two record types name each other
    from graph_mem.api.memories import Memory  # noqa: PLC0415

    return Memory.of(record) if isinstance(record, model.Memory) else Fact.of(record)


def by_id(context: Context) -> DataLoader[RecordId, model.Record | None]:
    """Records, all that an operation asks for together in one statement; for `Context.once`."""

    async def load(ids: list[RecordId]) -> list[model.Record | None]:
        found = await records.by_ids(context.deps, context.principal, ids)
        return [found.get(id) for id in ids]

    return DataLoader(load)


def lineage(context: Context) -> DataLoader[RecordId, Lineage]:
    """What directly replaced what, likewise."""

    async def load(ids: list[RecordId]) -> list[Lineage]:
        found = await records.lineage(context.deps, context.principal, ids)
        return [found[id] for id in ids]

    return DataLoader(load)


async def several(info: Info, ids: Sequence[RecordId]) -> list[model.Record]:
    """The records among `ids` that the caller may see, in their order."""
    found = await info.context.once(by_id).load_many(list(ids))
    return [record for record in found if isinstance(record, (model.Memory, model.Fact))]
