"""Durable work in the graph, claimed by lease.

A job is due while `runAfter` is in the past. Claiming moves `runAfter` to the end of the lease, so a job whose
worker died comes back by itself. The effect of a job and its removal share one transaction that checks the
lease: two workers may run the same job, only one takes effect. `runAfter` of new jobs is a small rank instead
of a time, always due: lower ranks first, so that one organization's import does not stand before another's note.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graph_mem.core.model import OrganizationId, RecordId
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import ms

ENQUEUE = """
UNWIND $jobs AS new
CREATE (j:Job {id: new.id, kind: new.kind, recordId: new.recordId, org: new.org, partition: new.partition,
               rank: new.rank, runAfter: new.rank, attempts: 0, createdAt: $now})
"""
# Whoever locks several jobs takes them in order of id.
CLAIM = """
MATCH (j:Job) WHERE j.runAfter <= datetime.realtime().epochMillis
  AND j.kind IN $kinds AND ($orgs IS NULL OR j.org IN $orgs)
WITH j ORDER BY j.runAfter, j.id LIMIT $limit
WITH j ORDER BY j.id
SET j.lock = $lease
WITH j WHERE j.runAfter <= datetime.realtime().epochMillis
SET j.runAfter = datetime.realtime().epochMillis + $leaseMs, j.lease = $lease, j.attempts = j.attempts + 1
RETURN j.id AS id, j.kind AS kind, j.recordId AS recordId, j.org AS org, j.partition AS partition,
       j.attempts AS attempts
"""
EXTEND = """
MATCH (j:Job) WHERE j.id IN $ids AND j.lease = $lease
WITH j ORDER BY j.id
SET j.runAfter = datetime.realtime().epochMillis + $leaseMs
"""
POSTPONE = """
UNWIND $jobs AS one
MATCH (j:Job {id: one.id}) WHERE j.lease = $lease
SET j.runAfter = datetime.realtime().epochMillis + one.delayMs, j.lease = null, j.error = one.error
"""
RESCHEDULE = """
MATCH (j:Job) WHERE j.runAfter > datetime.realtime().epochMillis + $longestMs
WITH j ORDER BY j.id
SET j.runAfter = j.rank
RETURN count(*) AS rescheduled
"""
RELEASE = """
MATCH (j:Job) WHERE j.id IN $ids AND j.lease = $lease
WITH j ORDER BY j.id
SET j.runAfter = j.rank, j.lease = null, j.attempts = j.attempts - 1
"""
FINISH = """
MATCH (j:Job) WHERE j.id IN $ids AND j.lease = $lease
WITH j ORDER BY j.id
DELETE j
RETURN count(*) AS finished
"""
HELD = """
UNWIND $ids AS id
MATCH (j:Job {id: id})
SET j.lock = $lease
WITH j WHERE j.lease = $lease
RETURN j.id AS id
"""
HURRY = """
MATCH (j:Job {recordId: $recordId, org: $org, kind: $kind})
SET j.runAfter = j.rank, j.attempts = 0, j.lease = null
RETURN count(*) AS found
"""
BACKLOG = """
MATCH (j:Job)
RETURN count(*) AS waiting, min(j.createdAt) AS oldestAt
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed piece of work on one record."""

    id: str
    kind: str
    record_id: RecordId
    org_id: OrganizationId
    partition: str
    attempts: int

    @classmethod
    def of(cls, row: Row) -> "Job":
        return cls(
            row["id"],
            row["kind"],
            RecordId(row["recordId"]),
            OrganizationId(row["org"]),
            row["partition"],
            row["attempts"],
        )


@dataclass(frozen=True, slots=True)
class NewJob:
    """Work to enqueue. `rank`: 0 for what somebody waits for, the position within a bulk import otherwise."""

    id: str
    kind: str
    record_id: RecordId
    org_id: OrganizationId
    partition: str
    rank: int = 0


async def enqueue(tx: Tx, jobs: Sequence[NewJob], *, now: datetime) -> None:
    """Add `jobs`, due at once."""
    await rows(tx, ENQUEUE, now=ms(now), jobs=list(map(properties, jobs)))


def properties(job: NewJob) -> dict[str, Any]:
    """What `ENQUEUE` asks of each of `$jobs`."""
    return {
        "id": job.id,
        "kind": job.kind,
        "recordId": job.record_id,
        "org": job.org_id,
        "partition": job.partition,
        "rank": job.rank,
    }


async def claim(
    tx: Tx,
    *,
    kinds: Collection[str],
    org_ids: Collection[OrganizationId] | None = None,
    lease: str,
    limit: int,
    lease_ms: int,
) -> list[Job]:
    """At most `limit` due jobs of these kinds, now leased to `lease`. `org_ids` None: of every organization."""
    orgs = None if org_ids is None else list(org_ids)
    found = await rows(tx, CLAIM, kinds=list(kinds), orgs=orgs, lease=lease, limit=limit, leaseMs=lease_ms)
    return [Job.of(job) for job in found]


async def extend(tx: Tx, ids: Sequence[str], *, lease: str, lease_ms: int) -> None:
    """Keep the lease for another `lease_ms`."""
    await rows(tx, EXTEND, ids=list(ids), lease=lease, leaseMs=lease_ms)


async def postpone(tx: Tx, delays_ms: dict[str, int], *, lease: str, error: str) -> None:
    """Give jobs back, due again after their delay."""
    jobs = [{"id": id, "delayMs": delay, "error": error} for id, delay in sorted(delays_ms.items())]
    await rows(tx, POSTPONE, jobs=jobs, lease=lease)


async def reschedule(tx: Tx, *, longest_ms: int) -> int:
    """Make jobs due now that wait for longer than any is made to: Neo4j's clock was set back meanwhile.

    Whoever holds one of them goes on, and has its effect unless another worker is given the job first.
    """
    found = await row(tx, RESCHEDULE, longestMs=longest_ms)
    return found["rescheduled"] if found else 0


async def release(tx: Tx, ids: Sequence[str], *, lease: str) -> None:
    """Give jobs back untouched, due at once: an orderly shutdown."""
    await rows(tx, RELEASE, ids=list(ids), lease=lease)


async def held(tx: Tx, ids: Sequence[str], *, lease: str) -> set[str]:
    """Those of `ids` that are still leased to `lease`, and stay so to the end of the transaction."""
    return {found["id"] for found in await rows(tx, HELD, ids=sorted(ids), lease=lease)}


async def finish(tx: Tx, ids: Sequence[str], *, lease: str) -> int:
    """Remove finished jobs; returns how many of them were still leased to `lease`."""
    found = await row(tx, FINISH, ids=list(ids), lease=lease)
    return found["finished"] if found else 0


async def hurry(tx: Tx, record_id: RecordId, *, org_id: OrganizationId, kind: str) -> bool:
    """Make the record's waiting job due now; False if there is none."""
    found = await row(tx, HURRY, recordId=record_id, org=org_id, kind=kind)
    return bool(found and found["found"])


async def backlog(tx: Tx) -> tuple[int, int | None]:
    """How many jobs wait in the whole database, and when the oldest was made (epoch milliseconds)."""
    found = await row(tx, BACKLOG)
    return (found["waiting"], found["oldestAt"]) if found else (0, None)
