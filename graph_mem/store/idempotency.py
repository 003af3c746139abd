"""Answers kept for a while under a caller's key, in the transaction whose answer they are."""

from dataclasses import dataclass
from datetime import datetime

from graph_mem.store.db import Tx, row, rows
from graph_mem.store.times import ms

CLAIM = """
MERGE (i:Idempotency {key: $key})
SET i.lock = $lock
WITH i WHERE i.expiresAt > $now
RETURN i.inputHash AS inputHash, i.result AS result
"""
KEEP = """
MATCH (i:Idempotency {key: $key})
SET i.inputHash = $inputHash, i.result = $result, i.org = $org, i.expiresAt = $expiresAt
"""
SWEEP = """
MATCH (i:Idempotency) WHERE i.expiresAt <= $now
WITH i LIMIT $limit
DETACH DELETE i
RETURN count(*) AS swept
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was asked and answered under a key. `result` is whatever the use case wrote."""

    input_hash: str
    result: str


async def claim(tx: Tx, *, key: str, lock: str, now: datetime) -> Kept | None:
    """The answer kept under `key`, else None: then the key is locked until this transaction ends."""
    found = await row(tx, CLAIM, key=key, lock=lock, now=ms(now))
    return Kept(found["inputHash"], found["result"]) if found else None


async def keep(tx: Tx, *, key: str, org_id: str, kept: Kept, expires_at: datetime) -> None:
    """Keep an answer under a claimed key until `expires_at`."""
    await rows(tx, KEEP, key=key, org=org_id, inputHash=kept.input_hash, result=kept.result, expiresAt=ms(expires_at))


async def sweep(tx: Tx, *, now: datetime, limit: int = 1_000) -> int:
    """Forget answers whose time is over; returns how many, at most `limit`."""
    found = await row(tx, SWEEP, now=ms(now), limit=limit)
    return found["swept"] if found else 0
