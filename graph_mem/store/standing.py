"""The one place that changes whether a record speaks for today.

A record's standing decides whether search may return it, so it stands in the record, in its `keys`, and in both
for each of its chunks; the keys that make a text and a slot unique (`dedupKey`, `activeKey`) are there exactly
while the record is current. All of that changes together here, and nowhere else.

Lock first, then read, then change: the lock is a blind write, which cannot deadlock with itself as long as every
transaction locks slots before records, each in order of key, and all it needs at once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from graph_mem.core.model import FAR, Memory, Principal, Record, RecordId, Standing, is_id
from graph_mem.core.tags import label_tag, standing_tag
from graph_mem.core.vocabulary import Label
from graph_mem.store.db import Tx, row, rows
from graph_mem.store.records import record_columns, record_of
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import access, admitted, visible

_TAGS = [standing_tag(standing) for standing in Standing]


@dataclass(frozen=True, slots=True)
class Locked:
    """Records that no other transaction changes before this one ends, and an instant after the last who did."""

    at: datetime
    records: Mapping[RecordId, Record]


LOCK_SLOTS = f"""
MATCH (r:Fact) WHERE r.id IN $ids AND {visible("r")}
WITH DISTINCT r.slotKey AS key ORDER BY key
MATCH (s:Slot {{key: key}})
SET s.lock = $lock
"""
# Sorted, and so read to the end before the first is locked: a lookup by a unique key in a statement that writes locks
# the key's entry in the index too, exclusively where nothing is found, as a memory's id among facts.
LOCK_RECORDS = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")}
WITH r ORDER BY r.id
SET r.lock = $lock
"""
READ_LOCKED = f"""
WITH datetime.realtime().epochMillis AS now
OPTIONAL MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")}
OPTIONAL MATCH (s:Slot {{key: r.slotKey}})
RETURN now, max(s.at) AS slotAt, collect({record_columns("r")}) AS records
"""


async def lock(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> Locked:
    """Those of `ids` that `principal` may see, locked to the end of the transaction with the slots of the facts."""
    await lock_slots(tx, principal, ids)
    await hold(tx, principal, ids)
    found = await row(tx, READ_LOCKED, ids=sorted(ids), **access(principal))
    assert found is not None  # noqa: S101  the statement returns one row whatever it matches
    at = max(found["now"], (found["slotAt"] or 0) + 1)
    return Locked(instant(at), {record.id: record for record in admitted(principal, found["records"], record_of)})


async def lock_slots(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> None:
    """Let nobody else change the slots of the facts among `ids`."""
    await rows(tx, LOCK_SLOTS, ids=sorted(ids), lock="".join(sorted(ids)), **access(principal))


async def hold(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> None:
    """Let nobody else change, link or erase the records `ids`, whose slots the transaction has, before it ends."""
    await rows(tx, LOCK_RECORDS, ids=sorted(ids), lock="".join(sorted(ids)), **access(principal))


_LEAVE: LiteralString = """
WITH r, r.standing = 'CURRENT' AND r.knownTo = $far AS known
SET r.standing = $standing, r.keys = [key IN r.keys WHERE NOT key IN $tags] + $tag, r.version = r.version + 1,
    r.knownTo = CASE WHEN known THEN $at ELSE r.knownTo END, r.dedupKey = null, r.activeKey = null
WITH r
OPTIONAL MATCH (:Slot {key: r.slotKey})-[held:CURRENT]->(r)
DELETE held
"""


def leave() -> LiteralString:
    """What happens to a locked record `r` that stops being current, with the parameters of `leaving`: a part of a
    statement that has found `r`."""
    return _LEAVE


RETIRE = f"""
UNWIND $ids AS id
MATCH (r:Memory|Fact {{id: id}})
WHERE {visible("r")}
{leave()}
"""
REVIVE = f"""
UNWIND $ids AS id
MATCH (r:Memory|Fact {{id: id}})
WHERE {visible("r")}
WITH r, r.knownTo AS since
SET r.standing = $standing, r.keys = [key IN r.keys WHERE NOT key IN $tags] + $tag, r.version = r.version + 1,
    r.knownFrom = CASE WHEN r.knownFrom = $far THEN $at ELSE r.knownFrom END, r.knownTo = $far,
    r.gaps = CASE WHEN $wrongly AND since < $at THEN coalesce(r.gaps, []) + [since, $at] ELSE r.gaps END,
    r.activeKey = r.seat
WITH r
MATCH (s:Slot {{key: r.slotKey}})
MERGE (s)-[:CURRENT]->(r)
"""
FOLLOW = f"""
UNWIND $ids AS id
MATCH (r:Memory {{id: id}})
WHERE {visible("r")}
MATCH (c:Chunk {{memoryId: r.id}})
WHERE {visible("c")}
SET c.standing = r.standing, c.keys = [key IN c.keys WHERE NOT key IN $tags] + $tag,
    c.knownFrom = r.knownFrom, c.knownTo = r.knownTo
"""


def leaving(to: Standing, *, at: datetime) -> dict[str, Any]:
    """The parameters of `leave`."""
    return {"standing": to, "at": ms(at), **_tagged(to)}


def _tagged(standing: Standing) -> dict[str, Any]:
    return {"tags": _TAGS, "tag": standing_tag(standing), "far": ms(FAR)}


async def retire(tx: Tx, principal: Principal, ids: Collection[RecordId], *, to: Standing, at: datetime) -> None:
    """Take locked records out of everyday answers, as `to`. What was current until `at` is known until then."""
    await _change(tx, RETIRE, principal, ids, leaving(to, at=at))


async def revive(tx: Tx, principal: Principal, ids: Collection[RecordId], *, at: datetime, wrongly: bool) -> None:
    """Make locked records current. `wrongly`: they ought never to have been away, which history keeps as a gap.

    A fact takes its seat again, which must be free. A memory is unique by its text only once `claim_text` says so.
    """
    await _change(tx, REVIVE, principal, ids, {"standing": Standing.CURRENT, "at": ms(at), "wrongly": wrongly})


async def _change(
    tx: Tx, statement: LiteralString, principal: Principal, ids: Collection[RecordId], given: Mapping[str, Any]
) -> None:
    everything = {**access(principal), **given, **_tagged(given["standing"]), "ids": sorted(ids)}
    await rows(tx, statement, **everything)
    if any(is_id(id, "mem") for id in ids):
        await rows(tx, FOLLOW, **everything)


LOCK_TEXT = """
MERGE (l:Lease {name: $bucket})
SET l.lock = $lock
"""
CLAIM_TEXT = f"""
MATCH (r:Memory {{id: $id}})
WHERE {visible("r")} AND r.standing = 'CURRENT'
SET r.textHash = $hash
WITH r, r.partition + '|' + r.scope + '|' + $hash AS dedupKey
OPTIONAL MATCH (other:Memory {{dedupKey: dedupKey}})
FOREACH (_ IN CASE WHEN other IS NULL THEN [1] ELSE [] END | SET r.dedupKey = dedupKey)
RETURN CASE WHEN other.id <> r.id THEN other.id END AS other
"""


async def claim_text(tx: Tx, principal: Principal, id: RecordId, *, text_hash: str) -> RecordId | None:
    """Make a current memory the one of its text in its partition and scope, or name the memory that is.

    Copies of one text claim it one after the other: they meet at one of 256 locks.
    """
    await rows(tx, LOCK_TEXT, bucket=_bucket(text_hash), lock=id)
    found = await row(tx, CLAIM_TEXT, id=id, hash=text_hash, **access(principal))
    return RecordId(found["other"]) if found and found["other"] else None


@dataclass(frozen=True, slots=True)
class Text:
    """A memory, as the worker names it, and the hash of its text."""

    id: RecordId
    partition: str
    text_hash: str


LOCK_TEXTS = """
UNWIND $buckets AS bucket
MERGE (l:Lease {name: bucket})
SET l.lock = $lock
"""
CLAIM_TEXTS = """
UNWIND $texts AS one
CALL (one) {
  MATCH (m:Memory {id: one.id}) WHERE m.partition = one.partition AND m.standing = 'CURRENT'
  SET m.textHash = one.hash
  WITH m, m.partition + '|' + m.scope + '|' + one.hash AS dedupKey
  OPTIONAL MATCH (other:Memory {dedupKey: dedupKey})
  FOREACH (_ IN CASE WHEN other IS NULL THEN [1] ELSE [] END | SET m.dedupKey = dedupKey)
  RETURN other IS NULL OR other.id = m.id AS claimed
}
WITH one, claimed WHERE claimed
RETURN one.id AS id
"""


async def claim_texts(tx: Tx, texts: Sequence[Text]) -> set[RecordId]:
    """Make each current memory the one of its text, unless another is; returns those that are."""
    ordered = sorted(texts, key=lambda text: text.id)
    buckets = sorted({_bucket(text.text_hash) for text in ordered})
    await rows(tx, LOCK_TEXTS, buckets=buckets, lock="".join(text.id for text in ordered[:1]))
    given = [{"id": text.id, "partition": text.partition, "hash": text.text_hash} for text in ordered]
    return {RecordId(found["id"]) for found in await rows(tx, CLAIM_TEXTS, texts=given)}


RELABEL = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
SET m.label = $label, m.position = $position, m.keys = [key IN m.keys WHERE key <> $oldTag] + $tag
WITH m
MATCH (c:Chunk {{memoryId: m.id}}) WHERE {visible("c")}
SET c.label = m.label, c.keys = [key IN c.keys WHERE key <> $oldTag] + $tag
"""


async def relabel(tx: Tx, principal: Principal, memory: Memory, label: Label) -> None:
    """Give a locked memory another label, in whatever is found by it too."""
    await rows(
        tx,
        RELABEL,
        id=memory.id,
        label=label.name,
        position=label.position,
        tag=label_tag(label.name),
        oldTag=label_tag(memory.label),
        **access(principal),
    )


def _bucket(text_hash: str) -> str:
    return f"text {text_hash[:2]}"
