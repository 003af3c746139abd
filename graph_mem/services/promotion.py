"""Letting a provisional fact into its slot, within the transaction of whoever decides."""

from dataclasses import replace
from datetime import datetime

from graph_mem.core import slots
from graph_mem.core.model import FAR, Event, Fact, Principal, RecordId, Standing
from graph_mem.core.slots import Claim, FactOutcome, FactPlan, SlotState
from graph_mem.errors import Conflict, NotFound
from graph_mem.services import Deps, slotting
from graph_mem.services.facts import Rules, Saved
from graph_mem.store import audit, facts, folding, relations, standing
from graph_mem.store.db import Tx
from graph_mem.store.facts import Seated, Slot


async def promote(tx: Tx, deps: Deps, principal: Principal, id: RecordId, *, rules: Rules) -> Saved:
    """Give a provisional fact its seat: what was active there is superseded now, and a refusal of the value is over.

    A fact that says what the active one says already is folded into it. Whether `principal` may decide is the
    caller's to check. Errors: NotFound; Conflict for a fact that is not provisional.
    """
    seated = await facts.seated(tx, principal, id)
    if seated is None:
        raise NotFound(id, path=("id",))
    fact, seat = seated.fact, seated.seat
    many = rules.is_many(fact.relation)
    slot = await facts.lock_slot(
        tx, principal, fact.place, seat, subject=fact.subject, relation=fact.relation, only_same=many
    )
    await standing.lock(tx, principal, [id])
    seated = await facts.seated(tx, principal, id)
    if seated is None or seated.fact.standing is not Standing.PROVISIONAL:
        raise Conflict(f"{id} is {seated.fact.standing if seated else 'gone'}, expected PROVISIONAL.")
    claim = _claim(seated, at=slot.at)
    state = SlotState(
        active=slot.active[0] if slot.active else None,
        others=slot.active[1:],
        past=await facts.past(tx, principal, seat.slot_key) if slot.active and not many else (),
        rejected=slot.refused,
        many=many,
    )
    return await _carry_out(tx, deps, principal, slots.decide(claim, state), slot=slot, seated=seated, claim=claim)


def _claim(seated: Seated, *, at: datetime) -> Claim:
    """The fact as something said now; it begins now, unless its saver said when."""
    interval = seated.fact.interval
    valid_from = interval.valid_from if seated.stated_from else at
    return Claim(
        id=seated.fact.id,
        statement=seated.fact.statement,
        valid_from=valid_from,
        valid_to=interval.valid_to if interval.valid_to > valid_from else FAR,
        standing=Standing.CURRENT,
        by_person=True,
    )


async def _carry_out(
    tx: Tx, deps: Deps, principal: Principal, plan: FactPlan, *, slot: Slot, seated: Seated, claim: Claim
) -> Saved:
    fact, at = seated.fact, slot.at
    if plan.standing is None:
        kept = next(one for one in slot.active if one.id == plan.existing)
        await standing.retire(tx, principal, [fact.id], to=Standing.FOLDED, at=at)
        await folding.pass_sources(tx, principal, fact.id, into=kept.id, at=at)
        event = slotting.event(deps, principal, fact, "folded", at, {"into": kept.id}, version=fact.version + 1)
        await audit.append(tx, fact.place, event)
        return Saved(kept, FactOutcome.DEDUPLICATED)
    begun = replace(fact, interval=replace(fact.interval, valid_from=claim.valid_from, valid_to=claim.valid_to))
    promoted = replace(slotting.planned(begun, plan), version=fact.version + 1)
    room = slotting.room(deps, principal, plan, fact=promoted, active=slot.active, at=at)
    if room.leaving:
        await standing.retire(tx, principal, room.leaving, to=Standing.SUPERSEDED, at=at)
    await facts.end(tx, principal, room.endings)
    await facts.promote(
        tx, principal, fact.id, at=at, valid_from=promoted.interval.valid_from, valid_to=promoted.interval.valid_to
    )
    if plan.standing is Standing.CURRENT:
        await standing.revive(tx, principal, [fact.id], at=at, wrongly=False)
    else:
        await standing.retire(tx, principal, [fact.id], to=plan.standing, at=at)
        await facts.know(tx, principal, fact.id, at=at)
    await relations.supersede(tx, principal, slotting.links(deps, principal, plan, at=at))
    if plan.bypassed:
        await relations.bypass(tx, principal, newer=plan.bypassed[0], older=plan.bypassed[1])
    if plan.lifts_rejection:
        await facts.forgive(tx, key=seated.seat.rejection_key)
    await audit.append(tx, fact.place, *room.events, _promoted(deps, principal, promoted, plan, at))
    return Saved((await facts.by_ids(tx, principal, [fact.id]))[0], plan.outcome, room.revoked)


def _promoted(deps: Deps, principal: Principal, fact: Fact, plan: FactPlan, at: datetime) -> Event:
    replaced = [one.older for one in plan.links if one.newer == fact.id and one.retires]
    detail = {"outcome": plan.outcome.value, "standing": fact.standing.value, "supersedes": replaced}
    return slotting.event(deps, principal, fact, "promoted", at, detail)
