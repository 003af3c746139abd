"""What the outcome of a rehearsal does to a record's box, within the transaction that records it."""

from graph_mem.core import rehearsal
from graph_mem.core.model import Principal, Record
from graph_mem.services import Deps
from graph_mem.store import rehearsals
from graph_mem.store.db import Tx


async def answered(tx: Tx, deps: Deps, principal: Principal, record: Record, *, holds: bool) -> None:
    """Move a record that is rehearsed to the box that follows; others have none."""
    held = await rehearsals.lock(tx, principal, record.id)
    if held is None:
        return
    days = (await deps.settings.lifecycle(record.place.org_id)).rehearsal_days
    now = deps.clock()
    new = rehearsal.validated(held, now, days=days) if holds else rehearsal.refuted(now, days=days)
    await rehearsals.record(tx, principal, record.id, new, at=now)
