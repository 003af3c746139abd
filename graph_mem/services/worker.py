"""Claims jobs from the graph and has them done; any number of workers in any number of processes may run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from opentelemetry.trace import SpanKind

from graph_mem.core.model import OrganizationId
from graph_mem.errors import DatabaseUnavailable, OperationTimeout
from graph_mem.models.embedder import EMBEDDING_ERRORS, EmbedderState
from graph_mem.services import Deps
from graph_mem.services.metrics import FAILURES, JOBS
from graph_mem.services.spans import span
from graph_mem.store import jobs
from graph_mem.store.db import Tx
from graph_mem.store.jobs import Job

_log = logging.getLogger(__name__)

_BATCH = 32
_LEASE_MS = 30_000
_POLL_S = 0.5
_AWAY_S = 2.0
_GIVE_UP_AFTER = 3
_LONGEST_DELAY_MS = 600_000


async def reschedule(deps: Deps) -> int:
    """Make jobs due now that a clock set back has put off for longer than any retry waits; returns how many."""
    return await deps.db.write(lambda tx: jobs.reschedule(tx, longest_ms=_LONGEST_DELAY_MS + _LEASE_MS))


@dataclass(frozen=True, slots=True)
class Handler:
    """How one kind of job is done, and what is said of its records when it fails for good."""

    run: Callable[..., Awaitable[None]]
    fail: Callable[[Deps, Sequence[Job], str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Duty:
    """Something that is due every `every_s` seconds in each worker; it keeps others from doing the same itself."""

    name: str
    every_s: float
    run: Callable[[Deps], Awaitable[object]]


class Worker:
    """One claimer of jobs of the kinds it has handlers for, in every organization or only in some.

    `run` returns after `stop`, with whatever it held done or handed back.
    """

    def __init__(
        self,
        deps: Deps,
        handlers: Mapping[str, Handler],
        *,
        duties: Sequence[Duty] = (),
        org_ids: Collection[OrganizationId] | None = None,
    ) -> None:
        self._deps = deps
        self._handlers = handlers
        self._duties = duties
        self._org_ids = org_ids
        self._stopping = asyncio.Event()
        for kind in handlers:
            FAILURES.labels(kind)  # told as none, so that the first is seen as a rise

    async def run(self) -> None:
        """Work until stopped. A duty under way is broken off: its next turn, here or elsewhere, does it again."""
        keeping = [asyncio.create_task(self._keep(duty), name=f"duty {duty.name}") for duty in self._duties]
        try:
            await self._claim_until_stopped()
        finally:
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)

    def stop(self) -> None:
        """Finish what is under way, claim nothing more."""
        self._stopping.set()
        self._deps.wakeups.notify()

    async def _claim_until_stopped(self) -> None:
        while not self._stopping.is_set():
            try:
                if not await self.work_once():
                    await self._deps.wakeups.wait(_POLL_S)
            except (DatabaseUnavailable, OperationTimeout) as error:
                _log.warning("the database is away", extra={"reason": error.message})
                await self._pause(_AWAY_S)
            except Exception:  # noqa: BLE001 # whatever it is, what waits must not wait for a restart
                _log.exception("the worker stumbled and goes on")
                await self._pause(_AWAY_S)

    async def work_once(self) -> int:
        """Claim one batch and do it; returns how many jobs it held."""
        lease = self._deps.new_id("job")

        async def claim(tx: Tx) -> list[Job]:
            return await jobs.claim(
                tx,
                kinds=self._handlers.keys(),
                org_ids=self._org_ids,
                lease=lease,
                limit=_BATCH,
                lease_ms=_LEASE_MS,
            )

        claimed = await self._deps.db.write(claim)
        if not claimed:
            return 0
        keeping = asyncio.create_task(self._keep_lease(claimed, lease))
        try:
            for kind, same in groupby(sorted(claimed, key=lambda job: job.kind), key=lambda job: job.kind):
                await self._do(kind, list(same), lease)
        finally:
            keeping.cancel()
        return len(claimed)

    async def _do(self, kind: str, batch: list[Job], lease: str) -> None:
        handler = self._handlers[kind]
        try:
            with span(f"jobs {kind}", {"graph_mem.jobs": len(batch)}, kind=SpanKind.CONSUMER):
                await handler.run(self._deps, batch, lease=lease)
            JOBS.labels(kind).inc(len(batch))
        except DatabaseUnavailable:
            raise
        except EMBEDDING_ERRORS as error:
            await self._put_off(handler, batch, lease, error)
        except Exception as error:  # noqa: BLE001 # whatever it is, the record says so and the worker goes on
            if len(batch) == 1:
                _log.exception("a job failed", extra={"job": batch[0].id, "kind": kind})
                await self._put_off(handler, batch, lease, error)
            else:
                for job in batch:
                    await self._do(kind, [job], lease)

    async def _put_off(self, handler: Handler, batch: Sequence[Job], lease: str, error: Exception) -> None:
        """Have the jobs tried again later, each time later; say FAILED once that has happened a few times."""
        FAILURES.labels(batch[0].kind).inc(len(batch))
        reason = f"{type(error).__name__}: {error}"
        delays = {job.id: min(1000 * 2 ** (job.attempts - 1), _LONGEST_DELAY_MS) for job in batch}

        async def work(tx: Tx) -> None:
            await jobs.postpone(tx, delays, lease=lease, error=reason)

        await self._deps.db.write(work)
        failed = [job for job in batch if job.attempts >= _GIVE_UP_AFTER]
        if failed and self._deps.embedder.status.state is not EmbedderState.LOADING:
            await handler.fail(self._deps, failed, reason)

    async def _keep_lease(self, batch: Sequence[Job], lease: str) -> None:
        ids = [job.id for job in batch]

        async def work(tx: Tx) -> None:
            await jobs.extend(tx, ids, lease=lease, lease_ms=_LEASE_MS)

        while True:
            await asyncio.sleep(_LEASE_MS / 3000)
            try:
                await self._deps.db.write(work)
            except (DatabaseUnavailable, OperationTimeout) as error:
                _log.warning("a lease could not be extended", extra={"reason": error.message})

    async def _keep(self, duty: Duty) -> None:
        while not self._stopping.is_set():
            try:
                await duty.run(self._deps)
            except Exception:  # noqa: BLE001 # one duty must not end the worker
                _log.exception("a duty failed and is tried again at its next turn", extra={"duty": duty.name})
            await self._pause(duty.every_s)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return
