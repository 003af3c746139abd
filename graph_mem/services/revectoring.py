"""Makes the vectors that a restored record came without."""

import logging
from collections.abc import Sequence

from graph_mem.services import Deps, vectorings
from graph_mem.store import jobs, vectors
from graph_mem.store.db import Tx
from graph_mem.store.jobs import Job

_log = logging.getLogger(__name__)

VECTORS = "vectors"
"""The kind of job that embeds whatever of a record has no vector."""


async def embed_missing(deps: Deps, batch: Sequence[Job], *, lease: str) -> None:
    """Embed what the records of `batch` lack and remove its jobs in the same transaction."""
    encoding = deps.embedder.in_force
    bare = await deps.db.read(lambda tx: vectors.missing(tx, batch, encoding.space))
    made = await encoding.embedder.passages([one.text for one in bare])

    async def work(tx: Tx) -> None:
        await vectorings.require(tx, encoding.space)
        held = await jobs.held(tx, [job.id for job in batch], lease=lease)
        await vectors.fill(tx, bare, made, encoding.space)
        await jobs.finish(tx, sorted(held), lease=lease)

    await deps.db.write(work)


async def fail(deps: Deps, batch: Sequence[Job], reason: str) -> None:  # noqa: ARG001 # what the worker calls
    """Say that records have no vectors yet: their words find them, and the worker goes on trying."""
    _log.warning("restored records have no vectors", extra={"records": len(batch), "reason": reason})
