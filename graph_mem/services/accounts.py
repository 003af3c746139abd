"""Reading the accounts that searches leave. What this process has not written yet is written first."""

from collections.abc import Sequence

from graph_mem.core.model import Page, Principal
from graph_mem.core.retrieval import Trace
from graph_mem.services import Deps
from graph_mem.store import traces as stored
from graph_mem.store.db import Tx
from graph_mem.store.traces import AccessEntry, Between


async def trace(deps: Deps, principal: Principal, id: str) -> tuple[Trace, int] | None:
    """A trace that the caller may see, and how much of its ranking was handed out."""
    await deps.traces.flush()

    async def work(tx: Tx) -> tuple[Trace, int] | None:
        return await stored.by_id(tx, principal, id)

    return await deps.db.read(work)


async def traces(deps: Deps, principal: Principal, between: Between, page: Page) -> Sequence[tuple[Trace, int]]:
    """Traces newest first; one more than `page.first` when there are more."""
    await deps.traces.flush()

    async def work(tx: Tx) -> Sequence[tuple[Trace, int]]:
        return await stored.page(tx, principal, between, page)

    return await deps.db.read(work)


async def access_log(deps: Deps, principal: Principal, between: Between, page: Page) -> Sequence[AccessEntry]:
    """The access log newest first; one more than `page.first` when there are more."""
    await deps.traces.flush()

    async def work(tx: Tx) -> Sequence[AccessEntry]:
        return await stored.access_log(tx, principal, between, page)

    return await deps.db.read(work)
