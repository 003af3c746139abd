"""Explicit links between records: SUPERSEDES, which retires, and RELATES with the organization's own name in a
property.

A link is visible to whoever sees both its ends. Whether a link retires is decided once, when it is made, and kept
in it; what a correction undoes is looked up among all links, seen or not.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, LiteralString

from graph_mem.core.model import (
    Page,
    Principal,
    RecordId,
    Relation,
    RelationState,
    UserId,
    place_of,
)
from graph_mem.errors import NotFound
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import access, admit, admitted, visible

_ENDS = f"""
UNWIND $links AS new
MATCH (newer:Memory|Fact {{id: new.from}}) WHERE {visible("newer")}
MATCH (older:Memory|Fact {{id: new.to}}) WHERE {visible("older")}
"""
SUPERSEDING: LiteralString = f"""
{_ENDS}
CREATE (newer)-[r:SUPERSEDES {{id: new.id, at: new.at, by: new.by, reason: new.reason, state: 'ACTIVE',
  retires: new.retires}}]->(older)
"""
"""Makes each of `$links`, as `properties` writes them."""

SUPERSEDE = f"{SUPERSEDING} RETURN r.id AS id"
RELATE = f"""
{_ENDS}
CREATE (newer)-[r:RELATES {{id: new.id, kind: new.kind, at: new.at, by: new.by, reason: new.reason,
  state: 'ACTIVE'}}]->(older)
RETURN r.id AS id
"""
_COLUMNS: LiteralString = (
    "{id: r.id, kind: coalesce(r.kind, 'SUPERSEDES'), from: a.id, to: b.id, state: r.state, by: r.by, at: r.at,"
    " reason: r.reason, retires: coalesce(r.retires, false)}"
)
"""A link `r` from `a` to `b`, for `_relation`."""

_PLACE: LiteralString = "{.org, .owner, .level, .clientId, .dealId}"

FIND = f"""
CALL () {{
  MATCH (a)-[r:SUPERSEDES {{id: $id}}]->(b) RETURN a, r, b
 UNION
  MATCH (a)-[r:RELATES {{id: $id}}]->(b) RETURN a, r, b
}}
WITH a, r, b WHERE {visible("a")} AND {visible("b")}
RETURN {_COLUMNS} AS link, a {_PLACE} AS one, b {_PLACE} AS other
"""
OF = f"""
MATCH (n:Memory|Fact {{id: $id}})-[r:SUPERSEDES|RELATES]-(other:Memory|Fact)
WHERE {visible("n")} AND {visible("other")}
  AND ($beforeAt IS NULL OR r.at < $beforeAt OR (r.at = $beforeAt AND r.id < $beforeId))
WITH r, startNode(r) AS a, endNode(r) AS b ORDER BY r.at DESC, r.id DESC LIMIT $limit
RETURN {_COLUMNS} AS link, a {_PLACE} AS one, b {_PLACE} AS other
"""
LOCK_SUCCESSION = """
MERGE (l:Lease {name: $name})
SET l.lock = $lock
"""
LEADS = f"""
MATCH (older:Memory|Fact {{id: $older}}) WHERE {visible("older")}
MATCH (newer:Memory|Fact {{id: $newer}}) WHERE {visible("newer")}
MATCH SHORTEST 1 (older)((a)-[r:SUPERSEDES WHERE r.state = 'ACTIVE']->(b))+(newer)
RETURN count(*) > 0 AS leads
"""
LINKED = f"""
MATCH (a:Memory|Fact {{id: $from}})-[r:SUPERSEDES|RELATES]->(b:Memory|Fact {{id: $to}})
WHERE {visible("a")} AND {visible("b")} AND coalesce(r.kind, 'SUPERSEDES') = $kind AND r.state = 'ACTIVE'
RETURN {_COLUMNS} AS link, a {_PLACE} AS one, b {_PLACE} AS other LIMIT 1
"""
RETRACT = f"""
CALL () {{
  MATCH (a)-[r:SUPERSEDES {{id: $id}}]->(b) RETURN a, r, b
 UNION
  MATCH (a)-[r:RELATES {{id: $id}}]->(b) RETURN a, r, b
}}
WITH a, r, b WHERE {visible("a")} AND {visible("b")}
SET r.state = 'RETRACTED', r.correctedAt = $at, r.correctedBy = $by, r.correction = $reason
"""
# Counts links from records the caller may not see: one of those retires as well as any other.
RETIRED_BY = f"""
MATCH (older:Memory|Fact {{id: $id}}) WHERE {visible("older")}
RETURN COUNT {{ (older)<-[:SUPERSEDES {{state: 'ACTIVE', retires: true}}]-() }} AS links
"""
KEPT = f"""
UNWIND $ids AS id
MATCH (m:Memory|Fact {{id: id}}) WHERE {visible("m")} AND m.standing <> 'ERASED'
CALL (m) {{
  OPTIONAL MATCH (m)-[:FOLDED_INTO*1..20]->(kept:Memory) WHERE kept.standing <> 'FOLDED' AND {visible("kept")}
  RETURN kept ORDER BY kept.id LIMIT 1
}}
WITH id, coalesce(kept, m) AS kept
RETURN id, kept {{.id, .org, .owner, .level, .clientId, .dealId}} AS node
"""
BYPASS = f"""
MATCH (a:Fact {{id: $newer}})-[r:SUPERSEDES]->(b:Fact {{id: $older}}) WHERE {visible("a")} AND {visible("b")}
SET r.bypassed = true
"""


async def supersede(tx: Tx, principal: Principal, links: Sequence[Relation]) -> None:
    """Store SUPERSEDES links from the newer to the older record.

    Errors: NotFound if an end is not there for `principal`; the transaction must not go on.
    """
    await _create(tx, SUPERSEDE, principal, links)


async def relate(tx: Tx, principal: Principal, links: Sequence[Relation]) -> None:
    """Store links of the organization's own kinds. Errors: as `supersede`."""
    await _create(tx, RELATE, principal, links)


async def _create(tx: Tx, statement: LiteralString, principal: Principal, links: Sequence[Relation]) -> None:
    if not links:
        return
    made = await rows(tx, statement, links=list(map(properties, links)), **access(principal))
    missing = {link.id for link in links} - {found["id"] for found in made}
    if missing:
        raise NotFound(next(link.to_id for link in links if link.id in missing))


async def find(tx: Tx, principal: Principal, id: str) -> Relation | None:
    """The link with this id, if `principal` sees both its ends."""
    return next(iter(_seen(principal, await rows(tx, FIND, id=id, **access(principal)))), None)


async def linked(tx: Tx, principal: Principal, *, from_id: RecordId, to_id: RecordId, kind: str) -> Relation | None:
    """The active link of this kind that is there already."""
    found = await rows(tx, LINKED, kind=kind, to=to_id, **{"from": from_id}, **access(principal))
    return next(iter(_seen(principal, found)), None)


async def of_record(tx: Tx, principal: Principal, id: RecordId, page: Page) -> list[Relation]:
    """Links from and to a record, newest first; one more than `page.first` when there are more. Page keys: (at, id)."""
    at, last = page.after or (None, None)
    found = await rows(tx, OF, id=id, beforeAt=at, beforeId=last, limit=page.first + 1, **access(principal))
    return _seen(principal, found)


async def lock_succession(tx: Tx, partition: str, *, lock: str) -> None:
    """Let no other transaction link existing records of this partition until this one ends.

    Two links that are harmless each can close a ring together, through records that neither names.
    """
    await rows(tx, LOCK_SUCCESSION, name=f"succession {partition}", lock=lock)


async def leads(tx: Tx, principal: Principal, *, older: RecordId, newer: RecordId) -> bool:
    """Whether `older` already replaces `newer`, directly or through others."""
    found = await row(tx, LEADS, older=older, newer=newer, **access(principal))
    return bool(found and found["leads"])


async def retract(tx: Tx, principal: Principal, id: str, *, at: datetime, by: str, reason: str) -> None:
    """Mark a link as wrong; it stays, with the correction."""
    await rows(tx, RETRACT, id=id, at=ms(at), by=by, reason=reason, **access(principal))


async def retiring_links(tx: Tx, principal: Principal, id: RecordId) -> int:
    """How many active links retire the record."""
    found = await row(tx, RETIRED_BY, id=id, **access(principal))
    return found["links"] if found else 0


async def kept(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> dict[RecordId, RecordId]:
    """For each of `ids` that `principal` may see, the record that stands for it: itself unless it was folded."""
    found = await rows(tx, KEPT, ids=sorted(set(ids)), **access(principal))
    return {
        RecordId(one["id"]): RecordId(one["node"]["id"])
        for one in found
        if admit(principal, place_of(one["node"]), one["node"]["id"])
    }


async def bypass(tx: Tx, principal: Principal, *, newer: RecordId, older: RecordId) -> None:
    """Note that a record now stands between two that are linked; the link stays what it was."""
    await rows(tx, BYPASS, newer=newer, older=older, **access(principal))


def properties(link: Relation) -> dict[str, Any]:
    """What `SUPERSEDING` asks of each of `$links`."""
    return {
        "id": link.id,
        "kind": link.kind,
        "from": link.from_id,
        "to": link.to_id,
        "at": ms(link.at),
        "by": link.by,
        "reason": link.reason,
        "retires": link.retires,
    }


def _seen(principal: Principal, found: Sequence[Row]) -> list[Relation]:
    """The links both of whose ends pass the second layer."""
    return [
        _relation(one["link"])
        for one in found
        if len(admitted(principal, [one["one"], one["other"]], place_of)) == len(("one", "other"))
    ]


def _relation(link: Row) -> Relation:
    return Relation(
        id=link["id"],
        kind=link["kind"],
        from_id=RecordId(link["from"]),
        to_id=RecordId(link["to"]),
        state=RelationState(link["state"]),
        by=UserId(link["by"]),
        at=instant(link["at"]),
        reason=link.get("reason"),
        retires=link["retires"],
    )
