"""What `sweep --gate` does: which gate would have kept what people keep."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from rich.table import Table

from graph_mem.cli.acting import as_user
from graph_mem.cli.output import Output
from graph_mem.core.gate_sweep import Labelled, Outcome, best, outcomes
from graph_mem.core.lifecycle import GATE_SIGNALS, GateRule, LifecycleConfig
from graph_mem.core.model import Principal
from graph_mem.errors import InvalidInput
from graph_mem.services import Deps, settings

_MEASURED: dict[str, tuple[str, ...]] = {
    "counted alone": ("recurrence", "diversity"),
    "and the graph": ("recurrence", "diversity", "centrality"),
    "and the author": ("recurrence", "diversity", "centrality", "confidence"),
    "and a judge": GATE_SIGNALS,
}
"""Which signals there are, from what is always there to what only a model adds; the default must do for each."""


def show_gate(
    lines: Sequence[str], *, organization: str, user: str, apply: bool, data_dir: Path | None, as_json: bool
) -> None:
    """Print how each rule does at its best over all that may be measured, and put the better in force if asked."""
    labelled = [_labelled(line, number) for number, line in enumerate(lines, start=1) if line.strip()]
    if not any(one.keep for one in labelled):
        raise InvalidInput(f"Found {len(labelled)} candidates and none to keep, expected some of both.", path=("FILE",))
    base = LifecycleConfig()
    per_set = {name: [_only(one, signals) for one in labelled] for name, signals in _MEASURED.items()}
    overall = outcomes([one for some in per_set.values() for one in some], base)
    chosen = [best(overall, rule) for rule in GateRule]
    default = max(chosen, key=lambda one: one.f1)
    output = Output(as_json=as_json)
    if apply:
        _put_in_force(default.config, organization=organization, user=user, data_dir=data_dir)
        output.note(f"In force for {organization}: {_name(default)}.")
    rows = [(one, name, _same(outcomes(some, base), one)) for one in chosen for name, some in per_set.items()]
    document = {
        "candidates": len(labelled),
        "default": {"gate": default.config.gate.value, "threshold": default.config.threshold, "k": default.config.k},
        "rules": [{"rule": _name(one), "measured": "all of these", **_numbers(one)} for one in chosen]
        + [{"rule": _name(one), "measured": name, **_numbers(found)} for one, name, found in rows],
    }
    output.show(document, _table(chosen, rows, default))


def _labelled(line: str, number: int) -> Labelled:
    problem = f'line {number}: expected {{"signals": {{"recurrence": 0.5, ...}}, "keep": true}}, each signal 0 to 1'
    try:
        found = cast("dict[str, Any]", json.loads(line))
        signals, keep = cast("dict[str, float | None]", found["signals"]), found["keep"]
        made = {str(name): None if value is None else float(value) for name, value in signals.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(problem, path=("FILE",)) from None
    known = all(name in GATE_SIGNALS and (value is None or 0 <= value <= 1) for name, value in made.items())
    if not known or not isinstance(keep, bool):
        raise InvalidInput(problem, path=("FILE",))
    return Labelled(made, keep)


def _only(one: Labelled, signals: Sequence[str]) -> Labelled:
    return Labelled({name: one.signals.get(name) for name in signals}, one.keep)


def _same(found: Sequence[Outcome], as_one: Outcome) -> Outcome:
    """The outcome of the same setting over other candidates."""
    return next(one for one in found if one.config == as_one.config)


def _name(one: Outcome) -> str:
    config = one.config
    return f"blended, {config.threshold:.2f}" if config.gate is GateRule.BLENDED else f"{config.k} of n"


def _numbers(one: Outcome) -> dict[str, float]:
    return {"precision": round(one.precision, 3), "recall": round(one.recall, 3), "f1": round(one.f1, 3)}


def _table(chosen: Sequence[Outcome], rows: Sequence[tuple[Outcome, str, Outcome]], default: Outcome) -> Table:
    table = Table("rule at its best", "measured", "passed", "precision", "recall", "F1")
    for one in chosen:
        mark = " (default that follows)" if one is default else ""
        lines = [("all of these", one), *((name, found) for rule, name, found in rows if rule is one)]
        for name, found in lines:
            numbers = [f"{value:.3f}" for value in _numbers(found).values()]
            table.add_row(_name(one) + mark if name == "all of these" else "", name, str(found.passed), *numbers)
    return table


def _put_in_force(config: LifecycleConfig, *, organization: str, user: str, data_dir: Path | None) -> None:
    async def work(deps: Deps, who: Principal) -> None:
        held = await deps.settings.lifecycle(who.org_id)
        changes = {"gate": config.gate, "threshold": config.threshold, "k": config.k}
        await settings.update_lifecycle(deps, who, expected_version=held.version, changes=changes)

    as_user(work, organization=organization, user=user, data_dir=data_dir)
