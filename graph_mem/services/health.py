"""Whether each part that graph-mem needs does its work."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from graph_mem.errors import GraphMemError
from graph_mem.models.embedder import EmbedderState
from graph_mem.services import Deps
from graph_mem.store import condition
from graph_mem.store.condition import IndexCondition

_TIMEOUT_S = 5.0
_OLD_BACKLOG_S = 600


class ServiceState(StrEnum):
    OK = "OK"
    DEGRADED = "DEGRADED"
    DOWN = "DOWN"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: ServiceState
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the whole is that of its worst part that it cannot do without."""

    checks: tuple[Check, ...]

    @property
    def state(self) -> ServiceState:
        states = {check.state for check in self.checks}
        return next((one for one in (ServiceState.DOWN, ServiceState.DEGRADED) if one in states), ServiceState.OK)


async def check(deps: Deps) -> Health:
    """Ask every part, within five seconds."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            found = await deps.db.read(condition.examine)
    except (GraphMemError, TimeoutError) as error:
        down = Check("database", ServiceState.DOWN, getattr(error, "message", "No answer within five seconds."))
        return Health((down, _embedder(deps)))
    return Health(
        (
            Check("database", ServiceState.OK),
            *(_index(index) for index in found.indexes),
            _embedder(deps),
            _backlog(found.oldest_s),
            _centrality(found.gds),
        )
    )


def _index(index: IndexCondition) -> Check:
    if index.state == "ONLINE":
        return Check(f"index {index.name}", ServiceState.OK)
    return Check(f"index {index.name}", ServiceState.DEGRADED, f"The index is {index.state}, expected ONLINE.")


def _embedder(deps: Deps) -> Check:
    status = deps.embedder.status
    if status.state is EmbedderState.READY:
        return Check("embedder", ServiceState.OK, status.model)
    return Check("embedder", ServiceState.DEGRADED, status.reason)


def _backlog(oldest_s: float) -> Check:
    """Anybody may ask: how many jobs of which age there are, which tells of others' work, is for the metrics."""
    if oldest_s > _OLD_BACKLOG_S:
        return Check("worker", ServiceState.DEGRADED, "Jobs have waited for more than ten minutes.")
    return Check("worker", ServiceState.OK)


def _centrality(gds: str | None) -> Check:
    if gds is None:
        reason = "Graph Data Science is not installed: strength goes without centrality."
        return Check("centrality", ServiceState.DEGRADED, reason)
    return Check("centrality", ServiceState.OK, f"Graph Data Science {gds}")
