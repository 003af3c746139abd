"""Session scratch: notes of one run, seen by nobody but the user who made them, gone after a time to live."""

from datetime import datetime

from graph_mem.core.model import Principal, place_of, token
from graph_mem.core.scratch import ScratchNote
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import access, admitted, place_properties, visible

CREATE = "CREATE (n:ScratchNote) SET n = $properties"
OF_RUN = f"""
MATCH (n:ScratchNote {{runKey: $runKey}}) WHERE {visible("n")} AND n.owner = $user AND n.expiresAt > $now
RETURN n {{.id, .org, .owner, .level, .clientId, .dealId, .runId, .text, .createdAt, .expiresAt}} AS node
ORDER BY node.id
"""
BY_ID = f"""
MATCH (n:ScratchNote {{id: $id}}) WHERE {visible("n")} AND n.owner = $user AND n.expiresAt > $now
RETURN n {{.id, .org, .owner, .level, .clientId, .dealId, .runId, .text, .createdAt, .expiresAt}} AS node
"""
COUNT = f"""
MATCH (n:ScratchNote {{runKey: $runKey}}) WHERE {visible("n")} AND n.owner = $user AND n.expiresAt > $now
RETURN count(*) AS held
"""
END_RUN = f"""
MATCH (n:ScratchNote {{runKey: $runKey}}) WHERE {visible("n")} AND n.owner = $user
DELETE n
RETURN count(*) AS removed
"""
SWEEP = """
MATCH (n:ScratchNote) WHERE n.expiresAt <= $now
WITH n LIMIT $limit
DELETE n
RETURN count(*) AS removed
"""


async def create(tx: Tx, note: ScratchNote) -> None:
    properties = {
        **place_properties(note.place),
        "id": note.id,
        "runKey": _run_key(note.place.org_id, note.run_id),
        "runId": note.run_id,
        "text": note.text,
        "createdAt": ms(note.created_at),
        "expiresAt": ms(note.expires_at),
    }
    await rows(tx, CREATE, properties=properties)


async def of_run(tx: Tx, principal: Principal, run_id: str, *, now: datetime) -> list[ScratchNote]:
    """The caller's notes of a run, oldest first."""
    key = _run_key(principal.org_id, run_id)
    found = await rows(tx, OF_RUN, runKey=key, user=principal.user_id, now=ms(now), **access(principal))
    return admitted(principal, (one["node"] for one in found), _note)


async def by_id(tx: Tx, principal: Principal, id: str, *, now: datetime) -> ScratchNote | None:
    found = await row(tx, BY_ID, id=id, user=principal.user_id, now=ms(now), **access(principal))
    made = admitted(principal, [found["node"]] if found else [], _note)
    return made[0] if made else None


async def count(tx: Tx, principal: Principal, run_id: str, *, now: datetime) -> int:
    """How many notes the caller has in a run."""
    key = _run_key(principal.org_id, run_id)
    found = await row(tx, COUNT, runKey=key, user=principal.user_id, now=ms(now), **access(principal))
    return found["held"] if found else 0


async def end_run(tx: Tx, principal: Principal, run_id: str) -> int:
    """Remove the caller's notes of a run; returns how many."""
    key = _run_key(principal.org_id, run_id)
    found = await row(tx, END_RUN, runKey=key, user=principal.user_id, **access(principal))
    return found["removed"] if found else 0


async def sweep(tx: Tx, *, now: datetime, limit: int) -> int:
    """Remove at most `limit` notes, of anybody, whose time is over; returns how many."""
    found = await row(tx, SWEEP, now=ms(now), limit=limit)
    return found["removed"] if found else 0


def _run_key(org_id: str, run_id: str) -> str:
    return token("run", org_id, run_id)


def _note(node: Row) -> ScratchNote:
    return ScratchNote(
        id=node["id"],
        place=place_of(node),
        run_id=node["runId"],
        text=node["text"],
        created_at=instant(node["createdAt"]),
        expires_at=instant(node["expiresAt"]),
    )
