"""One leader at a time, by a lease in the graph; which turn of a schedule was done last; when something was erased.

Leases end by Neo4j's clock. One that ends later than a lease can last was taken before that clock was set back, and is
free: nobody waits out an hour that a clock was wrong by.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from graph_mem.core.model import OrganizationId
from graph_mem.store.db import Tx, row, rows
from graph_mem.store.times import instant_or_none, ms

FREE: LiteralString = "NOT now <= coalesce(l.until, 0) <= now + $forMs"
"""Whether the lease `l` is nobody's at `now`, of those that are taken for `$forMs`."""

ACQUIRE = f"""
MERGE (l:Lease {{name: $name}})
SET l.lock = $holder
WITH l, datetime.realtime().epochMillis AS now
FOREACH (_ IN CASE WHEN l.holder = $holder OR {FREE} THEN [1] ELSE [] END |
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

ERASURES = """
UNWIND $names AS name
MERGE (l:Lease {name: name})
SET l.lock = name, l.at = coalesce($at, l.at)
RETURN l.name AS name, coalesce(l.at, $never) AS at
"""
_NEVER = -(2**62)


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


async def last_erasures(
    tx: Tx, org_ids: Collection[OrganizationId], *, at: datetime | None = None
) -> dict[OrganizationId, int]:
    """When something was last erased in each organization, in milliseconds since 1970; `at` says that it is now.

    Nobody else erases there, and no trace is written, before this transaction ends: a query that was asked before an
    erasure is on record before it, and goes with it, or comes after it and is known to be older.
    """
    names = {f"erased {org_id}": org_id for org_id in org_ids}
    given = {"names": sorted(names), "at": None if at is None else ms(at), "never": _NEVER}
    return {names[found["name"]]: found["at"] for found in await rows(tx, ERASURES, **given)}
