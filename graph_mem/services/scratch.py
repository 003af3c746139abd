"""Session scratch: notes that one run keeps for itself, and what it takes to make one of them a memory."""

from datetime import datetime

from graph_mem.core.model import Place, Principal, Scope, SourceKind
from graph_mem.core.retrieval import ScopeName
from graph_mem.core.scratch import MAX_NOTE_BYTES, ScratchNote
from graph_mem.core.text import check_name, check_text
from graph_mem.errors import InvalidInput, NotFound
from graph_mem.services import Deps, capture
from graph_mem.services.capture import Accepted, NewMemory
from graph_mem.store import scratch
from graph_mem.store.db import Tx

MAX_RUN_ID_BYTES = 200
_SWEEP_BATCH = 1000


def check_run_id(run_id: str) -> str:
    """`run_id` itself, if it can name a run."""
    return check_name(run_id, path=("runId",), max_bytes=MAX_RUN_ID_BYTES)


async def add(deps: Deps, principal: Principal, *, run_id: str, text: str) -> ScratchNote:
    """A new note of the run, gone with it or after its time to live.

    Errors: InvalidInput for a text that cannot be stored, or one note more than a run may keep.
    """
    run = check_run_id(run_id)
    check_text(text, max_bytes=MAX_NOTE_BYTES)
    now = deps.clock()
    note = ScratchNote(
        id=deps.new_id("scr"),
        place=Place(principal.org_id, Scope(), principal.user_id),
        run_id=run,
        text=text,
        created_at=now,
        expires_at=now + deps.limits.scratch_ttl,
    )

    async def work(tx: Tx) -> ScratchNote:
        held = await scratch.count(tx, principal, run, now=now)
        if held >= deps.limits.scratch_notes:
            raise InvalidInput(f"The run has {held} notes, expected fewer than {deps.limits.scratch_notes}.")
        await scratch.create(tx, note)
        return note

    return await deps.db.write(work)


async def notes(deps: Deps, principal: Principal, *, run_id: str) -> list[ScratchNote]:
    """The caller's own notes of a run, oldest first."""
    run, now = check_run_id(run_id), deps.clock()

    async def work(tx: Tx) -> list[ScratchNote]:
        return await scratch.of_run(tx, principal, run, now=now)

    return await deps.db.read(work)


async def by_id(deps: Deps, principal: Principal, id: str) -> ScratchNote | None:
    now = deps.clock()

    async def work(tx: Tx) -> ScratchNote | None:
        return await scratch.by_id(tx, principal, id, now=now)

    return await deps.db.read(work)


async def promote(
    deps: Deps,
    principal: Principal,
    *,
    id: str,
    label: str,
    scope: ScopeName,
    private: bool,
) -> Accepted:
    """Capture a note as any other text; a note promoted again in the same way answers with the same memory."""
    note = await by_id(deps, principal, id)
    if note is None:
        raise NotFound(id, path=("id",))
    new = NewMemory(
        text=note.text,
        label=label,
        client_id=scope.client_id,
        deal_id=scope.deal_id,
        private=private,
        source_kind=SourceKind.RUN,
        run_id=note.run_id,
    )
    return await capture.accept(deps, principal, new, idempotency_key=f"promote {note.id}")


async def end_run(deps: Deps, principal: Principal, *, run_id: str) -> int:
    """Remove the caller's notes of a run that is over; returns how many there were."""
    run = check_run_id(run_id)

    async def work(tx: Tx) -> int:
        return await scratch.end_run(tx, principal, run)

    return await deps.db.write(work)


async def sweep(deps: Deps) -> int:
    """Remove every note, of anybody, whose time is over; returns how many. For the worker."""
    removed, now = 0, deps.clock()
    while batch := await deps.db.write(lambda tx: _sweep(tx, now)):
        removed += batch
    return removed


async def _sweep(tx: Tx, now: datetime) -> int:
    return await scratch.sweep(tx, now=now, limit=_SWEEP_BATCH)
