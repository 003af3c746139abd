"""Reading facts."""

from datetime import datetime

from graph_mem.core.model import Entity, EntityId, Fact, Memory, Page, Principal, RecordId, Standing
from graph_mem.core.text import name_key
from graph_mem.services import Deps
from graph_mem.store import fact_pages, scopes
from graph_mem.store.db import Tx
from graph_mem.store.fact_pages import Filter


async def list_filter(
    deps: Deps,
    principal: Principal,
    *,
    scope: tuple[str | None, str | None] | None = None,
    subject: str | None = None,
    relation: str | None = None,
    standings: tuple[Standing, ...] = (Standing.CURRENT,),
    as_of: datetime | None = None,
    known_at: datetime | None = None,
) -> Filter:
    """The filter of a list of facts; `scope` is (client id, deal id), None for every readable one.

    Errors: NotFound for a scope that is none or not readable.
    """

    async def work(tx: Tx) -> Filter:
        resolved = None
        if scope is not None:
            resolved = await scopes.resolve(tx, principal, client_id=scope[0], deal_id=scope[1])
        return Filter(
            resolved,
            None if subject is None else name_key(subject),
            None if relation is None else name_key(relation),
            standings,
            as_of,
            known_at,
        )

    return await deps.db.read(work)


async def page(deps: Deps, principal: Principal, filter: Filter, page: Page) -> list[Fact]:
    """Facts, newest first; one more than asked for when there are more."""

    async def work(tx: Tx) -> list[Fact]:
        return await fact_pages.page(tx, principal, filter, page)

    return await deps.db.read(work)


async def count(deps: Deps, principal: Principal, filter: Filter) -> int:
    async def work(tx: Tx) -> int:
        return await fact_pages.count(tx, principal, filter)

    return await deps.db.read(work)


async def of_memory(deps: Deps, principal: Principal, id: RecordId, page: Page) -> list[Fact]:
    """The facts that a memory states, newest first."""

    async def work(tx: Tx) -> list[Fact]:
        return await fact_pages.of_memory(tx, principal, id, page)

    return await deps.db.read(work)


async def about(deps: Deps, principal: Principal, id: EntityId, page: Page) -> list[Fact]:
    """Current facts about an entity, newest first."""

    async def work(tx: Tx) -> list[Fact]:
        return await fact_pages.about(tx, principal, id, page)

    return await deps.db.read(work)


async def sources(deps: Deps, principal: Principal, id: RecordId, page: Page) -> list[Memory]:
    """The memories that state a fact, newest first."""

    async def work(tx: Tx) -> list[Memory]:
        return await fact_pages.sources(tx, principal, id, page)

    return await deps.db.read(work)


async def entity(deps: Deps, principal: Principal, id: RecordId) -> Entity | None:
    """The entity that a fact is about."""

    async def work(tx: Tx) -> Entity | None:
        return await fact_pages.entity(tx, principal, id)

    return await deps.db.read(work)
