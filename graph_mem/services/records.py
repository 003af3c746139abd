"""Reading records and what hangs on them."""

from collections.abc import Collection, Sequence
from datetime import datetime

from graph_mem.core.model import (
    FAR,
    Entity,
    EntityId,
    EntityLink,
    Memory,
    MemoryVersion,
    Page,
    Principal,
    Record,
    RecordId,
    Standing,
)
from graph_mem.core.strength import Strength, strength_of
from graph_mem.services import Deps
from graph_mem.store import entities, memories, records, scopes
from graph_mem.store import lineage as lines
from graph_mem.store.db import Tx
from graph_mem.store.lineage import Lineage
from graph_mem.store.memories import Filter

_BEGINNING = datetime.min.replace(tzinfo=FAR.tzinfo)


async def by_ids(deps: Deps, principal: Principal, ids: Collection[RecordId]) -> dict[RecordId, Record]:
    """The memories and facts among `ids` that `principal` may see."""

    async def work(tx: Tx) -> dict[RecordId, Record]:
        return await records.by_ids(tx, principal, ids)

    return await deps.db.read(work)


async def lineage(deps: Deps, principal: Principal, ids: Collection[RecordId]) -> dict[RecordId, Lineage]:
    """What directly replaced what, around each of `ids`."""

    async def work(tx: Tx) -> dict[RecordId, Lineage]:
        return await lines.lineage(tx, principal, ids)

    return await deps.db.read(work)


async def strength(deps: Deps, principal: Principal, record: Record) -> Strength:
    """How strong `record` is now."""
    vocabulary = await deps.settings.vocabulary(principal.org_id)
    config = await deps.settings.retrieval(principal.org_id)
    return strength_of(record, vocabulary=vocabulary, weights=config.strength_weights, now=deps.clock())


async def list_filter(
    deps: Deps,
    principal: Principal,
    *,
    scope: tuple[str | None, str | None] | None,
    labels: Sequence[str] | None,
    standings: Sequence[Standing],
    created_from: datetime | None,
    created_to: datetime | None,
) -> Filter:
    """The filter of a list of memories; `scope` is (client id, deal id), None for every readable one.

    Errors: NotFound for a scope that is none or not readable; InvalidInput for an unknown label.
    """
    vocabulary = await deps.settings.vocabulary(principal.org_id)
    for label in labels or ():
        vocabulary.label(label)

    async def work(tx: Tx) -> Filter:
        resolved = None
        if scope is not None:
            resolved = await scopes.resolve(tx, principal, client_id=scope[0], deal_id=scope[1])
        return Filter(
            resolved,
            None if labels is None else tuple(labels),
            tuple(standings),
            created_from or _BEGINNING,
            created_to or FAR,
        )

    return await deps.db.read(work)


async def page(deps: Deps, principal: Principal, filter: Filter, page: Page) -> list[Memory]:
    """Memories, newest first; one more than asked for when there are more."""

    async def work(tx: Tx) -> list[Memory]:
        return await memories.page(tx, principal, filter, page)

    return await deps.db.read(work)


async def count(deps: Deps, principal: Principal, filter: Filter) -> int:
    async def work(tx: Tx) -> int:
        return await memories.count(tx, principal, filter)

    return await deps.db.read(work)


async def pending(deps: Deps, principal: Principal) -> int:
    """How many memories are still to be processed."""

    async def work(tx: Tx) -> int:
        return await memories.pending(tx, principal)

    return await deps.db.read(work)


async def versions(deps: Deps, principal: Principal, id: RecordId, page: Page) -> list[MemoryVersion]:
    """Former texts of a memory, newest first."""

    async def work(tx: Tx) -> list[MemoryVersion]:
        return await memories.versions(tx, principal, id, page)

    return await deps.db.read(work)


async def entity_links(deps: Deps, principal: Principal, ids: Collection[RecordId]) -> dict[RecordId, list[EntityLink]]:
    """The entities that each of the memories mentions, by name."""

    async def work(tx: Tx) -> dict[RecordId, list[EntityLink]]:
        return await entities.of_memories(tx, principal, sorted(ids))

    return await deps.db.read(work)


async def entity(deps: Deps, principal: Principal, id: str) -> Entity | None:
    async def work(tx: Tx) -> list[Entity]:
        return await entities.by_ids(tx, principal, [id])

    found = await deps.db.read(work)
    return found[0] if found else None


async def entity_page(
    deps: Deps, principal: Principal, *, query: str | None, label: str | None, page: Page
) -> list[Entity]:
    """Entities by name; `query` is part of a name or alias."""

    async def work(tx: Tx) -> list[Entity]:
        return await entities.page(tx, principal, query=query, label=label, page=page)

    return await deps.db.read(work)


async def entity_memories(deps: Deps, principal: Principal, id: EntityId, page: Page) -> list[Memory]:
    """Current memories that mention the entity, newest first."""

    async def work(tx: Tx) -> list[Memory]:
        return await entities.memories(tx, principal, id, page)

    return await deps.db.read(work)


async def related(deps: Deps, principal: Principal, id: EntityId, page: Page) -> list[tuple[Entity, int]]:
    """Entities mentioned together with this one, and in how many memories."""

    async def work(tx: Tx) -> list[tuple[Entity, int]]:
        return await entities.related(tx, principal, id, page)

    return await deps.db.read(work)
