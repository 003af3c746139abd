"""What happens to a saved fact: an embedding, and the entity that it is about."""

import logging
from collections.abc import Sequence

from graph_mem.core.model import Fact
from graph_mem.core.text import name_key
from graph_mem.models.extractor import Found
from graph_mem.services import Deps, vectorings
from graph_mem.store import entities, fact_jobs, jobs
from graph_mem.store.db import Tx
from graph_mem.store.entities import Named
from graph_mem.store.fact_jobs import Embedded
from graph_mem.store.jobs import Job
from graph_mem.store.memories import Key

_log = logging.getLogger(__name__)


async def embed(deps: Deps, batch: Sequence[Job], *, lease: str) -> None:
    """Embed the facts of `batch` and remove its jobs in the same transaction.

    Jobs whose lease was lost meanwhile take no effect: whoever holds them now does the work.
    """
    of_fact = {job.record_id: job.id for job in batch}

    async def read(tx: Tx) -> list[Fact]:
        return await fact_jobs.to_embed(tx, [Key(job.record_id, job.partition) for job in batch])

    found = await deps.db.read(read)
    encoding = deps.embedder.in_force
    vectors = await encoding.embedder.passages([fact.statement for fact in found]) if found else ()
    subjects = {fact.id: await _subject(deps, fact) for fact in found}
    new_ids = {one.key: deps.new_id("ent") for one in subjects.values() if one}

    async def work(tx: Tx) -> None:
        await vectorings.require(tx, encoding.space)
        held = await jobs.held(tx, list(of_fact.values()), lease=lease)
        mine = [pair for pair in zip(found, vectors, strict=True) if of_fact[pair[0].id] in held]
        named = {one.key: one for fact, _ in mine if (one := subjects[fact.id])}
        records = [Key(fact.id, fact.place.partition_token) for fact, _ in mine]
        ids = await entities.upsert(tx, [(one, new_ids[key]) for key, one in named.items()], records=records)
        embedded = [
            Embedded(fact, vector, ids[subject.key] if (subject := subjects[fact.id]) else None)
            for fact, vector in mine
        ]
        await fact_jobs.store(tx, embedded, encoding.space)
        await jobs.finish(tx, sorted(held), lease=lease)

    await deps.db.write(work)
    deps.wakeups.notify()


async def fail(deps: Deps, batch: Sequence[Job], reason: str) -> None:  # noqa: ARG001 # what the worker calls
    """Say that facts have no embedding yet: their words find them, and the worker goes on trying."""
    _log.warning("facts are not embedded", extra={"facts": len(batch), "reason": reason})


async def _subject(deps: Deps, fact: Fact) -> Named | None:
    """The subject as an entity, if the extractor knows it for one."""
    vocabulary = await deps.settings.vocabulary(fact.place.org_id)
    extraction = await deps.extractor.extract(fact.statement, title=fact.subject, vocabulary=vocabulary)
    subject = name_key(fact.subject)
    return next((_named(fact, one) for one in extraction.entities if subject in _keys(one)), None)


def _keys(found: Found) -> set[str]:
    return {name_key(name) for name in (found.name, *found.aliases)}


def _named(fact: Fact, found: Found) -> Named:
    return Named(fact.place, found.name, found.label, found.aliases)
