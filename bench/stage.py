"""A fresh organization for a benchmark, on the Neo4j that the settings name, removed afterwards."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from graph_mem import app
from graph_mem.cli.access import complete
from graph_mem.config import Settings
from graph_mem.core.model import Principal, Role
from graph_mem.services import Deps, admin, new_id
from graph_mem.services.worker import Worker

REMOVE = """
MATCH (n:Memory|Fact|Chunk|Entity|Slot|Event|Job|Proposal|Snapshot|Rehearsal|Trace|Source|Rejection)
WHERE n.org = $org
CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 500 ROWS
"""


@dataclass(frozen=True, slots=True)
class Stage:
    deps: Deps
    principal: Principal
    work_off: Callable[[], Awaitable[None]]


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Everything that the use cases need, an organization with its owner, and a worker on call."""
    async with app.opened(complete(Settings()), light=True) as deps:
        await deps.embedder.settled()
        name = new_id("org")
        made = await admin.create_organization(deps, name=name, owner=f"owner@{name}")
        worker = Worker(deps, app.HANDLERS, org_ids=[made.org_id])

        async def work_off() -> None:
            while await worker.work_once():
                pass

        try:
            yield Stage(deps, Principal(made.org_id, made.user_id, Role.OWNER), work_off)
        finally:
            await deps.db.run(REMOVE, org=made.org_id)
