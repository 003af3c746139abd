"""Letting a provisional fact into its slot, or declining it, within the transaction of whoever decides."""

from datetime import datetime

from graph_mem.core.model import Principal, RecordId
from graph_mem.errors import Conflict
from graph_mem.services import Deps, slotting
from graph_mem.store import facts, standing
from graph_mem.store.db import Tx


async def reach(tx: Tx, principal: Principal, id: RecordId) -> list[RecordId]:
    """The facts that letting `id` into its slot may touch: all that hold or held there."""
    return await facts.neighbours(tx, principal, id)


async def promote(tx: Tx, deps: Deps, principal: Principal, id: RecordId, *, score: float) -> None:
    raise NotImplementedError


async def decline(tx: Tx, deps: Deps, principal: Principal, id: RecordId, *, reason: str | None) -> None:
    """Reject a provisional fact: no automatic path brings its value back."""
    locked = await standing.lock(tx, principal, [id])
    seated = await facts.seated(tx, principal, id)
    if seated is None:
        return
    await slotting.withdraw(
        tx, deps, principal, seated, at=locked.at, reason=reason or "declined in review", never=True
    )


async def refuse(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> None:
    """Remember that a person took a promotion back."""
    seated = await facts.seated(tx, principal, id)
    if seated is None:
        raise Conflict(f"{id} is gone.")
    await slotting.refuse(tx, principal, seated, at=at)
