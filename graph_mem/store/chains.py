"""Succession: all that replaced a record and all that it replaced, at any distance."""

from collections.abc import Sequence
from dataclasses import dataclass

from graph_mem.core.model import Principal, Record, RecordId, Relation, RelationState, UserId
from graph_mem.store.db import Tx, rows
from graph_mem.store.records import record_columns, record_of
from graph_mem.store.times import instant
from graph_mem.store.visibility import access, admitted, visible

RECORDS = f"""
MATCH (n:Memory|Fact {{id: $id}}) WHERE {visible("n")}
MATCH (n)-[:SUPERSEDES*0..]-(r)
WITH DISTINCT r WHERE {visible("r")} AND r.standing <> 'ERASED'
WITH r ORDER BY r.id DESC LIMIT $limit
RETURN {record_columns("r")} AS node
"""
LINKS = f"""
MATCH (a:Memory|Fact)-[r:SUPERSEDES]->(b:Memory|Fact)
WHERE a.id IN $ids AND b.id IN $ids AND {visible("a")} AND {visible("b")}
RETURN r.id AS id, a.id AS newer, b.id AS older, r.state AS state, r.by AS by, r.at AS at, r.reason AS reason,
  r.retires AS retires, coalesce(r.bypassed, false) AS bypassed
"""


@dataclass(frozen=True, slots=True)
class Succession:
    """Records in no order, and the links among them. `bypassed`: links in whose middle another record now stands."""

    records: Sequence[Record]
    links: Sequence[Relation]
    bypassed: frozenset[str]


async def succession(tx: Tx, principal: Principal, id: RecordId, *, limit: int) -> Succession:
    """The newest `limit` records of the chain that `id` belongs to; none if `principal` does not see it."""
    found = await rows(tx, RECORDS, id=id, limit=limit, **access(principal))
    records = admitted(principal, (row["node"] for row in found), record_of)
    links = await rows(tx, LINKS, ids=[record.id for record in records], **access(principal))
    return Succession(
        records,
        [
            Relation(
                id=link["id"],
                kind="SUPERSEDES",
                from_id=RecordId(link["newer"]),
                to_id=RecordId(link["older"]),
                state=RelationState(link["state"]),
                by=UserId(link["by"]),
                at=instant(link["at"]),
                reason=link["reason"],
                retires=link["retires"],
            )
            for link in links
        ],
        frozenset(link["id"] for link in links if link["bypassed"]),
    )
