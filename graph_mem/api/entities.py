"""Entities: what memories and facts are about."""

from typing import TYPE_CHECKING, Annotated

import strawberry

from graph_mem.api.nodes import After, Connection, First, IdArgument, Node, connection, page_of
from graph_mem.api.session import Info
from graph_mem.core import model
from graph_mem.core.model import EntityId, EntityRole
from graph_mem.services import records

if TYPE_CHECKING:
    from graph_mem.api.facts import Fact
    from graph_mem.api.memories import Memory

strawberry.enum(EntityRole, description="What an entity is to a memory: who speaks, what it is about, or just named.")

_BY_NAME = "entity.name"


@strawberry.type(description="A person, project, company or other thing that memories and facts are about.")
class Entity(Node):
    name: str = strawberry.field(description="The name, as first written.")
    label: str = strawberry.field(description="What kind of thing, in the organization's words.")
    aliases: list[str] = strawberry.field(description="Other names of the same thing.")
    centrality: float | None = strawberry.field(description="PageRank in the organization, 0..1; null if not computed.")

    @classmethod
    def of(cls, entity: model.Entity) -> "Entity":
        return cls(
            id=strawberry.ID(entity.id),
            name=entity.name,
            label=entity.label,
            aliases=list(entity.aliases),
            centrality=entity.centrality,
        )

    @strawberry.field(description="Current facts about it, newest first.")
    async def facts(
        self, info: Info, first: First = 20, after: After = None
    ) -> Connection[Annotated["Fact", strawberry.lazy("graph_mem.api.facts")]]:
        from graph_mem.api.facts import facts_about  # noqa: PLC0415 # the two types name each other

        return await facts_about(info, EntityId(self.id), first=first, after=after)

    @strawberry.field(description="Current memories that mention it, newest first.")
    async def memories(
        self, info: Info, first: First = 20, after: After = None
    ) -> Connection[Annotated["Memory", strawberry.lazy("graph_mem.api.memories")]]:
        from graph_mem.api.memories import Memory  # noqa: PLC0415 # the two types name each other

        page = page_of("memory.id", first=first, after=after, keys=(str,))
        found = await records.entity_memories(info.context.deps, info.context.principal, EntityId(self.id), page)
        return connection(found, page, order="memory.id", keys=lambda memory: (memory.id,), node=Memory.of)

    @strawberry.field(description="Entities mentioned together with it, most often first.")
    async def related(self, info: Info, first: First = 20, after: After = None) -> Connection["Entity"]:
        page = page_of("entity.together", first=first, after=after)
        found = await records.related(info.context.deps, info.context.principal, EntityId(self.id), page)
        return connection(
            found,
            page,
            order="entity.together",
            keys=lambda pair: (pair[1], pair[0].id),
            node=lambda pair: Entity.of(pair[0]),
        )


@strawberry.type(description="A memory's link to an entity.")
class EntityLink:
    entity: Entity = strawberry.field(description="The entity.")
    role: EntityRole = strawberry.field(description="What it is to the memory.")

    @classmethod
    def of(cls, link: model.EntityLink) -> "EntityLink":
        return cls(entity=Entity.of(link.entity), role=link.role)


@strawberry.type
class EntityQuery:
    @strawberry.field(description="An entity by its id; null if there is none that you may see.")
    async def entity(self, info: Info, id: IdArgument) -> Entity | None:
        found = await records.entity(info.context.deps, info.context.principal, id)
        return Entity.of(found) if found else None

    @strawberry.field(description="Entities by name.")
    async def entities(
        self,
        info: Info,
        query: Annotated[str | None, strawberry.argument(description="Part of a name or alias.")] = None,
        label: Annotated[str | None, strawberry.argument(description="Only this kind of entity.")] = None,
        first: First = 20,
        after: After = None,
    ) -> Connection[Entity] | None:
        page = page_of(_BY_NAME, first=first, after=after, keys=(str, str))
        context = info.context
        found = await records.entity_page(context.deps, context.principal, query=query, label=label, page=page)
        return connection(found, page, order=_BY_NAME, keys=lambda entity: (entity.name, entity.id), node=Entity.of)
