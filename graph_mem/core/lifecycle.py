"""How one organization lets its base change: gates, trust, rehearsal, archive, erasure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from graph_mem.core.model import Role, ScopeLevel, UserId
from graph_mem.errors import InvalidInput


class GateRule(StrEnum):
    BLENDED = "BLENDED"
    K_OF_N = "K_OF_N"


class ArchiveMode(StrEnum):
    OFF = "OFF"
    PROPOSE = "PROPOSE"
    AUTO = "AUTO"


class ReingestPolicy(StrEnum):
    ALLOW = "ALLOW"
    REFUSE = "REFUSE"


GATE_SIGNALS = ("recurrence", "diversity", "centrality", "confidence", "worth")
"""What the consolidation gate weighs, each 0..1. The first two are counted from cited activity, never judged;
the others may be absent and then drop out."""

DEFAULT_WEIGHTS: Mapping[str, float] = {
    "recurrence": 0.5,
    "diversity": 1.0,
    "centrality": 0.5,
    "confidence": 1.0,
    "worth": 1.0,
}
DEFAULT_BARS: Mapping[str, float] = {
    "recurrence": 0.35,
    "diversity": 0.4,
    "centrality": 0.5,
    "confidence": 0.6,
    "worth": 0.6,
}
DEFAULT_WRITE_GATE: Mapping[Role, frozenset[ScopeLevel]] = {
    Role.OWNER: frozenset(ScopeLevel),
    Role.ADMIN: frozenset(ScopeLevel),
    Role.SOLUTIONS_ENGINEER: frozenset({ScopeLevel.DEAL}),
    Role.PROJECT_MANAGER: frozenset({ScopeLevel.CLIENT}),
    Role.MEMBER: frozenset(),
    Role.AGENT: frozenset(),
}
"""The scopes, of those assigned to them, in which a role's facts land active (SPEC 4). CLIENT includes a client's
deals."""


@dataclass(frozen=True, slots=True)
class LifecycleConfig:
    """What an organization decided about keeping and forgetting. Scores and bars are 0..1.

    `threshold` is the blended gate's, fitted by `graph-mem sweep --gate` (docs/housekeeping.md); with `K_OF_N`, `k`
    of the signals present must reach their `bars`. Records weaker than `archive_below` may be archived.
    `trust_minimum`: so many kept of as many suffice to keep the next of a shape unasked. `promote_to` is the label
    that a finding which passed the gate is proposed for.
    """

    version: int = 0
    gate: GateRule = GateRule.BLENDED
    threshold: float = 0.5
    k: int = 3
    bars: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_BARS))
    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    archive: ArchiveMode = ArchiveMode.PROPOSE
    archive_below: float = 0.05
    auto_keep: bool = False
    trust_minimum: int = 19
    rehearsal_days: tuple[int, ...] = (1, 3, 7, 21, 60)
    after_erase: ReingestPolicy = ReingestPolicy.ALLOW
    write_gate: Mapping[Role, frozenset[ScopeLevel]] = field(default_factory=lambda: dict(DEFAULT_WRITE_GATE))
    promote_to: str = "insight"
    updated_at: datetime | None = None
    updated_by: UserId | None = None

    def __post_init__(self) -> None:
        _share("threshold", self.threshold)
        _share("archiveBelow", self.archive_below)
        _whole("k", self.k, least=1, most=len(GATE_SIGNALS))
        _whole("trustMinimum", self.trust_minimum, least=1, most=1000)
        _signal_map("bars", self.bars, most=1.0)
        _signal_map("weights", self.weights, most=100.0)
        if not any(self.weights.values()):
            raise InvalidInput("weights are all 0, expected one above.", path=("weights",))
        if not self.rehearsal_days or list(self.rehearsal_days) != sorted(set(self.rehearsal_days)):
            raise InvalidInput(
                f"rehearsalDays is {list(self.rehearsal_days)}, expected at least one number of days, each more than"
                " the one before.",
                path=("rehearsalDays",),
            )
        for days in self.rehearsal_days:
            _whole("rehearsalDays", days, least=1, most=3650)

    def changed(self, changes: Mapping[str, Any]) -> "LifecycleConfig":
        """This configuration with some values replaced; InvalidInput for an unknown name or a value out of range."""
        unknown = sorted(set(changes) - OVERRIDABLE)
        if unknown:
            raise InvalidInput(f"Unknown settings: {', '.join(unknown)[:200]}.", path=tuple(unknown[:1]))
        return replace(self, **{name: self._typed(name, value) for name, value in changes.items()})

    def overrides(self, defaults: "LifecycleConfig") -> dict[str, Any]:
        """What this configuration has other than `defaults`, as plain JSON values."""
        mine = {name: getattr(self, name) for name in sorted(OVERRIDABLE)}
        return {name: _plain(value) for name, value in mine.items() if value != getattr(defaults, name)}

    def _typed(self, name: str, value: Any) -> Any:
        match name:
            case "gate":
                return GateRule(value)
            case "archive":
                return ArchiveMode(value)
            case "after_erase":
                return ReingestPolicy(value)
            case "auto_keep":
                return bool(value)
            case "rehearsal_days":
                return tuple(value)
            case "bars" | "weights":
                return {**getattr(self, name), **_object(name, value)}
            case "write_gate":
                return {**self.write_gate, **_gate_table(value)}
            case _:
                return value


OVERRIDABLE = frozenset(f.name for f in fields(LifecycleConfig)) - {"version", "updated_at", "updated_by"}
_LEVELS = tuple(ScopeLevel)


def _gate_table(value: Any) -> dict[Role, frozenset[ScopeLevel]]:
    table: dict[Role, frozenset[ScopeLevel]] = {}
    for role, given in _object("writeGate", value).items():
        levels = cast("list[object]", given) if isinstance(given, list) else None
        if role not in Role.__members__ or levels is None or any(level not in _LEVELS for level in levels):
            raise _bad_gate(role, cast("object", given))
        table[Role(role)] = frozenset(level for level in ScopeLevel if level in levels)
    if any(not table.get(role, {ScopeLevel.ORGANIZATION}) for role in (Role.OWNER, Role.ADMIN)):
        raise InvalidInput("writeGate: somebody must be able to write; OWNER and ADMIN cannot be shut out.")
    return table


def _bad_gate(role: object, levels: object) -> InvalidInput:
    return InvalidInput(
        f"writeGate.{str(role)[:40]} is {str(levels)[:80]}, expected a role ({', '.join(Role)}) with a list of"
        f" {', '.join(ScopeLevel)}.",
        path=("writeGate",),
    )


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} is {str(value)[:80]!r}, expected an object.", path=(name,))
    return cast("Mapping[str, Any]", value)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {str(key): _plain(item) for key, item in items}
        case frozenset():
            return sorted(str(item) for item in cast("frozenset[object]", value))
        case tuple():
            return list(cast("tuple[object, ...]", value))
        case _:
            return value


def _share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} is {value!r}, expected 0 to 1.", path=(name,))


def _whole(name: str, value: Any, *, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{name} holds {value!r}, expected a whole number from {least} to {most}.", path=(name,))


def _signal_map(name: str, values: Mapping[str, Any], *, most: float) -> None:
    unknown = sorted(set(values) - set(GATE_SIGNALS))
    if unknown:
        raise InvalidInput(
            f"{name} has {', '.join(unknown)[:200]}, expected only {', '.join(GATE_SIGNALS)}.", path=(name,)
        )
    for signal, value in values.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not 0 <= value <= most:
            raise InvalidInput(f"{name}.{signal} is {value!r}, expected 0 to {most:g}.", path=(name,))
