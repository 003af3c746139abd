"""What happens to an accepted text: chunks, embeddings, entities, and then it is READY."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graph_mem.core.model import EntityRole, Memory, Processing
from graph_mem.core.segments import chunks
from graph_mem.core.vectors import Space, Vectors
from graph_mem.models.extractor import Extraction
from graph_mem.services import Deps, folding, vectorings
from graph_mem.store import entities, jobs, memories
from graph_mem.store.db import Tx
from graph_mem.store.entities import Mention, Named
from graph_mem.store.jobs import Job
from graph_mem.store.memories import Passage

_PASSAGES_AT_ONCE = 256
_WRITE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One memory cut into passages, with the entities found in it."""

    job_id: str
    memory: Memory
    passages: Sequence[Passage]
    extraction: Extraction

    @property
    def named(self) -> list[Named]:
        return [Named(self.memory.place, found.name, found.label, found.aliases) for found in self.extraction.entities]

    def mentions(self, ids: dict[str, str]) -> list[Mention]:
        """The memory's links to the entities that `ids` names by key; the first role found for an entity stands."""
        roles: dict[str, EntityRole] = {}
        for named, found in zip(self.named, self.extraction.entities, strict=True):
            roles.setdefault(ids[named.key], found.role)
        partition = self.memory.place.partition_token
        return [Mention(self.memory.id, partition, entity_id, role) for entity_id, role in roles.items()]


async def process(deps: Deps, batch: Sequence[Job], *, lease: str) -> None:
    """Make the memories of `batch` READY and remove its jobs, each together with its effect.

    Jobs whose lease was lost meanwhile take no effect: whoever holds them now does the work.
    """
    begun = await _begin(deps, batch, lease=lease)
    deps.wakeups.notify()
    of_memory = {job.record_id: job.id for job in batch}
    stays = await folding.settle(deps, begun)
    await _drop(deps, [of_memory[memory.id] for memory in begun if memory.id not in stays], lease=lease)
    pending = [memory for memory in begun if memory.id in stays]
    for group in _groups([await _read(deps, memory, of_memory[memory.id]) for memory in pending]):
        encoding = deps.embedder.in_force
        await _store(deps, group, await encoding.embedder.passages(_texts(group)), encoding.space, lease=lease)
        deps.wakeups.notify()


async def fail(deps: Deps, batch: Sequence[Job], reason: str) -> None:
    """Mark the memories of `batch` FAILED with `reason`; their words are still found."""
    failures: dict[memories.Key, str | None] = {memories.Key(job.record_id, job.partition): reason for job in batch}

    async def work(tx: Tx) -> None:
        await memories.mark(tx, failures, Processing.FAILED)

    await deps.db.write(work)
    deps.wakeups.notify()


async def _begin(deps: Deps, batch: Sequence[Job], *, lease: str) -> list[Memory]:
    """The memories of `batch` that hold a text, marked PROCESSING; the jobs of all others have nothing to do."""

    async def work(tx: Tx) -> list[Memory]:
        held = await jobs.held(tx, [job.id for job in batch], lease=lease)
        keys = {memories.Key(job.record_id, job.partition): job.id for job in batch if job.id in held}
        await memories.mark(tx, dict.fromkeys(keys), Processing.PROCESSING)
        found = [memory for memory in await memories.to_process(tx, list(keys)) if memory.text is not None]
        there = {memory.id for memory in found}
        await jobs.finish(tx, [id for key, id in keys.items() if key.id not in there], lease=lease)
        return found

    return await deps.db.write(work)


async def _drop(deps: Deps, job_ids: Sequence[str], *, lease: str) -> None:
    """Remove the jobs of memories that were folded: there is nothing more to do for them."""

    async def work(tx: Tx) -> None:
        await jobs.finish(tx, job_ids, lease=lease)

    if job_ids:
        await deps.db.write(work)
        deps.wakeups.notify()


async def _read(deps: Deps, memory: Memory, job_id: str) -> Reading:
    text = memory.text or ""
    vocabulary = await deps.settings.vocabulary(memory.place.org_id)
    return Reading(
        job_id,
        memory,
        [Passage(seq, span.start, span.end, text[span.start : span.end]) for seq, span in enumerate(chunks(text))],
        await deps.extractor.extract(text, title=memory.title, vocabulary=vocabulary),
    )


def _groups(readings: Sequence[Reading]) -> Iterator[list[Reading]]:
    """`readings` in groups that one transaction can hold: some passages more than the limit, or one long memory."""
    group: list[Reading] = []
    for reading in readings:
        group.append(reading)
        if sum(len(one.passages) for one in group) >= _PASSAGES_AT_ONCE:
            yield group
            group = []
    if group:
        yield group


def _texts(group: Sequence[Reading]) -> list[str]:
    """What the model sees of each passage: its words under the memory's title."""
    return [
        f"{reading.memory.title}\n{passage.content}" if reading.memory.title else passage.content
        for reading in group
        for passage in reading.passages
    ]


async def _store(deps: Deps, group: Sequence[Reading], vectors: Vectors, space: Space, *, lease: str) -> None:
    ends = np.cumsum([len(reading.passages) for reading in group])[:-1]
    embeddings = dict(zip((reading.job_id for reading in group), np.split(vectors, ends), strict=True))
    new_ids = {named.key: (named, deps.new_id("ent")) for reading in group for named in reading.named}

    async def work(tx: Tx) -> None:
        await vectorings.require(tx, space)
        held = await jobs.held(tx, list(embeddings), lease=lease)
        mine = [reading for reading in group if reading.job_id in held]
        named = {named.key for one in mine for named in one.named}
        records = [memories.Key(one.memory.id, one.memory.place.partition_token) for one in mine]
        ids = await entities.upsert(tx, [new_ids[key] for key in named], records=records)
        mentions = {one.memory.id: one.mentions(ids) for one in mine}
        done = await memories.replace_chunks(
            tx,
            [
                memories.Processed(
                    one.memory,
                    one.passages,
                    embeddings[one.job_id],
                    [mention.entity_id for mention in mentions[one.memory.id]],
                )
                for one in mine
            ],
            space,
        )
        changed = [one.memory for one in mine if one.memory.id in done]
        await entities.relink(tx, changed, [link for memory in changed for link in mentions[memory.id]])
        await jobs.finish(tx, [one.job_id for one in mine if one.memory.id in done], lease=lease)
        await jobs.release(tx, [one.job_id for one in mine if one.memory.id not in done], lease=lease)

    await deps.db.write(work, timeout_s=_WRITE_TIMEOUT_S)
