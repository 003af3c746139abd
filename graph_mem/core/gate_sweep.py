"""Which gate separates best what people would keep from what they would not, over labelled candidates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graph_mem.core.gates import judge
from graph_mem.core.lifecycle import GATE_SIGNALS, GateRule, LifecycleConfig


@dataclass(frozen=True, slots=True)
class Labelled:
    """A candidate with its signals, absent ones left out, and whether people would keep it."""

    signals: dict[str, float | None]
    keep: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one setting of one rule does. Precision and recall are of the candidates that people would keep."""

    config: LifecycleConfig
    passed: int
    kept: int
    wanted: int

    @property
    def precision(self) -> float:
        return self.kept / self.passed if self.passed else 0.0

    @property
    def recall(self) -> float:
        return self.kept / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def outcomes(labelled: Sequence[Labelled], base: LifecycleConfig) -> list[Outcome]:
    """Every threshold in steps of 0.01, and every k, with the weights and bars of `base`."""
    blended = (replace(base, gate=GateRule.BLENDED, threshold=step / 100) for step in range(20, 91))
    counted = (replace(base, gate=GateRule.K_OF_N, k=k) for k in range(1, len(GATE_SIGNALS) + 1))
    return [_outcome(labelled, config) for config in (*blended, *counted)]


def best(found: Iterable[Outcome], rule: GateRule) -> Outcome:
    """The setting of `rule` with the best F1; of equal ones the middle, which is furthest from doing worse."""
    of_rule = [one for one in found if one.config.gate is rule]
    top = max(one.f1 for one in of_rule)
    equal = [one for one in of_rule if one.f1 == top]
    return equal[len(equal) // 2]


def _outcome(labelled: Sequence[Labelled], config: LifecycleConfig) -> Outcome:
    passed = [one for one in labelled if judge(one.signals, config).passed]
    return Outcome(
        config,
        passed=len(passed),
        kept=sum(one.keep for one in passed),
        wanted=sum(one.keep for one in labelled),
    )
