"""When the cycle runs by itself: every night, by one of all workers, and once for any number of nights missed."""

# APScheduler has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import logging
from datetime import UTC, datetime, timedelta

from apscheduler.triggers.cron import CronTrigger

from graph_mem.core.model import OrganizationId
from graph_mem.errors import GraphMemError
from graph_mem.services import Deps, consolidation
from graph_mem.services.consolidation import Report
from graph_mem.store import leases, tenants
from graph_mem.store.db import Tx
from graph_mem.store.leases import Held

_log = logging.getLogger(__name__)

NIGHTLY = "0 2 * * *"
"""At 02:00 UTC."""

_LEASE = "nightly cycle"
_LEASE_MS = 600_000
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)


async def run_if_due(deps: Deps, *, schedule: str = NIGHTLY) -> Report | None:
    """Run the cycle over every organization if a turn of `schedule` passed since the last; None if it was not due.

    Of any number of callers one runs it: the leader, by a lease in the graph that is renewed between organizations.
    Who dies in the middle leaves the turn to the next, which files nothing twice.
    """
    holder, now = deps.new_id("job"), deps.clock()
    held = await _acquire(deps, holder)
    if not held.mine:
        return None
    turn = latest_turn(schedule, now)
    if held.done_at is None or held.done_at >= turn:
        known = held.done_at is not None and held.done_at <= next_turn(schedule, now)
        await deps.db.write(lambda tx: _give_back(tx, holder, turn, known=known))
        return None
    report = Report()
    for org_id in await deps.db.read(_organizations):
        report += await _of(deps, org_id)
        if not (await _acquire(deps, holder)).mine:
            return report
    await deps.db.write(lambda tx: leases.done(tx, _LEASE, holder=holder, turn=turn))
    _log.info("the nightly cycle ran", extra={"turn": turn.isoformat(), "filed": report.filed})
    return report


async def _of(deps: Deps, org_id: OrganizationId) -> Report:
    """The cycle of one organization; one that fails does not keep the others waiting."""
    try:
        return await consolidation.cycle(deps, org_id)
    except GraphMemError as error:
        _log.warning("the nightly cycle failed", extra={"org": org_id, "code": error.code})
        return Report()


async def _acquire(deps: Deps, holder: str) -> Held:
    return await deps.db.write(lambda tx: leases.acquire(tx, _LEASE, holder=holder, for_ms=_LEASE_MS))


async def _give_back(tx: Tx, holder: str, turn: datetime, *, known: bool) -> None:
    """Without a turn that is `known` to be done the count begins: there is nothing to make up before it.

    So too after one beyond the next, which a clock did that was far ahead: no nights are left out until then.
    """
    if known:
        await leases.release(tx, _LEASE, holder=holder)
    else:
        await leases.done(tx, _LEASE, holder=holder, turn=turn)


async def _organizations(tx: Tx) -> list[OrganizationId]:
    return [organization.id for organization in await tenants.list_organizations(tx)]


def next_turn(schedule: str, now: datetime) -> datetime:
    """The first time after `now` that the cron line `schedule` names."""
    trigger = CronTrigger.from_crontab(schedule, timezone=UTC)
    turn: datetime | None = trigger.get_next_fire_time(None, now + _SECOND)
    return turn or now


def latest_turn(schedule: str, now: datetime) -> datetime:
    """The last time at or before `now` that the cron line `schedule` names."""
    trigger = CronTrigger.from_crontab(schedule, timezone=UTC)
    found: datetime | None = None
    back = _DAY
    while found is None:
        turn: datetime | None = trigger.get_next_fire_time(None, now.replace(microsecond=0) - back)
        while turn is not None and turn <= now:
            found, turn = turn, trigger.get_next_fire_time(turn, turn + _SECOND)
        back *= 2
    return found
