"""Traces and what retrieval strengthens, written in the background so that no answer waits for them."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import datetime

from graph_mem.core.model import RecordId
from graph_mem.errors import GraphMemError
from graph_mem.store import traces
from graph_mem.store.db import Database, Tx
from graph_mem.store.traces import Saved, Strengthened

_log = logging.getLogger(__name__)

_RETRY_S = 1.0
_BATCH = 200


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What one page leaves behind. `records`: id and partition of each record it returned; empty for an audit."""

    saved: Saved
    at: datetime
    kind: str
    records: tuple[tuple[RecordId, str], ...] = field(default=())


class TraceWriter:
    """A bounded queue of retrievals that is written every `every_s`.

    A full queue makes the next search wait for a write, so that nothing is lost while the database is slow and memory
    stays bounded. `aclose` writes what is left.
    """

    def __init__(self, db: Database, *, every_s: float = 0.3, most: int = 2_000) -> None:
        self._db = db
        self._every_s = every_s
        self._most = most
        self._queue: list[Retrieval] = []
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.written = 0

    @property
    def waiting(self) -> int:
        """How many retrievals are not written yet."""
        return len(self._queue)

    async def put(self, retrieval: Retrieval) -> None:
        """Take over a retrieval. Waits only while the queue is full."""
        if len(self._queue) >= self._most:
            await self.flush()
        self._queue.append(retrieval)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_until_empty(), name="write traces", context=Context())

    async def flush(self) -> None:
        """Write everything that was put before this call; what comes meanwhile is left to the next.

        Errors: what the database raises; the retrievals stay queued.
        """
        before = self.written + len(self._queue)
        async with self._writing:
            while self.written < before:
                batch = self._queue[:_BATCH]
                await self._write(batch)
                del self._queue[: len(batch)]
                self.written += len(batch)

    async def aclose(self, *, within_s: float = 10.0) -> None:
        """Write what is left, within `within_s`; what the database would not take by then is counted in the log."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        try:
            async with asyncio.timeout(within_s):
                await self.flush()
        except (GraphMemError, TimeoutError) as error:
            _log.error("traces lost at shutdown", extra={"count": len(self._queue), "error": type(error).__name__})

    async def _write_until_empty(self) -> None:
        pause = self._every_s
        while self._queue:
            await asyncio.sleep(pause)
            try:
                await self.flush()
                pause = self._every_s
            except GraphMemError as error:
                pause = _RETRY_S
                _log.warning("traces wait", extra={"count": len(self._queue), "error": type(error).__name__})

    async def _write(self, batch: Sequence[Retrieval]) -> None:
        saved = [one.saved for one in batch]
        strengthened = summed(batch)

        async def work(tx: Tx) -> None:
            await traces.write(tx, saved, strengthened)

        await self._db.write(work)


def summed(batch: Iterable[Retrieval]) -> list[Strengthened]:
    """What the retrievals add to each record they returned, each retrieval counted once."""
    sums: dict[RecordId, Strengthened] = {}
    for one in batch:
        for id, partition in dict.fromkeys(one.records):
            known = sums.get(id, Strengthened(id, partition, 0, (), one.at))
            kinds = known.kinds if one.kind in known.kinds else (*known.kinds, one.kind)
            sums[id] = replace(known, times=known.times + 1, kinds=kinds, at=max(known.at, one.at))
    return list(sums.values())
