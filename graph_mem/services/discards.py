"""Takes back what restores have brought in that were broken off and are not to be gone on with."""

from dataclasses import dataclass

from graph_mem.errors import Conflict
from graph_mem.services.admin import AdminDeps
from graph_mem.store import archives, discards, tenants
from graph_mem.store.db import Tx
from graph_mem.store.discards import Unfinished

_BATCH = 5_000
_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Discarded:
    """How many restores were taken back, and how many nodes they had brought."""

    restores: int
    nodes: int


async def discard(deps: AdminDeps) -> Discarded:
    """Remove everything that unfinished restores have brought, in batches; broken off, it is called again.

    Only a restore makes the organizations that it notes, so nothing that was here before it is touched. Errors:
    Conflict, with nothing removed, if an organization has members already: a restore lets people in last of all.
    """
    found = await deps.db.read(discards.unfinished)
    nodes = sum([await _take_back(deps, one) for one in found])
    return Discarded(len(found), nodes)


async def _take_back(deps: AdminDeps, one: Unfinished) -> int:
    async def give_up(tx: Tx) -> None:
        if live := await discards.give_up(tx, one):
            raise Conflict(f"{', '.join(live[:5])} has members already: restore the archive again to its end.")

    async def rest(tx: Tx) -> int:
        removed = await discards.remove_rest(tx, one)
        await tenants.release_names(tx, one.returned, at=deps.clock())
        await archives.done(tx, one.key)
        return removed

    await deps.db.write(give_up)
    nodes = sum([await _remove(deps, one, label) for label in discards.labels()])
    return nodes + await deps.db.write(rest, timeout_s=_TIMEOUT_S)


async def _remove(deps: AdminDeps, one: Unfinished, label: str) -> int:
    async def work(tx: Tx) -> int:
        return await discards.remove(tx, one, label, limit=_BATCH)

    removed = 0
    while piece := await deps.db.write(work, timeout_s=_TIMEOUT_S):
        removed += piece
    return removed
