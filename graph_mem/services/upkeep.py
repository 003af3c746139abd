"""What keeps search good in the background: centrality, and the end of old traces. Each is a worker's duty."""

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta
from functools import partial

from graph_mem.core.model import ORGANIZATION, OrganizationId, Place
from graph_mem.errors import DatabaseUnavailable, OperationTimeout
from graph_mem.services import Deps
from graph_mem.services.threads import in_thread
from graph_mem.store import centrality, tenants, traces
from graph_mem.store.centrality import LastRun
from graph_mem.store.db import Tx
from graph_mem.store.times import instant

_log = logging.getLogger(__name__)

LEASE = timedelta(minutes=10)
"""How long nobody else computes what one worker has begun; a worker that died is replaced after it."""

REFRESH_AFTER = timedelta(hours=6)
_BULK = 50
_BULK_SHARE = 0.1
_PRUNED_AT_ONCE = 1_000
_BROKEN_OFF_WITHIN_S = 20.0
"""Graph Data Science looks every ten seconds whether it is to end."""

_ASK_AGAIN_S = 0.2


async def refresh_centrality(deps: Deps) -> int:
    """Compute centrality where many records came or went since the last time, or where that is long ago.

    Returns how many partitions were computed. Without Graph Data Science that is none: health and traces say so.
    """

    async def look(tx: Tx) -> dict[str, int]:
        if not await centrality.available(tx):
            return {}
        members = await tenants.list_memberships(tx)
        organizations = await tenants.list_organizations(tx)
        shared = [Place(organization.id, ORGANIZATION).partition_token for organization in organizations]
        private = [Place(org_id, ORGANIZATION, user_id).partition_token for org_id, user_id in members]
        return await centrality.sizes(tx, [*shared, *private])

    done = 0
    for partition, size in (await deps.db.read(look)).items():
        if size and await refresh_partition(deps, partition, size=size):
            done += 1
    return done


def due(last: LastRun, size: int, *, now: datetime) -> bool:
    """Whether a partition of `size` records is to be computed again.

    A last time that is to come was noted by a worker whose clock is ahead: by a little it is as good as now.
    """
    changed = abs(size - last.size)
    return changed >= max(_BULK, _BULK_SHARE * last.size) or abs(now - instant(last.at)) >= REFRESH_AFTER


async def refresh_partition(deps: Deps, partition: str, *, size: int) -> bool:
    """Compute centrality of a partition of `size` records if it is due and nobody else does; whether it was."""
    holder = deps.new_id("job")

    async def claim(tx: Tx) -> LastRun | None:
        return await centrality.claim(tx, partition, holder=holder, lease=LEASE)

    last = await deps.db.write(claim)
    if last is None:
        return False
    now = deps.clock()
    if not due(last, size, now=now):
        await _release(deps, partition, last)
        return False
    try:
        await compute_centrality(deps, partition)
    except asyncio.CancelledError:
        await _release(deps, partition, last)
        raise
    await _release(deps, partition, centrality.run(size, now))
    return True


async def _release(deps: Deps, partition: str, run: LastRun) -> None:
    async def release(tx: Tx) -> None:
        await centrality.release(tx, partition, run)

    await deps.db.write(release)


async def compute_centrality(deps: Deps, partition: str) -> int:
    """Compute centrality of one partition now; returns how many records and entities have it.

    Cancelled, it returns once its thread has ended and dropped its projection.
    """
    connect = deps.db.blocking
    if connect is None:
        return 0
    name = centrality.graph_name(partition)

    async def end() -> None:
        with contextlib.suppress(DatabaseUnavailable, OperationTimeout):
            await deps.db.run(centrality.TERMINATE, name=name)

    compute = partial(centrality.compute, connect, database=deps.db.name, partition=partition, name=name)
    written = await in_thread(compute, stop=end, every_s=_ASK_AGAIN_S, within_s=_BROKEN_OFF_WITHIN_S)
    _log.info("centrality computed", extra={"partition": partition, "nodes": written})
    return written


async def prune_traces(deps: Deps, *, keep: timedelta) -> int:
    """Delete traces of searches and runs, and access entries, older than `keep`; returns how many."""
    before = deps.clock() - keep
    organizations = await deps.db.read(tenants.list_organizations)
    return sum([await _prune(deps, organization.id, before) for organization in organizations])


async def _prune(deps: Deps, org_id: OrganizationId, before: datetime) -> int:
    async def work(tx: Tx) -> int:
        return await traces.prune(tx, org_id, before=before, limit=_PRUNED_AT_ONCE)

    pruned = 0
    while piece := await deps.db.write(work):
        pruned += piece
    return pruned
