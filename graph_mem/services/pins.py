"""Pins, which put a memory in every context of a scope, and evergreen, which keeps one from growing weak."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace

from graph_mem.core import gates
from graph_mem.core.canon import Pin, arranged_pins, erased
from graph_mem.core.model import Event, Memory, Place, Principal, Record, RecordId, Standing, is_id
from graph_mem.core.retrieval import ScopeName
from graph_mem.core.text import check_name
from graph_mem.errors import Conflict, Forbidden, InvalidInput, NotFound
from graph_mem.services import Deps
from graph_mem.store import audit, canon, context, memories, records, scopes, standing
from graph_mem.store.db import Tx

_MAX_SLOT_BYTES = 200
_LEADS_ON = (Standing.CURRENT, Standing.SUPERSEDED, Standing.FOLDED)


@dataclass(frozen=True, kw_only=True)
class NewPin:
    """A pin as a caller gives it, unchecked."""

    memory_id: RecordId
    slot: str
    order: int = 0
    scope: ScopeName = field(default_factory=ScopeName)
    private: bool = False
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Pinned:
    """A pin and the memory it names, which is not always the one it shows."""

    pin: Pin
    memory: Memory


Coming = Awaitable[Pinned]


async def pin(deps: Deps, principal: Principal, new: NewPin) -> Pinned:
    """The pin as it now stands. A memory has one pin for each scope and owner: pinning it again moves that.

    Errors: NotFound; Forbidden for a shared pin where the write gate would not let the caller's facts land active;
    InvalidInput for a memory that not everybody in the scope may read; Conflict for a stale version.
    """
    slot = check_name(new.slot, path=("slot",), max_bytes=_MAX_SLOT_BYTES)
    fresh_id = deps.new_id("pin")
    gate = (await deps.settings.lifecycle(principal.org_id)).write_gate

    async def work(tx: Tx) -> Pinned:
        await canon.lock(tx, principal.org_id, by=fresh_id)
        place = await _place(tx, principal, new)
        if gates.lands(principal, place, gate) is not Standing.CURRENT:
            raise Forbidden(f"Your role {principal.role} does not write here for everybody; pin it for yourself.")
        memory = await _pinnable(tx, principal, new.memory_id, place)
        held = await canon.pin_of_memory(tx, principal, place, memory.id)
        _check_version(held, new.expected_version)
        wanted = Pin(held.id if held else fresh_id, place, memory.id, slot, new.order, held.version if held else 0)
        if held is not None and wanted == held:
            return Pinned(held, memory)
        saved = replace(wanted, version=wanted.version + 1)
        if not await canon.save_pin(tx, principal, saved):
            raise NotFound(new.memory_id, path=("memoryId",))
        return Pinned(saved, memory)

    return await deps.db.write(work)


async def unpin(deps: Deps, principal: Principal, id: str, *, expected_version: int | None = None) -> Pinned:
    """Remove a pin; returns it as it was. Errors as for `pin`."""
    gate = (await deps.settings.lifecycle(principal.org_id)).write_gate
    by = deps.new_id("pin")

    async def work(tx: Tx) -> Pinned:
        await canon.lock(tx, principal.org_id, by=by)
        held = await canon.pin(tx, principal, id)
        if held is None:
            raise NotFound(id, path=("id",))
        if gates.lands(principal, held.place, gate) is not Standing.CURRENT:
            raise Forbidden(f"Your role {principal.role} does not write here for everybody; the pin stays.")
        _check_version(held, expected_version)
        (pinned,) = await _with_memories(tx, principal, [held])
        await canon.remove_pin(tx, principal, id)
        return pinned

    return await deps.db.write(work)


async def pins(deps: Deps, principal: Principal, *, scope: ScopeName) -> list[Pinned]:
    """The pins of `scope` and those around it, in the order in which a context has them."""

    async def work(tx: Tx) -> list[Pinned]:
        within = await scopes.resolve(tx, principal, client_id=scope.client_id, deal_id=scope.deal_id)
        found = await canon.pins(tx, principal, within)
        return await _with_memories(tx, principal, arranged_pins(found))

    return await deps.db.read(work)


async def by_id(deps: Deps, principal: Principal, id: str) -> Pinned | None:
    async def work(tx: Tx) -> Pinned | None:
        found = await canon.pin(tx, principal, id)
        return (await _with_memories(tx, principal, [found]))[0] if found else None

    return await deps.db.read(work)


async def set_evergreen(deps: Deps, principal: Principal, id: str, *, evergreen: bool) -> Record:
    """The record with its floor of strength raised or taken away; nothing happens if it is so already.

    Errors: NotFound; Forbidden for a shared one where the write gate would not let the caller's facts land active.
    """
    gate = (await deps.settings.lifecycle(principal.org_id)).write_gate
    event_id = deps.new_id("evt")

    async def work(tx: Tx) -> Record:
        locked = await standing.lock(tx, principal, [RecordId(id)])
        found = (await records.by_ids(tx, principal, [RecordId(id)])).get(RecordId(id))
        if found is None:
            raise NotFound(id, path=("id",))
        if gates.lands(principal, found.place, gate) is not Standing.CURRENT:
            raise Forbidden(f"Your role {principal.role} does not write here for everybody.")
        if found.signals.evergreen is evergreen:
            return found
        await canon.set_evergreen(tx, principal, found.id, evergreen=evergreen)
        event = Event(
            id=event_id,
            record_id=found.id,
            at=locked.at,
            by=principal.user_id,
            kind="evergreen",
            version=found.version + 1,
            detail={"evergreen": evergreen},
        )
        await audit.append(tx, found.place, event)
        return replace(found, version=found.version + 1, signals=replace(found.signals, evergreen=evergreen))

    return await deps.db.write(work)


async def _place(tx: Tx, principal: Principal, new: NewPin) -> Place:
    scope = await scopes.resolve(tx, principal, client_id=new.scope.client_id, deal_id=new.scope.deal_id)
    return Place(principal.org_id, scope, principal.user_id if new.private else None)


async def _pinnable(tx: Tx, principal: Principal, id: RecordId, place: Place) -> Memory:
    """The memory, if everybody who will see a pin at `place` may read it."""
    found = await memories.by_ids(tx, principal, [id]) if is_id(id, "mem") else []
    if not found:
        raise NotFound(id, path=("memoryId",))
    memory = found[0]
    if memory.standing not in _LEADS_ON:
        raise InvalidInput(f"The memory is {memory.standing}, expected one that is current.", path=("memoryId",))
    if memory.place.private and not place.private:
        raise InvalidInput("The memory is yours alone; pin it with `private: true`.", path=("private",))
    if memory.place.scope not in place.scope.chain():
        raise InvalidInput(
            f"The memory lives in a {memory.place.scope.level} scope that this pin's {place.scope.level} scope is not"
            " part of: not everybody here may read it.",
            path=("scope",),
        )
    return memory


async def _with_memories(tx: Tx, principal: Principal, found: Sequence[Pin]) -> list[Pinned]:
    named = await context.pinned_memories(tx, principal, {pin.memory_id for pin in found})
    return [Pinned(pin, named.get(pin.memory_id) or erased(pin)) for pin in found]


def _check_version(held: Pin | None, expected: int | None) -> None:
    version = held.version if held else 0
    if expected is not None and expected != version:
        raise Conflict(f"The pin is at version {version}, expected {expected}.", current_version=version)
