"""Accepting a text: checked, stored with its job in one transaction, acknowledged. No model is asked here."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graph_mem.core.lifecycle import ReingestPolicy
from graph_mem.core.model import (
    Event,
    Interval,
    Memory,
    Place,
    Principal,
    Processing,
    RecordId,
    Scope,
    Signals,
    Source,
    SourceKind,
    Standing,
    token,
)
from graph_mem.core.text import check_name, check_text, text_hash
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.errors import Conflict, InvalidInput, NotFound
from graph_mem.services import Deps, idempotency, relations
from graph_mem.services.relations import NewRelation
from graph_mem.store import audit, erasure, jobs, leases, memories, scopes
from graph_mem.store.db import Tx

PROCESS = "process_memory"
"""The kind of job that makes a SAVED memory READY."""

_MAX_METADATA_BYTES = 64 * 1024
_TRUST = {
    SourceKind.USER: 0.8,
    SourceKind.DOCUMENT: 0.8,
    SourceKind.AGENT: 0.6,
    SourceKind.TRANSCRIPT: 0.6,
    SourceKind.IMPORT: 0.6,
    SourceKind.RUN: 0.5,
    SourceKind.RECALLED: 0.3,
}


@dataclass(frozen=True, kw_only=True)
class NewMemory:
    """What a caller wants to be remembered, unchecked. `imported`: not stored again when it was imported before."""

    text: str
    label: str = "note"
    title: str | None = None
    client_id: str | None = None
    deal_id: str | None = None
    private: bool = False
    source_kind: SourceKind = SourceKind.USER
    source_uri: str | None = None
    occurred_at: datetime | None = None
    run_id: str | None = None
    importance: float | None = None
    metadata: Mapping[str, Any] | None = None
    relations: tuple[NewRelation, ...] = ()
    imported: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """A memory that will not be lost. `replayed`: an earlier call with the same idempotency key stored it."""

    memory: Memory
    replayed: bool = False


Coming = Awaitable[Accepted]


async def accept(deps: Deps, principal: Principal, new: NewMemory, *, idempotency_key: str | None = None) -> Accepted:
    """Store `new` and answer with it, SAVED. Whatever is wrong is an error, and nothing is stored."""
    request = idempotency.request(principal, mutation="captureMemory", key=idempotency_key, given=new)
    now = deps.clock()
    rank = deps.turns.take(principal.org_id, 1, now=now)
    write = await _prepared(deps, principal, [new], rank=rank)

    async def work(tx: Tx) -> Accepted:
        if (earlier := await idempotency.replay(tx, request, now=now)) is not None:
            return Accepted(await _again(tx, principal, RecordId(earlier)), replayed=True)
        (memory,) = await write(tx)
        await idempotency.remember(tx, request, memory.id, now=now)
        return Accepted(memory)

    accepted = await deps.db.write(work)
    deps.wakeups.notify()
    return accepted


async def accept_all(deps: Deps, principal: Principal, new: Sequence[NewMemory], *, rank: int) -> list[Memory]:
    """Store all of `new` in one transaction, or none; those imported before are left out.

    Their jobs wait in line from `rank` on: see `store.jobs`.
    """
    accepted = await deps.db.write(await _prepared(deps, principal, new, rank=rank))
    deps.wakeups.notify()
    return accepted


async def _prepared(
    deps: Deps, principal: Principal, new: Sequence[NewMemory], *, rank: int
) -> Callable[[Tx], Awaitable[list[Memory]]]:
    """What stores `new`, checked, with its jobs and history. It may run twice: ids and times are fixed here."""
    vocabulary = await deps.settings.vocabulary(principal.org_id)
    policy = (await deps.settings.lifecycle(principal.org_id)).after_erase
    checked = [check(one, vocabulary) for one in new]
    now = deps.clock()
    ids = [RecordId(deps.new_id("mem")) for _ in checked]
    wanted = {id: one.relations for id, one in zip(ids, checked, strict=True)}
    job_ids, event_ids = {id: deps.new_id("job") for id in ids}, {id: deps.new_id("evt") for id in ids}

    async def work(tx: Tx) -> list[Memory]:
        places = await _places(tx, principal, checked)
        made = [
            _memory(id, one, place, vocabulary=vocabulary, principal=principal, now=now)
            for id, one, place in zip(ids, checked, places, strict=True)
        ]
        made = await _not_imported(tx, principal, made)
        if policy is ReingestPolicy.REFUSE:
            await _refuse_erased(tx, principal, made)
        await memories.create(tx, made)
        for place in dict.fromkeys(memory.place for memory in made):
            events = (_saved(event_ids[memory.id], memory, principal) for memory in made if memory.place == place)
            await audit.append(tx, place, *events)
        for memory in made:
            await relations.attach(tx, deps, principal, memory, wanted[memory.id])
        in_line = [_job(job_ids[memory.id], memory, rank=turn) for turn, memory in enumerate(made, start=rank)]
        await jobs.enqueue(tx, in_line, now=now)
        return made

    return work


async def _not_imported(tx: Tx, principal: Principal, made: Sequence[Memory]) -> list[Memory]:
    """Those of `made` that no import brought before, each once."""
    seen = await memories.imported(tx, principal, [memory.import_key for memory in made if memory.import_key])
    kept: list[Memory] = []
    for memory in made:
        if memory.import_key is None or memory.import_key not in seen:
            kept.append(memory)
            seen.add(memory.import_key or memory.id)
    return kept


async def _refuse_erased(tx: Tx, principal: Principal, made: Sequence[Memory]) -> None:
    """Conflict if one of `made` was erased. An erasure under way ends first, or comes later and takes them too."""
    await leases.last_erasures(tx, [principal.org_id])
    if refused := await erasure.banned(tx, made):
        raise Conflict(f"{len(refused)} of {len(made)} were erased here and are not to come again.")


async def _again(tx: Tx, principal: Principal, id: RecordId) -> Memory:
    """What an earlier call stored, as it is now; NotFound if it was erased since."""
    found = await memories.by_ids(tx, principal, [id])
    if not found:
        raise NotFound(id, path=("idempotencyKey",))
    return found[0]


async def retry(deps: Deps, principal: Principal, id: str) -> Accepted:
    """Have a FAILED memory processed again, now.

    Errors: NotFound; Conflict if its processing has not failed.
    """

    async def work(tx: Tx) -> Memory:
        found = await memories.by_ids(tx, principal, [RecordId(id)])
        if not found:
            raise NotFound(id, path=("id",))
        if found[0].processing is not Processing.FAILED:
            raise Conflict(f"Processing is {found[0].processing}, expected FAILED.", current_version=found[0].version)
        key = memories.Key(found[0].id, found[0].place.partition_token)
        if not await jobs.hurry(tx, found[0].id, org_id=principal.org_id, kind=PROCESS):
            await jobs.enqueue(tx, [_job(job_id, found[0], rank=0)], now=now)
        await memories.mark(tx, {key: None}, Processing.SAVED)
        return (await memories.by_ids(tx, principal, [found[0].id]))[0]

    now, job_id = deps.clock(), deps.new_id("job")
    memory = await deps.db.write(work)
    deps.wakeups.notify()
    return Accepted(memory)


async def _places(tx: Tx, principal: Principal, new: Sequence[NewMemory]) -> list[Place]:
    """Where each of `new` will live; a scope that several share is looked up once."""
    resolved: dict[tuple[str | None, str | None], Scope] = {}
    for one in new:
        named = (one.client_id, one.deal_id)
        if named not in resolved:
            resolved[named] = await scopes.resolve(tx, principal, client_id=one.client_id, deal_id=one.deal_id)
    owners = (principal.user_id if one.private else None for one in new)
    return [
        Place(principal.org_id, resolved[one.client_id, one.deal_id], owner)
        for one, owner in zip(new, owners, strict=True)
    ]


def check(new: NewMemory, vocabulary: Vocabulary) -> NewMemory:
    """`new` itself; InvalidInput for what cannot be stored."""
    check_text(new.text)
    vocabulary.label(new.label)
    relations.check(new.relations, vocabulary)
    for name, value in (("title", new.title), ("sourceUri", new.source_uri), ("runId", new.run_id)):
        if value is not None:
            check_name(value, path=(name,))
    if new.importance is not None and not 0 <= new.importance <= 1:
        raise InvalidInput(f"The importance is {new.importance}, expected 0 to 1.", path=("importance",))
    size = len(json.dumps(new.metadata, ensure_ascii=False).encode(errors="replace"))
    if size > _MAX_METADATA_BYTES:
        raise InvalidInput(
            f"The metadata has {size} bytes as JSON, expected at most {_MAX_METADATA_BYTES}.", path=("metadata",)
        )
    return new


def _memory(
    id: RecordId, new: NewMemory, place: Place, *, vocabulary: Vocabulary, principal: Principal, now: datetime
) -> Memory:
    label = vocabulary.label(new.label)
    trust = _TRUST[new.source_kind]
    return Memory(
        id=id,
        place=place,
        label=label.name,
        position=label.position,
        text=new.text,
        source=Source(
            kind=new.source_kind,
            author=principal.user_id,
            uri=new.source_uri,
            run_id=new.run_id,
            occurred_at=new.occurred_at,
            trust=trust,
        ),
        processing=Processing.SAVED,
        standing=Standing.CURRENT,
        version=1,
        importance=label.default_importance if new.importance is None else new.importance,
        created_at=now,
        fresh_at=now,
        interval=Interval(valid_from=new.occurred_at or now, known_from=now),
        signals=Signals(last_validated_at=now, source_trust=trust),
        title=new.title,
        metadata=new.metadata,
        import_key=_import_key(place, new) if new.imported else None,
    )


def _import_key(place: Place, new: NewMemory) -> str:
    parts = (place.partition_token, place.scope_token, new.source_uri or "", new.title or "", text_hash(new.text))
    return token("import", *parts)


def _job(id: str, memory: Memory, *, rank: int) -> jobs.NewJob:
    return jobs.NewJob(id, PROCESS, memory.id, memory.place.org_id, memory.place.partition_token, rank)


def _saved(id: str, memory: Memory, principal: Principal) -> Event:
    return Event(
        id, memory.id, memory.created_at, principal.user_id, "saved", version=1, detail={"label": memory.label}
    )
