"""What the outcome of a rehearsal does to a record's box, within the transaction that records it."""

from collections.abc import Sequence
from datetime import datetime

from graph_mem.core import rehearsal
from graph_mem.core.model import Principal, Record
from graph_mem.store import rehearsals
from graph_mem.store.db import Tx


async def answered(
    tx: Tx, principal: Principal, record: Record, *, holds: bool, days: Sequence[int], now: datetime
) -> None:
    """Move a record that is rehearsed to the box that follows; others have none."""
    held = await rehearsals.lock(tx, principal, record.id)
    if held is None:
        return
    new = rehearsal.validated(held, now, days=days) if holds else rehearsal.refuted(now, days=days)
    await rehearsals.record(tx, principal, record.id, new, at=now)
