"""Who calls, how the service is, and any record by its global id."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

import strawberry

from graph_mem import __version__
from graph_mem.api.context import context_node
from graph_mem.api.entities import Entity
from graph_mem.api.nodes import IdArgument, Node, Scope
from graph_mem.api.proposals import Proposal
from graph_mem.api.records import by_id, record_type
from graph_mem.api.relations import Relation
from graph_mem.api.session import Info
from graph_mem.api.traces import RetrievalTrace
from graph_mem.core.model import RecordId, Role, is_id
from graph_mem.errors import InvalidInput
from graph_mem.services import accounts, health, identity, records, relations, review
from graph_mem.services.health import ServiceState

strawberry.enum(Role, description="What a member may do in the organization.")
strawberry.enum(ServiceState, description="How a part does its work.")

_MOST_NODES = 100


@strawberry.type(description="A tenant. Nothing crosses it.")
class Organization(Node):
    name: str = strawberry.field(description="Its name.")


@strawberry.type(description="Who calls.")
class Viewer:
    organization: Organization = strawberry.field(description="The organization that the token is for.")
    user_id: strawberry.ID = strawberry.field(description="The user that the token is for.")
    role: Role = strawberry.field(description="The user's role, as the graph has it now.")
    assignments: list[Scope] = strawberry.field(description="The clients and deals the user is assigned to.")


@strawberry.type(description="How one part of the service is.")
class HealthCheck:
    name: str = strawberry.field(description="Which part.")
    state: ServiceState = strawberry.field(description="How it is.")
    detail: str | None = strawberry.field(description="More about it.")


@strawberry.type(description="How the service is.")
class Health:
    state: ServiceState = strawberry.field(description="The worst of all checks.")
    version: str = strawberry.field(description="The version of graph-mem.")
    checks: list[HealthCheck] = strawberry.field(description="One for each part.")


@strawberry.type
class SystemQuery:
    @strawberry.field(description="Anything by its global id; null if there is none that you may see.")
    async def node(self, info: Info, id: IdArgument) -> Node | None:
        return await _node(info, id)

    @strawberry.field(description="Several by their ids, in order; null for each that you may not see.")
    async def nodes(
        self,
        info: Info,
        ids: Annotated[list[strawberry.ID], strawberry.argument(description="At most 100.")],
    ) -> list[Node | None]:
        if len(ids) > _MOST_NODES:
            raise InvalidInput(f"`ids` holds {len(ids)}, expected at most {_MOST_NODES}.", path=("ids",))
        return [await _node(info, id) for id in ids]

    @strawberry.field(description="Who you are here.")
    async def viewer(self, info: Info) -> Viewer:
        found = await identity.viewer(info.context.deps, info.context.principal)
        return Viewer(
            organization=Organization(id=strawberry.ID(found.organization.id), name=found.organization.name),
            user_id=strawberry.ID(info.context.principal.user_id),
            role=info.context.principal.role,
            assignments=[Scope.of(scope) for scope in found.assignments],
        )

    @strawberry.field(description="Needs no token.")
    async def health(self, info: Info) -> Health:
        found = await health.check(info.context.deps)
        checks = [HealthCheck(name=one.name, state=one.state, detail=one.detail) for one in found.checks]
        return Health(state=found.state, version=__version__, checks=checks)


async def _node(info: Info, id: str) -> Node | None:
    """Whatever has this id, by the same rules as the field of its own type."""
    load = _LOADERS.get(id.partition("_")[0]) if is_id(id) else None
    return await load(info, id) if load else None


async def _record(info: Info, id: str) -> Node | None:
    record = await info.context.once(by_id).load(RecordId(id))
    return record_type(record) if record else None


async def _entity(info: Info, id: str) -> Node | None:
    entity = await records.entity(info.context.deps, info.context.principal, id)
    return Entity.of(entity) if entity else None


async def _relation(info: Info, id: str) -> Node | None:
    link = await relations.by_id(info.context.deps, info.context.principal, id)
    return Relation.of(link) if link else None


async def _trace(info: Info, id: str) -> Node | None:
    account = await accounts.trace(info.context.deps, info.context.principal, id)
    return RetrievalTrace.of(account) if account else None


async def _proposal(info: Info, id: str) -> Node | None:
    found = await review.by_ids(info.context.deps, info.context.principal, [id])
    return Proposal.of(found[0]) if found else None


async def _organization(info: Info, id: str) -> Node | None:
    own = (await identity.viewer(info.context.deps, info.context.principal)).organization
    return Organization(id=strawberry.ID(own.id), name=own.name) if own.id == id else None


_LOADERS: Mapping[str, Callable[[Info, str], Awaitable[Node | None]]] = {
    "org": _organization,
    "mem": _record,
    "fact": _record,
    "ent": _entity,
    "rel": _relation,
    "trc": _trace,
    "prop": _proposal,
    "pol": context_node,
    "pin": context_node,
    "scr": context_node,
    "run": context_node,
}
