"""Facts: saved into their slot, and taken back. Each in one transaction, under the slot's lock."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from graph_mem.core import gates, seats, slots
from graph_mem.core.model import (
    FAR,
    Fact,
    Interval,
    Place,
    Principal,
    RecordId,
    Role,
    ScopeLevel,
    Signals,
    Standing,
    is_id,
)
from graph_mem.core.seats import Seat
from graph_mem.core.slots import Claim, FactOutcome, FactPlan, SlotState
from graph_mem.core.text import check_name, check_text, name_key
from graph_mem.errors import Conflict, Forbidden, InvalidInput, NotFound
from graph_mem.services import Deps, filing, idempotency, slotting
from graph_mem.store import audit, facts, relations, reviews, scopes, standing
from graph_mem.store.db import Tx
from graph_mem.store.facts import Change, Slot

_MAX_STATEMENT_BYTES = 8 * 1024
_MAX_SOURCES = 100


@dataclass(frozen=True, kw_only=True)
class NewFact:
    """What a caller says is true, unchecked. `extracted`: no person says so, a model read it somewhere."""

    subject: str
    relation: str
    statement: str
    client_id: str | None = None
    deal_id: str | None = None
    private: bool = False
    confidence: float | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    source_ids: tuple[str, ...] = ()
    extracted: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a sentence. `fact` is None only for one refused before whose record was erased since."""

    fact: Fact | None
    outcome: FactOutcome
    revoked: Fact | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What the organization decided about its facts. `many_relations` as `name_key` writes them."""

    many_relations: frozenset[str]
    write_gate: Mapping[Role, frozenset[ScopeLevel]]

    def is_many(self, relation: str) -> bool:
        """Whether different sentences of this relation live side by side."""
        return name_key(relation) in self.many_relations


async def rules_of(deps: Deps, principal: Principal) -> Rules:
    """The rules of the caller's organization. Read before a transaction, never in one: it takes a connection."""
    vocabulary = await deps.settings.vocabulary(principal.org_id)
    lifecycle = await deps.settings.lifecycle(principal.org_id)
    return Rules(frozenset(map(name_key, vocabulary.many_relations)), lifecycle.write_gate)


async def save(deps: Deps, principal: Principal, new: NewFact, *, idempotency_key: str | None = None) -> Saved:
    """Let `new` into its slot: as the active fact, as one more source of it, as history, or as a proposal.

    Errors: InvalidInput; NotFound for a scope or source that the caller cannot see; IdempotencyKeyReused.
    Nothing is changed then.
    """
    request = idempotency.request(principal, mutation="saveFact", key=idempotency_key, given=new)
    checked, rules = _checked(new), await rules_of(deps, principal)

    async def work(tx: Tx) -> Saved:
        now = deps.clock()
        answer = await idempotency.replay(tx, request, now=now)
        if answer is not None:
            return await _replayed(tx, principal, answer)
        saved = await save_within(tx, deps, principal, checked, rules=rules)
        await idempotency.remember(tx, request, _answer(saved), now=now)
        return saved

    saved = await deps.db.write(work)
    deps.wakeups.notify()
    return saved


async def save_within(tx: Tx, deps: Deps, principal: Principal, new: NewFact, *, rules: Rules) -> Saved:
    """As `save`, in a transaction of the caller's."""
    many = rules.is_many(new.relation)
    scope = await scopes.resolve(tx, principal, client_id=new.client_id, deal_id=new.deal_id)
    place = Place(principal.org_id, scope, principal.user_id if new.private else None)
    seat = seats.seat(place, subject=new.subject, relation=new.relation, statement=new.statement, many=many)
    slot = await facts.lock_slot(tx, principal, place, seat, subject=new.subject, relation=new.relation, only_same=many)
    await _hold_sources(tx, principal, place, new.source_ids, active=slot.active)
    claim = Claim(
        id=RecordId(deps.new_id("fact")),
        statement=new.statement,
        valid_from=new.valid_from or slot.at,
        valid_to=new.valid_to or FAR,
        standing=Standing.PROVISIONAL if new.extracted else gates.lands(principal, place, rules.write_gate),
        by_person=not new.extracted and principal.role is not Role.AGENT,
    )
    state = await _state(tx, principal, claim, seat=seat, slot=slot, many=many)
    return await _carry_out(
        tx, deps, principal, slots.decide(claim, state), state=state, slot=slot, seat=seat,
        fact=_fact(claim, new, place=place, author=principal, at=slot.at), new=new,
    )  # fmt: skip


def _checked(new: NewFact) -> NewFact:
    """`new` with clean names; InvalidInput for what cannot be stored."""
    for name, at in (("validFrom", new.valid_from), ("validTo", new.valid_to)):
        if at is not None and at.tzinfo is None:
            raise InvalidInput(f"{name} is {at.isoformat()}, expected an instant with an offset.", path=(name,))
    if new.confidence is not None and not 0 <= new.confidence <= 1:
        raise InvalidInput(f"The confidence is {new.confidence}, expected 0 to 1.", path=("confidence",))
    if len(new.source_ids) > _MAX_SOURCES:
        raise InvalidInput(
            f"Found {len(new.source_ids)} sources, expected at most {_MAX_SOURCES}.", path=("sourceIds",)
        )
    return replace(
        new,
        source_ids=tuple(dict.fromkeys(new.source_ids)),
        subject=check_name(new.subject, path=("subject",)),
        relation=check_name(new.relation, path=("relation",)),
        statement=check_text(new.statement, path=("statement",), max_bytes=_MAX_STATEMENT_BYTES),
    )


async def _hold_sources(
    tx: Tx, principal: Principal, place: Place, ids: Sequence[str], *, active: Sequence[Fact]
) -> None:
    """Refuse sources that are not there for the caller, and private ones of what others will read.

    The others are there to the end of the transaction: who erases one meets the fact, or the fact meets the erasure.
    What is `active` in the slot is locked with them, for facts are locked before memories.
    """
    if not ids:
        return
    wanted = [RecordId(id) for id in ids]
    await standing.hold(tx, principal, [*wanted, *(one.id for one in active)])
    seen = await facts.places(tx, principal, wanted)
    for id in wanted:
        if id not in seen:
            raise NotFound(id, path=("sourceIds",))
        if seen[id].private and not place.private:
            raise InvalidInput(f"{id} is private, expected a source that the readers may see.", path=("sourceIds",))


async def _state(tx: Tx, principal: Principal, claim: Claim, *, seat: Seat, slot: Slot, many: bool) -> SlotState:
    active = slot.active[0] if slot.active else None
    early = active is not None and not many and claim.valid_from < active.interval.valid_from
    waiting = await facts.waiting(tx, principal, seat) if claim.standing is Standing.PROVISIONAL else None
    return SlotState(
        active=active,
        others=slot.active[1:],
        past=await facts.past(tx, principal, seat.slot_key) if early else (),
        pending=waiting,
        rejected=slot.refused,
        many=many,
    )


def _fact(claim: Claim, new: NewFact, *, place: Place, author: Principal, at: datetime) -> Fact:
    return Fact(
        id=claim.id,
        place=place,
        subject=new.subject,
        relation=new.relation,
        statement=new.statement,
        standing=claim.standing,
        version=1,
        confidence=1.0 if new.confidence is None else new.confidence,
        created_at=at,
        interval=Interval(valid_from=claim.valid_from, valid_to=claim.valid_to, known_from=at),
        author=author.user_id,
        signals=Signals(confidence=new.confidence, last_validated_at=at),
    )


async def _carry_out(
    tx: Tx,
    deps: Deps,
    principal: Principal,
    plan: FactPlan,
    *,
    state: SlotState,
    slot: Slot,
    seat: Seat,
    fact: Fact,
    new: NewFact,
) -> Saved:
    sources = [RecordId(id) for id in new.source_ids]
    if plan.standing is None:
        known = (*slot.active, *state.past, *((state.pending,) if state.pending else ()))
        kept = next((one for one in known if one.id == plan.existing), None)
        if kept is None:
            return Saved(await facts.refused(tx, principal, seat), plan.outcome)
        await facts.attest(tx, principal, kept.id, source_ids=sources)
        await audit.append(tx, kept.place, slotting.attested(deps, principal, kept, sources, at=slot.at))
        return Saved(kept, plan.outcome)
    fact = slotting.planned(fact, plan)
    room = slotting.room(deps, principal, plan, fact=fact, active=slot.active, at=slot.at)
    change = Change(
        fact=fact,
        seat=seat,
        stated_from=new.valid_from is not None,
        leaving=room.leaving,
        endings=room.endings,
        links=slotting.links(deps, principal, plan, at=slot.at),
        source_ids=sources,
        events=[*room.events, slotting.saved(deps, principal, fact, plan, sources)],
        jobs=[slotting.embedding(deps, fact)],
    )
    await facts.write(tx, principal, change)
    if plan.bypassed:
        await relations.bypass(tx, principal, newer=plan.bypassed[0], older=plan.bypassed[1])
    if plan.lifts_rejection and plan.standing is not Standing.PROVISIONAL:
        await facts.forgive(tx, key=seat.rejection_key)
    if fact.standing is Standing.PROVISIONAL and not new.extracted:
        await reviews.file(tx, [filing.of_fact(deps, fact, sources, by=principal.user_id)])
    return Saved(fact, plan.outcome, room.revoked)


def _answer(saved: Saved) -> str:
    ids = {"fact": saved.fact and saved.fact.id, "revoked": saved.revoked and saved.revoked.id}
    return json.dumps({**ids, "outcome": saved.outcome.value})


async def _replayed(tx: Tx, principal: Principal, answer: str) -> Saved:
    given = json.loads(answer)
    ids = [RecordId(id) for id in (given["fact"], given["revoked"]) if id]
    found = {fact.id: fact for fact in await facts.by_ids(tx, principal, ids)}
    if given["fact"] and given["fact"] not in found:
        raise NotFound(given["fact"])
    return Saved(found.get(given["fact"]), FactOutcome(given["outcome"]), found.get(given["revoked"]), replayed=True)


async def retract(
    deps: Deps,
    principal: Principal,
    id: str,
    *,
    reason: str,
    reject: bool = False,
    expected_version: int | None = None,
) -> Fact:
    """Take a fact back without a new value: it held until now. `reject`: it never did, and is to stay away.

    Errors: NotFound; Forbidden for whoever could not have made it count; Conflict for a stale version or a fact
    that is neither active nor provisional.
    """
    check_text(reason, path=("reason",), max_bytes=_MAX_STATEMENT_BYTES)
    rules = await rules_of(deps, principal)

    async def work(tx: Tx) -> Fact:
        if not is_id(id, "fact"):
            raise NotFound(id, path=("id",))
        locked = await standing.lock(tx, principal, [RecordId(id)])
        seated = await facts.seated(tx, principal, RecordId(id))
        if seated is None:
            raise NotFound(id, path=("id",))
        fact = seated.fact
        if gates.lands(principal, fact.place, rules.write_gate) is not Standing.CURRENT and not _own_proposal(
            principal, fact
        ):
            raise Forbidden(f"Your role {principal.role} takes back no fact of this scope.")
        _check_retractable(fact, expected_version)
        await slotting.withdraw(tx, deps, principal, seated, at=locked.at, reason=reason, never=reject)
        return (await facts.by_ids(tx, principal, [fact.id]))[0]

    return await deps.db.write(work)


def _own_proposal(principal: Principal, fact: Fact) -> bool:
    return fact.standing is Standing.PROVISIONAL and fact.author == principal.user_id


def _check_retractable(fact: Fact, expected_version: int | None) -> None:
    if expected_version not in (None, fact.version):
        raise Conflict(
            f"{fact.id} is at version {fact.version}, expected {expected_version}.", current_version=fact.version
        )
    if fact.standing not in (Standing.CURRENT, Standing.PROVISIONAL):
        raise Conflict(f"{fact.id} is {fact.standing}, expected CURRENT or PROVISIONAL.", current_version=fact.version)
