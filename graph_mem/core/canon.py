"""Canon: what an agent must see whatever it is asked. Policies, variables and pins, and how they resolve.

Order never depends on when or by whom something was stored, only on what it says.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from graph_mem.core.model import (
    Interval,
    Memory,
    Place,
    Processing,
    RecordId,
    ScopeLevel,
    Source,
    SourceKind,
    Standing,
    UserId,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WIDTH = {ScopeLevel.DEAL: 0, ScopeLevel.CLIENT: 1, ScopeLevel.ORGANIZATION: 2}


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule that binds every run in its scope while it is active."""

    id: str
    place: Place
    name: str
    text: str
    priority: int
    active: bool
    version: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A named value. Narrower scopes override wider ones. `value` None: removed."""

    id: str
    place: Place
    name: str
    value: str | None
    version: int


@dataclass(frozen=True, slots=True)
class Pin:
    """Puts one memory, whole, in every context of its scope."""

    id: str
    place: Place
    memory_id: RecordId
    slot: str
    order: int
    version: int


class Absence(StrEnum):
    """Why a pin put nothing in a context."""

    ARCHIVED = "ARCHIVED"
    ERASED = "ERASED"
    NOT_CURRENT = "NOT_CURRENT"
    DUPLICATE = "DUPLICATE"


@dataclass(frozen=True, slots=True)
class PinnedMemory:
    """A pin and the current memory it leads to, which is not the pinned one if `followed`."""

    pin: Pin
    memory: Memory
    followed: bool = False


@dataclass(frozen=True, slots=True)
class AbsentPin:
    """A pin that leads to nothing that may be shown."""

    pin: Pin
    reason: Absence


@dataclass(frozen=True, slots=True)
class Canon:
    """All that holds for one principal in one scope, as looked up: unresolved and in no order."""

    policies: tuple[Policy, ...] = ()
    variables: tuple[Variable, ...] = ()
    pinned: tuple[PinnedMemory, ...] = ()
    absent: tuple[AbsentPin, ...] = ()


def precedence(place: Place) -> tuple[bool, int]:
    """Sorts places from strongest to weakest: a user's own, then deal, client, organization."""
    return (not place.private, _WIDTH[place.scope.level])


def in_force(policies: Iterable[Policy]) -> list[Policy]:
    """The active ones: highest priority first, then the widest scope, then by name."""
    return sorted(
        (policy for policy in policies if policy.active),
        key=lambda policy: (-policy.priority, -_WIDTH[policy.place.scope.level], policy.name, policy.text, policy.id),
    )


def resolved(variables: Iterable[Variable]) -> list[Variable]:
    """For each name the value that wins, by name: organization < client < deal < user."""
    winners: dict[str, Variable] = {}
    for variable in variables:
        held = winners.get(variable.name)
        if variable.value is not None and (held is None or precedence(variable.place) < precedence(held.place)):
            winners[variable.name] = variable
    return [winners[name] for name in sorted(winners)]


def arranged(pinned: Sequence[PinnedMemory]) -> tuple[list[PinnedMemory], list[AbsentPin]]:
    """Pins slot by slot, and those left out because an earlier pin shows the same memory.

    A slot stands where the lowest `order` in it puts it; within it the user's pins come before the deal's, the
    client's and the organization's, each by `order`.
    """
    order = _order([item.pin for item in pinned])
    shown: dict[RecordId, PinnedMemory] = {}
    absent: list[AbsentPin] = []
    for item in sorted(pinned, key=lambda item: order(item.pin, item.memory.id)):
        if item.memory.id in shown:
            absent.append(AbsentPin(item.pin, Absence.DUPLICATE))
        else:
            shown[item.memory.id] = item
    return list(shown.values()), absent


def arranged_pins(pins: Sequence[Pin]) -> list[Pin]:
    """Pins in the order in which a context has them."""
    order = _order(pins)
    return sorted(pins, key=lambda pin: order(pin, pin.memory_id))


def _order(pins: Iterable[Pin]) -> Callable[[Pin, RecordId], tuple[Any, ...]]:
    """The sort key of a pin and the memory it shows, among `pins`."""
    first: dict[str, int] = {}
    for pin in pins:
        first[pin.slot] = min(pin.order, first.get(pin.slot, pin.order))
    return lambda pin, shown: (first[pin.slot], pin.slot, precedence(pin.place), pin.order, shown, pin.id)


def erased(pin: Pin, memory_id: RecordId | None = None) -> Memory:
    """What is left to say of a memory that was pinned, or that a pin led to, and was erased."""
    return Memory(
        id=memory_id or pin.memory_id,
        place=pin.place,
        label="note",
        position=False,
        text=None,
        source=Source(SourceKind.USER, UserId("")),
        processing=Processing.READY,
        standing=Standing.ERASED,
        version=0,
        importance=0.0,
        created_at=_EPOCH,
        fresh_at=_EPOCH,
        interval=Interval(_EPOCH, _EPOCH),
    )
