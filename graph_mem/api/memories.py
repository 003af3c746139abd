"""Memories: the type, its lists, and the queries for them."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.dataloader import DataLoader
from strawberry.scalars import JSON

from graph_mem.api.entities import EntityLink
from graph_mem.api.nodes import After, Connection, First, IdArgument, Node, ScopeInput, TimeRange, connection, page_of
from graph_mem.api.records import Record, Source, by_id, common, lineage, several
from graph_mem.api.session import Context, Info
from graph_mem.core import model
from graph_mem.core.model import Processing, RecordId, Standing
from graph_mem.services import history, records
from graph_mem.store.times import ms

if TYPE_CHECKING:
    from graph_mem.api.facts import Fact
    from graph_mem.api.relations import Relation

_NEWEST = "memory.newest"


@strawberry.type(description="A text as it was before it was saved again with edits.")
class MemoryVersion:
    version: int = strawberry.field(description="Which version this was.")
    saved_at: datetime = strawberry.field(description="When it was saved.")
    saved_by: strawberry.ID = strawberry.field(description="Who saved it.")
    text: str | None = strawberry.field(description="The text; null once erased.")

    @classmethod
    def of(cls, version: model.MemoryVersion) -> "MemoryVersion":
        return cls(
            version=version.version,
            saved_at=version.saved_at,
            saved_by=strawberry.ID(version.saved_by),
            text=version.text,
        )


@strawberry.type(description="A durable text.")
class Memory(Record, Node):
    label: str = strawberry.field(description="What kind of memory, in the organization's words.")
    position: bool = strawberry.field(description="True for what someone committed to: a decision, say.")
    title: str | None = strawberry.field(description="Its title, if it has one.")
    text: str | None = strawberry.field(description="Byte for byte as saved; null once erased.")
    metadata: JSON | None = strawberry.field(description="What its saver attached.")
    processing: Processing = strawberry.field(description="How far the background work has come.")
    failure: str | None = strawberry.field(description="Only when FAILED.")
    source: Source = strawberry.field(description="Where it came from.")
    importance: float = strawberry.field(description="How much it matters, 0..1.")
    evergreen: bool = strawberry.field(description="True when its strength has a floor that age cannot pass.")
    fresh_at: datetime = strawberry.field(description="Age counts from here: the last save of this text.")

    @classmethod
    def of(cls, memory: model.Memory) -> "Memory":
        return cls(
            **common(memory),
            label=memory.label,
            position=memory.position,
            title=memory.title,
            text=memory.text,
            metadata=None if memory.metadata is None else JSON(memory.metadata),
            processing=memory.processing,
            failure=memory.failure,
            source=Source.of(memory.source),
            importance=memory.importance,
            evergreen=memory.signals.evergreen,
            fresh_at=memory.fresh_at,
        )

    @strawberry.field(description="The current memory with the same text that this one was folded into.")
    async def folded_into(self, info: Info) -> "Memory | None":
        line = await info.context.once(lineage).load(RecordId(self.id))
        found = await _memories(info, [line.folded_into] if line.folded_into else [])
        return found[0] if found else None

    @strawberry.field(description="The older memories that this one replaced.")
    async def supersedes(self, info: Info) -> list["Memory"]:
        return await _memories(info, (await info.context.once(lineage).load(RecordId(self.id))).older)

    @strawberry.field(description="The newer memories that replaced this one.")
    async def superseded_by(self, info: Info) -> list["Memory"]:
        return await _memories(info, (await info.context.once(lineage).load(RecordId(self.id))).newer)

    @strawberry.field(description="The entities it mentions, by name.")
    async def entities(self, info: Info, first: First = 20, after: After = None) -> Connection[EntityLink]:
        page = page_of("link.name", first=first, after=after, keys=(str, str))
        links = await info.context.once(_entity_links).load(RecordId(self.id))
        rest = [link for link in links if page.after is None or (link.entity.name, link.entity.id) > page.after]
        return connection(
            rest, page, order="link.name", keys=lambda link: (link.entity.name, link.entity.id), node=EntityLink.of
        )

    @strawberry.field(description="The facts it is a source of, newest first.")
    async def facts(
        self, info: Info, first: First = 20, after: After = None
    ) -> Connection[Annotated["Fact", strawberry.lazy("graph_mem.api.facts")]]:
        from graph_mem.api.facts import facts_of  # noqa: PLC0415 # the two types name each other

        return await facts_of(info, RecordId(self.id), first=first, after=after)

    @strawberry.field(description="Explicit links from and to it, newest first.")
    async def relations(
        self, info: Info, first: First = 20, after: After = None
    ) -> Connection[Annotated["Relation", strawberry.lazy("graph_mem.api.relations")]]:
        from graph_mem.api.relations import relations_of  # noqa: PLC0415 # the two types name each other

        return await relations_of(info, RecordId(self.id), first=first, after=after)

    @strawberry.field(description="Its former texts, newest first.")
    async def versions(self, info: Info, first: First = 20, after: After = None) -> Connection[MemoryVersion]:
        page = page_of("version", first=first, after=after, keys=(int,))
        found = await records.versions(info.context.deps, info.context.principal, RecordId(self.id), page)
        return connection(found, page, order="version", keys=lambda version: (version.version,), node=MemoryVersion.of)


async def _memories(info: Info, ids: Sequence[RecordId]) -> list[Memory]:
    return [Memory.of(found) for found in await several(info, ids) if isinstance(found, model.Memory)]


def _entity_links(context: Context) -> DataLoader[RecordId, list[model.EntityLink]]:
    async def load(ids: list[RecordId]) -> list[list[model.EntityLink]]:
        found = await records.entity_links(context.deps, context.principal, ids)
        return [found.get(id, []) for id in ids]

    return DataLoader(load)


@strawberry.type
class MemoryQuery:
    @strawberry.field(description="A memory by its id; null if there is none that you may see.")
    async def memory(
        self,
        info: Info,
        id: IdArgument,
        known_at: Annotated[
            datetime | None, strawberry.argument(description="As the store knew it then: that version, that standing.")
        ] = None,
    ) -> Memory | None:
        context = info.context
        if known_at is not None:
            found = await history.memory_known_at(context.deps, context.principal, RecordId(id), at=known_at)
            return Memory.of(found) if found else None
        found = await context.once(by_id).load(RecordId(id))
        return Memory.of(found) if isinstance(found, model.Memory) else None

    @strawberry.field(description="Memories, newest first.")
    async def memories(
        self,
        info: Info,
        scope: Annotated[
            ScopeInput | None, strawberry.argument(description="Only this place; left out: everything you may read.")
        ] = None,
        labels: Annotated[list[str] | None, strawberry.argument(description="Only these labels.")] = None,
        standing: Annotated[
            list[Standing] | None, strawberry.argument(description="Only these; left out: CURRENT.")
        ] = None,
        created: Annotated[TimeRange | None, strawberry.argument(description="When it was saved first.")] = None,
        first: First = 20,
        after: After = None,
    ) -> Connection[Memory] | None:
        context = info.context
        page = page_of(_NEWEST, first=first, after=after)
        filter = await records.list_filter(
            context.deps,
            context.principal,
            scope=(scope.client_id, scope.deal_id) if scope else None,
            labels=labels,
            standings=[Standing.CURRENT] if standing is None else standing,
            created_from=created.start if created else None,
            created_to=created.end if created else None,
        )
        return connection(
            await records.page(context.deps, context.principal, filter, page),
            page,
            order=_NEWEST,
            keys=lambda memory: (ms(memory.created_at), memory.id),
            node=Memory.of,
            count=lambda: records.count(context.deps, context.principal, filter),
        )
