"""Trust: when people have kept enough changes of one shape that the next may be kept unasked."""

import math

from graph_mem.core.lifecycle import LifecycleConfig
from graph_mem.core.proposals import TrustCount

Z_95 = 1.6448536269514722
"""The 0.95 quantile of the standard normal distribution: one-sided confidence of 95 %."""


def lower_bound(kept: int, reverted: int, *, z: float = Z_95) -> float:
    """The share of changes that people would keep, at least: the lower end of the Wilson score interval, 0..1.

    0 without decisions; 0.875 for 19 of 19. Rises with each kept one and falls with each reverted one.
    Errors: ValueError for negative counts.
    Source: Wilson 1927, "Probable inference", J. Am. Stat. Assoc. 22; Brown, Cai, DasGupta 2001 recommend it for
    small samples.
    """
    if kept < 0 or reverted < 0:
        raise ValueError(f"{kept} kept, {reverted} reverted: expected no negative count")
    decided = kept + reverted
    if decided == 0:
        return 0.0
    share, square = kept / decided, z * z
    centre = share + square / (2 * decided)
    spread = z * math.sqrt(share * (1 - share) / decided + square / (4 * decided * decided))
    return max(0.0, (centre - spread) / (1 + square / decided))


def trusted(count: TrustCount, *, minimum: int) -> bool:
    """Whether people kept this shape as reliably as `minimum` kept of `minimum` would show."""
    return lower_bound(count.kept, count.reverted) >= lower_bound(minimum, 0)


def keeps_unasked(count: TrustCount, config: LifecycleConfig, *, low_risk: bool) -> bool:
    """Whether the next change of this shape is kept without asking: low risk, switched on, and trusted."""
    return low_risk and config.auto_keep and trusted(count, minimum=config.trust_minimum)
