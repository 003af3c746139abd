"""A provisional fact in review: let into its slot, declined, or taken back, within the transaction of the decision."""

from datetime import datetime

from graph_mem.core.model import Principal, RecordId
from graph_mem.errors import Conflict
from graph_mem.services import Deps, promotion, slotting
from graph_mem.services.facts import Rules
from graph_mem.store import facts, lifecycle, standing
from graph_mem.store.db import Tx


async def reach(tx: Tx, principal: Principal, id: RecordId) -> list[RecordId]:
    """The facts that letting `id` into its slot may touch: all that hold or held there."""
    return await lifecycle.slot_mates(tx, principal, id)


async def promote(tx: Tx, deps: Deps, principal: Principal, id: RecordId, *, rules: Rules, score: float) -> None:
    """Let a provisional fact into its slot; `score` becomes its starting strength."""
    await promotion.promote(tx, deps, principal, id, rules=rules)
    await lifecycle.start_at(tx, principal, id, strength=score)


async def decline(tx: Tx, deps: Deps, principal: Principal, id: RecordId, *, reason: str | None) -> None:
    """Reject a provisional fact: no automatic path brings its value back."""
    locked = await standing.lock(tx, principal, [id])
    seated = await facts.seated(tx, principal, id)
    if seated is None:
        return
    said = reason or "declined in review"
    await slotting.withdraw(tx, deps, principal, seated, at=locked.at, reason=said, never=True)


async def refuse(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> None:
    """Remember that a person took a promotion back."""
    seated = await facts.seated(tx, principal, id)
    if seated is None:
        raise Conflict(f"{id} is gone.")
    await slotting.refuse(tx, principal, seated, at=at)
