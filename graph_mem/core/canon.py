"""Canon: what an agent must see whatever it is asked. Policies, variables and pins, and how they resolve.

Order never depends on when or by whom something was stored, only on what it says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from graph_mem.core.model import Memory, Place, RecordId, ScopeLevel

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

    pin_id: str
    memory_id: RecordId
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
    first: dict[str, int] = {}
    for item in pinned:
        first[item.pin.slot] = min(item.pin.order, first.get(item.pin.slot, item.pin.order))
    shown: dict[RecordId, PinnedMemory] = {}
    absent: list[AbsentPin] = []
    for item in sorted(pinned, key=lambda item: (first[item.pin.slot], item.pin.slot, *_within_slot(item))):
        if item.memory.id in shown:
            absent.append(AbsentPin(item.pin.id, item.pin.memory_id, Absence.DUPLICATE))
        else:
            shown[item.memory.id] = item
    return list(shown.values()), absent


def _within_slot(item: PinnedMemory) -> tuple[tuple[bool, int], int, str, str]:
    return (precedence(item.pin.place), item.pin.order, item.memory.id, item.pin.id)
