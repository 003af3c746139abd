"""What was: a record's events, the chain it stands in, and a memory as it was known at some time."""

from dataclasses import replace
from datetime import datetime

from graph_mem.core import supersession
from graph_mem.core.model import Event, Memory, Page, Principal, RecordId, is_id
from graph_mem.core.supersession import Chain
from graph_mem.services import Deps
from graph_mem.store import audit, chains, folding, memories
from graph_mem.store.db import Tx

_LONGEST_CHAIN = 5_000


async def history(deps: Deps, principal: Principal, id: str, page: Page) -> list[Event]:
    """What happened to a record, oldest first; one event more than asked for when there are more.

    Nothing for an id that `principal` may not see. What was erased keeps its events.
    """

    async def work(tx: Tx) -> list[Event]:
        return await audit.history(tx, principal, id, page)

    return await deps.db.read(work)


async def chain(deps: Deps, principal: Principal, id: str) -> Chain | None:
    """What replaced what around a record, oldest first; None if `principal` does not see it."""
    if not is_id(id, "mem", "fact"):
        return None

    async def work(tx: Tx) -> chains.Succession:
        return await chains.succession(tx, principal, RecordId(id), limit=_LONGEST_CHAIN)

    found = await deps.db.read(work)
    if not found.records:
        return None
    made = supersession.chain(found.records, found.links)
    return replace(made, links=tuple(link for link in made.links if link.id not in found.bypassed))


async def memory_known_at(deps: Deps, principal: Principal, id: RecordId, *, at: datetime) -> Memory | None:
    """The memory with the text it had at `at`; None if it was not known yet, or is not visible."""

    async def work(tx: Tx) -> Memory | None:
        found = await memories.by_ids(tx, principal, [id])
        if not found or at < found[0].interval.known_from:
            return None
        former = await folding.version_at(tx, principal, id, at=at)
        return found[0] if former is None else replace(found[0], text=former.text, version=former.version)

    return await deps.db.read(work)
