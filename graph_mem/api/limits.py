"""A budget of cost per caller: a token bucket that refills while the caller is quiet."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from graph_mem.errors import RateLimited


@dataclass(frozen=True, slots=True)
class Budget:
    """`burst` units at once, `per_second` from then on. A unit is one node that a query may touch."""

    burst: float = 200_000.0
    per_second: float = 20_000.0

    @classmethod
    def per_minute(cls, cost: float) -> "Budget":
        """`cost` in any minute, at most a sixth of it at once; without a limit for 0."""
        return cls(cost / 6, cost / 60) if cost else cls(inf, inf)


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class RateLimiter:
    """One bucket per caller, in this process; the least recently used are forgotten, which only fills them.

    Several processes each give the whole budget: the limit is there to keep one caller from starving the
    others of a process, not to bill.
    """

    MAX_CALLERS = 10_000

    def __init__(self, budget: Budget | None = None, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget or Budget()
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def spend(self, caller: str, cost: float) -> float:
        """What `caller` has left after spending `cost`; RateLimited if there was not enough.

        A refusal spends nothing, and a cost beyond the whole burst is charged as the burst: the document
        limits, not the rate, decide what a single operation may cost.
        """
        if self.budget.burst == inf:
            return inf
        now = self._monotonic()
        bucket = self._bucket(caller, now)
        price = min(cost, self.budget.burst)
        if bucket.level < price:
            wait_s = (price - bucket.level) / self.budget.per_second
            raise RateLimited(
                f"The operation costs {price:.0f} of your budget, {bucket.level:.0f} are left; "
                f"try again in {wait_s:.1f} s.",
                retry_after_s=wait_s,
            )
        bucket.level -= price
        return bucket.level

    def give_back(self, caller: str, cost: float) -> None:
        """Take back what `caller` spent for nothing."""
        if self.budget.burst != inf:
            bucket = self._bucket(caller, self._monotonic())
            bucket.level = min(self.budget.burst, bucket.level + cost)

    def _bucket(self, caller: str, now: float) -> _Bucket:
        bucket = self._buckets.get(caller)
        if bucket is None:
            bucket = self._buckets[caller] = _Bucket(self.budget.burst, now)
            if len(self._buckets) > self.MAX_CALLERS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(caller)
        bucket.level = min(self.budget.burst, bucket.level + (now - bucket.at) * self.budget.per_second)
        bucket.at = now
        return bucket
