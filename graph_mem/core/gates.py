"""Two gates: who may make what count (facts), and what is worth proposing (consolidation). Both pure tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from graph_mem.core.lifecycle import GATE_SIGNALS, GateRule, LifecycleConfig
from graph_mem.core.model import Place, Principal, Role, ScopeLevel, Standing


def lands(principal: Principal, place: Place, gate: Mapping[Role, frozenset[ScopeLevel]]) -> Standing:
    """CURRENT if what `principal` saves at `place` counts at once, else PROVISIONAL. A caller's claim plays no part.

    `gate` names the levels, of the scopes assigned to a role, in which it writes for everybody; CLIENT includes the
    deals of those clients. What is one's own is one's own business.
    """
    if not principal.reads(place):
        return Standing.PROVISIONAL
    return Standing.CURRENT if place.private or _passes(principal, place, gate) else Standing.PROVISIONAL


def _passes(principal: Principal, place: Place, gate: Mapping[Role, frozenset[ScopeLevel]]) -> bool:
    levels = gate.get(principal.role, frozenset[ScopeLevel]())
    deal_of_own_client = place.scope.level is ScopeLevel.DEAL and (
        principal.role.sees_all_shared or place.scope.client_id in principal.client_ids
    )
    return place.scope.level in levels or (deal_of_own_client and ScopeLevel.CLIENT in levels)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the consolidation gate says of one candidate.

    `score` is blended, 0..1, under either rule; it becomes the starting strength. `over` are the signals at or over
    their bars, `absent` those that nobody measured. `reason` is one sentence with the numbers.
    """

    passed: bool
    score: float
    over: tuple[str, ...]
    absent: tuple[str, ...]
    reason: str


def judge(signals: Mapping[str, float | None], config: LifecycleConfig) -> Verdict:
    """Whether a candidate with these signals may be proposed. An absent signal counts neither for nor against.

    BLENDED: the weighted mean of the signals present reaches the threshold. K_OF_N: `k` of them reach their bars, all
    of them if fewer are present.
    Units: each signal 0..1. Errors: ValueError for an unknown signal or a value out of range.
    """
    present = _present(signals)
    weight = sum(config.weights.get(name, 0.0) for name in present)
    blended = sum(config.weights.get(name, 0.0) * value for name, value in present.items())
    score = min(1.0, blended / weight) if weight else 0.0
    over = tuple(name for name, value in present.items() if name in config.bars and value >= config.bars[name])
    absent = tuple(name for name in GATE_SIGNALS if name not in present)
    if config.gate is GateRule.BLENDED:
        passed = bool(weight) and score >= config.threshold
        rule = f"blended score {score:.2f}, threshold {config.threshold:.2f}"
    else:
        needed = max(1, min(config.k, len(present)))
        passed = len(over) >= needed
        rule = f"{len(over)} of {len(present)} signals reach their bars, {needed} needed"
    return Verdict(passed, score, over, absent, _sentence(rule, present, absent, config))


def _present(signals: Mapping[str, float | None]) -> dict[str, float]:
    """The signals that were measured, in the order of `GATE_SIGNALS`."""
    unknown = sorted(signals.keys() - set(GATE_SIGNALS))
    if unknown:
        raise ValueError(f"unknown signals {', '.join(unknown)}, expected only {', '.join(GATE_SIGNALS)}")
    present = {name: value for name in GATE_SIGNALS if (value := signals.get(name)) is not None}
    for name, value in present.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}, expected 0 to 1")
    return present


def _sentence(rule: str, present: Mapping[str, float], absent: tuple[str, ...], config: LifecycleConfig) -> str:
    shown = ", ".join(f"{name} {value:.2f} (bar {config.bars.get(name, 1.0):.2f})" for name, value in present.items())
    missing = f"; not measured: {', '.join(absent)}" if absent else ""
    return f"{rule[0].upper()}{rule[1:]}: {shown or 'no signal'}{missing}."
