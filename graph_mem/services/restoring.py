"""Bringing a record back, within the transaction that found out that it was wrongly retired."""

from datetime import datetime
from typing import Any

from graph_mem.core.model import Event, Fact, Memory, Principal, Record, Relation, Standing
from graph_mem.core.supersession import standing_after_correction
from graph_mem.core.text import text_hash
from graph_mem.services import Deps, slotting
from graph_mem.store import audit, facts, folding, relations, standing
from graph_mem.store.db import Tx
from graph_mem.store.facts import Seated


async def restore(
    tx: Tx, deps: Deps, principal: Principal, link: Relation, *, newer: Record, older: Record, at: datetime
) -> None:
    """Make `older` current again after `link` was retracted, unless another active link retires it.

    Errors: Conflict for a fact whose seat another one than `newer` holds.
    """
    if older.standing is not Standing.SUPERSEDED or await relations.retiring_links(tx, principal, older.id):
        return
    if isinstance(older, Fact):
        await _restore_fact(tx, deps, principal, link, newer=newer, older=older, at=at)
    else:
        await revive_memory(tx, deps, principal, older, at=at, wrongly=True, detail={"relation": link.id})


async def _restore_fact(
    tx: Tx, deps: Deps, principal: Principal, link: Relation, *, newer: Record, older: Fact, at: datetime
) -> None:
    """A fact takes its seat back from the one that wrongly replaced it, which then never held."""
    seated = await facts.seated(tx, principal, older.id)
    if seated is None or seated.withdrawn:
        return
    holder = await facts.holder(tx, principal, seated.seat)
    if holder is not None and holder.fact.id == newer.id:
        await _unseat(tx, deps, principal, holder, link, at=at)
        holder = None
    if standing_after_correction(older, others=(), in_slot=holder.fact if holder else None) is Standing.CURRENT:
        await standing.revive(tx, principal, [older.id], at=at, wrongly=True)
        await facts.reinstate(tx, principal, older.id, at=at)
        await audit.append(tx, older.place, _event(deps, principal, older, "restored", at, {"relation": link.id}))


async def _unseat(tx: Tx, deps: Deps, principal: Principal, holder: Seated, link: Relation, *, at: datetime) -> None:
    fact = holder.fact
    await standing.retire(tx, principal, [fact.id], to=Standing.SUPERSEDED, at=at)
    await facts.withdraw(tx, principal, fact.id, at=at, valid_to=fact.interval.valid_from, reason=None)
    event = slotting.event(deps, principal, fact, "retracted", at, {"relation": link.id}, version=fact.version + 1)
    await audit.append(tx, fact.place, event)


async def revive_memory(
    tx: Tx,
    deps: Deps,
    principal: Principal,
    memory: Memory,
    *,
    at: datetime,
    wrongly: bool,
    detail: dict[str, Any] | None = None,
) -> None:
    """Make a locked memory current again, or fold it into the copy of it that has become current meanwhile."""
    await standing.revive(tx, principal, [memory.id], at=at, wrongly=wrongly)
    await audit.append(tx, memory.place, _event(deps, principal, memory, "restored", at, detail))
    if memory.text is None:
        return
    copy = await standing.claim_text(tx, principal, memory.id, text_hash=text_hash(memory.text))
    if copy is not None:
        await standing.retire(tx, principal, [memory.id], to=Standing.FOLDED, at=at)
        await folding.fold(tx, principal, memory.id, into=copy, at=at)
        await audit.append(tx, memory.place, _event(deps, principal, memory, "folded", at, {"into": copy}))


def _event(
    deps: Deps, principal: Principal, record: Record, kind: str, at: datetime, detail: dict[str, Any] | None
) -> Event:
    return Event(
        id=deps.new_id("evt"),
        record_id=record.id,
        at=at,
        by=principal.user_id,
        kind=kind,
        version=record.version + 1,
        detail=detail,
    )
