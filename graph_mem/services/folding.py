"""What an accepted text is to those that are there: a copy, an edited one, one of our own come back, or new.

By text alone; no model decides. Copies meet at a lock that their text names, so of any number saved at once one stays.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graph_mem.core.fingerprints import fingerprints
from graph_mem.core.model import Event, Memory, Place, Principal, Processing, RecordId, Role, SourceKind, Standing
from graph_mem.core.text import text_hash
from graph_mem.core.versions import MIN_CHARS, Merge, is_new_version, merge_versions, winning_label
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.services import Deps
from graph_mem.services.capture import PROCESS
from graph_mem.store import audit, folding, jobs, memories, runs, standing, tenants
from graph_mem.store.db import Tx
from graph_mem.store.folding import Edition
from graph_mem.store.jobs import NewJob
from graph_mem.store.standing import Text

_RECORD_ID = re.compile(r"\b(?:mem|fact)_[0-9A-HJKMNP-TV-Z]{26}\b")
_MOST_IDS = 200


async def settle(deps: Deps, accepted: Sequence[Memory]) -> set[RecordId]:
    """Fold those of `accepted` that are copies; returns the ids of the others, which are to be processed.

    May be repeated: a memory that has been folded stays folded, one that stands for its text goes on doing so.
    """
    hashes = {memory.id: text_hash(memory.text or "") for memory in accepted}
    plain = [memory for memory in accepted if memory.standing is Standing.CURRENT and not _may_be_ours(memory)]
    texts = [Text(memory.id, memory.place.partition_token, hashes[memory.id]) for memory in plain]

    async def claim(tx: Tx) -> set[RecordId]:
        return await standing.claim_texts(tx, texts)

    claimed = await deps.db.write(claim) if texts else set[RecordId]()
    stays = {memory.id for memory in accepted if memory.standing not in (Standing.CURRENT, Standing.FOLDED)}
    for memory in accepted:
        if memory.standing is not Standing.CURRENT:
            continue
        short = memory.id in claimed and len(memory.text or "") < MIN_CHARS
        if short or not await fold(deps, memory, text_hash=hashes[memory.id]):
            stays.add(memory.id)
    return stays


def _may_be_ours(memory: Memory) -> bool:
    """Whether this may be text that graph-mem handed out itself."""
    return memory.source.kind is SourceKind.RECALLED or memory.source.run_id is not None


async def fold(deps: Deps, memory: Memory, *, text_hash: str) -> bool:
    """Whether `memory` has been folded, into a copy, into the text that it is an edition of, or as our own."""
    acting = Principal(memory.place.org_id, memory.source.author, Role.OWNER)
    vocabulary = await deps.settings.vocabulary(memory.place.org_id)

    async def work(tx: Tx) -> bool:
        locked = await standing.lock(tx, acting, [memory.id])
        found = locked.records.get(memory.id)
        if not isinstance(found, Memory) or found.text is None or found.standing is not Standing.CURRENT:
            return found is not None and found.standing is Standing.FOLDED
        case = Case(tx, deps, acting, found, text_hash, vocabulary, locked.at)
        if _may_be_ours(found) and await _recalled(case):
            return True
        while (copy := await standing.claim_text(tx, acting, found.id, text_hash=text_hash)) is not None:
            if await _copied(case, copy):
                return True
        first_save = found.version == 1 and len(found.text) >= MIN_CHARS
        return first_save and await _edited(case)

    return await deps.db.write(work)


@dataclass(frozen=True, slots=True)
class Case:
    """A locked current memory whose fate is being decided, and what the decision needs."""

    tx: Tx
    deps: Deps
    acting: Principal
    memory: Memory
    text_hash: str
    vocabulary: Vocabulary
    at: datetime


async def _recalled(case: Case) -> bool:
    """Fold text of our own, into the record it comes from if that can be told, and strengthen that once at most."""
    memory, source = case.memory, case.memory.source
    places = [Place(memory.place.org_id, scope, owner) for scope in memory.place.scope.chain()
              for owner in {memory.place.owner_id, None}]  # fmt: skip
    held, author = None, await _author(case)
    if source.run_id is not None:
        held = await runs.held(case.tx, author, run_id=source.run_id, text_hash=case.text_hash)
    if held is None and source.kind is not SourceKind.RECALLED:
        return False
    origin = held.record_id if held else None
    origin = origin or await folding.current_copy(case.tx, author, memory.id, places=places, text_hash=case.text_hash)
    named = dict.fromkeys(_RECORD_ID.findall(memory.text or ""))
    origin = origin or await folding.seen(case.tx, author, list(named)[:_MOST_IDS])
    if origin is not None:
        await standing.hold(case.tx, case.acting, [origin])
        origin = await folding.seen(case.tx, author, [origin])
    await standing.retire(case.tx, case.acting, [memory.id], to=Standing.FOLDED, at=case.at)
    if origin is None or not origin.startswith("mem_"):
        await folding.rest(case.tx, case.acting, memory.id)
    else:
        await folding.fold(case.tx, case.acting, memory.id, into=origin, at=case.at)
    await _tell(case, memory, "folded", {"into": origin, "recalled": True}, bump=True)
    if origin is not None and await folding.reinforce(case.tx, case.acting, origin, at=case.at):
        await audit.append(case.tx, memory.place, _event(case, origin, "strengthened", {"recalled": memory.id}))
    return True


async def _author(case: Case) -> Principal:
    """Who saved the memory, with what they may read today: what they name and may not see is as good as unknown.

    One who has left reads nothing but what the whole organization does.
    """
    org_id, user_id = case.memory.place.org_id, case.memory.source.author
    found = await tenants.load_principal(case.tx, org_id=org_id, user_id=user_id)
    return found or Principal(org_id, user_id, Role.AGENT)


async def _copied(case: Case, copy: RecordId) -> bool:
    """Fold an exact copy: the kept memory is fresh, has the label that wins, and is processed if that had failed.

    False if that was erased, or retired, at this moment: its text is free then.
    """
    kept = await _current(case, copy)
    if kept is None:
        return False
    await _fold_into(case, kept)
    await folding.freshen(case.tx, case.acting, kept.id, at=case.memory.created_at)
    if kept.processing is Processing.FAILED:
        await _process(case, kept)
    return True


async def _edited(case: Case) -> bool:
    """Give the text that this one is an edition of a new version, or remember how to recognise this one."""
    memory = case.memory
    marks = fingerprints(memory.place, memory.text or "")
    candidates = await folding.alike(case.tx, case.acting, memory, fingerprints=marks, min_chars=MIN_CHARS)
    chosen = await asyncio.to_thread(_closest, memory, candidates)
    if chosen is None:
        await folding.remember(case.tx, case.acting, memory.id, fingerprints=marks)
        return False
    kept = await _current(case, chosen.id)
    if kept is None or kept.text is None:
        await folding.remember(case.tx, case.acting, memory.id, fingerprints=marks)
        return False
    merge = await asyncio.to_thread(merge_versions, kept.text, memory.text or "", whole=_same_uri(kept, memory))
    won = await _fold_into(case, kept)
    if merge.changed:
        await _new_version(case, kept, merge)
    if won:
        await folding.freshen(case.tx, case.acting, kept.id, at=memory.created_at)
    else:
        spans = merge.fresh(label_won=False)
        await folding.freshen_part(
            case.tx, case.acting, kept.id, at=memory.created_at, spans=spans, moved=merge.changed
        )
    return True


async def _current(case: Case, id: RecordId) -> Memory | None:
    """The memory, locked, if it is current still."""
    kept = (await standing.lock(case.tx, case.acting, [id])).records.get(id)
    return kept if isinstance(kept, Memory) and kept.standing is Standing.CURRENT else None


def _closest(memory: Memory, candidates: Sequence[Memory]) -> Memory | None:
    """Of the texts that `memory` may be an edition of, the one that shares most with it."""
    sent = memory.text or ""
    shares = [
        (merge_versions(one.text or "", sent, whole=False).unchanged_share, one.id, one)
        for one in candidates
        if is_new_version(one.text or "", sent, same_uri=_same_uri(one, memory))
    ]
    return max(shares)[2] if shares else None


def _same_uri(one: Memory, other: Memory) -> bool:
    return one.source.uri is not None and one.source.uri == other.source.uri


async def _new_version(case: Case, kept: Memory, merge: Merge) -> None:
    edition = Edition(
        version_id=case.deps.new_id("ver"),
        text=merge.text,
        text_hash=text_hash(merge.text),
        by=case.memory.source.author,
        at=case.at,
    )
    await folding.version(case.tx, case.acting, kept.id, edition)
    await standing.claim_text(case.tx, case.acting, kept.id, text_hash=edition.text_hash)
    await folding.remember(case.tx, case.acting, kept.id, fingerprints=fingerprints(kept.place, merge.text))
    detail = {"from": case.memory.id, "edited": len(merge.edited), "replaced": len(merge.replaced)}
    await _tell(case, kept, "versioned", detail, bump=True)
    await _process(case, kept)


async def _fold_into(case: Case, kept: Memory) -> bool:
    """Fold the memory into `kept`, which takes its label if that outranks its own; whether it did."""
    stored, sent = (case.vocabulary.labels.get(memory.label) for memory in (kept, case.memory))
    won = stored is not None and sent is not None and stored != sent and winning_label(stored, sent) is sent
    await standing.retire(case.tx, case.acting, [case.memory.id], to=Standing.FOLDED, at=case.at)
    await folding.fold(case.tx, case.acting, case.memory.id, into=kept.id, at=case.at)
    await _tell(case, case.memory, "folded", {"into": kept.id}, bump=True)
    if won and sent is not None:
        await standing.relabel(case.tx, case.acting, kept, sent)
        await _tell(case, kept, "relabelled", {"from": kept.label, "to": sent.name})
    return won


async def _process(case: Case, kept: Memory) -> None:
    """Have `kept` processed, again or for the first time."""
    partition = kept.place.partition_token
    await memories.mark(case.tx, {memories.Key(kept.id, partition): None}, Processing.SAVED)
    if not await jobs.hurry(case.tx, kept.id, org_id=kept.place.org_id, kind=PROCESS):
        job = NewJob(case.deps.new_id("job"), PROCESS, kept.id, kept.place.org_id, partition)
        await jobs.enqueue(case.tx, [job], now=case.at)


async def _tell(case: Case, memory: Memory, kind: str, detail: dict[str, Any], *, bump: bool = False) -> None:
    event = _event(case, memory.id, kind, detail, version=memory.version + bump)
    await audit.append(case.tx, memory.place, event)


def _event(case: Case, id: RecordId, kind: str, detail: dict[str, Any], *, version: int | None = None) -> Event:
    return Event(
        id=case.deps.new_id("evt"),
        record_id=id,
        at=case.at,
        by=case.memory.source.author,
        kind=kind,
        version=version,
        detail=detail,
    )
