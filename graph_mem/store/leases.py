"""One leader at a time, by a lease in the graph; and which turn of a schedule was done last."""

from dataclasses import dataclass
from datetime import datetime

from graph_mem.store.db import Tx, row
from graph_mem.store.times import instant_or_none, ms

ACQUIRE = """
MERGE (l:Lease {name: $name})
SET l.lock = $holder
WITH l, datetime.realtime().epochMillis AS now
FOREACH (_ IN CASE WHEN l.holder = $holder OR coalesce(l.until, 0) < now THEN [1] ELSE [] END |
  SET l.holder = $holder, l.until = now + $forMs)
RETURN l.holder = $holder AS mine, l.doneAt AS doneAt
"""
DONE = """
MATCH (l:Lease {name: $name, holder: $holder})
SET l.doneAt = $doneAt, l.holder = null, l.until = null
"""
RELEASE = """
MATCH (l:Lease {name: $name, holder: $holder})
SET l.holder = null, l.until = null
"""


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that somebody holds; `done_at` is the turn that was finished last, None if none ever was."""

    mine: bool
    done_at: datetime | None


async def acquire(tx: Tx, name: str, *, holder: str, for_ms: int) -> Held:
    """Take or extend the lease `name` for `for_ms`, unless another holder has it."""
    found = await row(tx, ACQUIRE, name=name, holder=holder, forMs=for_ms)
    assert found is not None  # noqa: S101  MERGE always gives a row
    return Held(mine=bool(found["mine"]), done_at=instant_or_none(found["doneAt"]))


async def done(tx: Tx, name: str, *, holder: str, turn: datetime) -> None:
    """Note that the holder finished `turn`, and give the lease back."""
    await row(tx, DONE, name=name, holder=holder, doneAt=ms(turn))


async def release(tx: Tx, name: str, *, holder: str) -> None:
    """Give the lease back with nothing done."""
    await row(tx, RELEASE, name=name, holder=holder)
