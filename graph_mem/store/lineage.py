"""What directly replaced what, for records that are at hand."""

from collections.abc import Collection
from dataclasses import dataclass

from graph_mem.core.model import Principal, RecordId, place_of
from graph_mem.store.db import Tx, rows
from graph_mem.store.visibility import access, admit, visible

LINES = f"""
MATCH (a:Memory|Fact)-[r:SUPERSEDES|FOLDED_INTO]-(b:Memory|Fact)
WHERE a.id IN $ids AND {visible("a")} AND {visible("b")} AND coalesce(r.state, 'ACTIVE') = 'ACTIVE'
RETURN a.id AS id, b.id AS other, type(r) AS kind, startNode(r) = a AS out,
       b {{.id, .org, .owner, .level, .clientId, .dealId}} AS node
ORDER BY r.at, b.id
"""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Ids of the records next to one: those it replaced, those that replaced it, the one it was folded into."""

    older: tuple[RecordId, ...] = ()
    newer: tuple[RecordId, ...] = ()
    folded_into: RecordId | None = None


async def lineage(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> dict[RecordId, Lineage]:
    """The lineage of each of `ids`, as far as `principal` sees it, by active links, oldest link first."""
    older: dict[str, list[RecordId]] = {}
    newer: dict[str, list[RecordId]] = {}
    folded: dict[str, RecordId] = {}
    for found in await rows(tx, LINES, ids=sorted(ids), **access(principal)):
        if not admit(principal, place_of(found["node"]), found["other"]):
            continue
        match found["kind"], found["out"]:
            case "SUPERSEDES", True:
                older.setdefault(found["id"], []).append(RecordId(found["other"]))
            case "SUPERSEDES", _:
                newer.setdefault(found["id"], []).append(RecordId(found["other"]))
            case _, True:
                folded[found["id"]] = RecordId(found["other"])
            case _:
                continue
    return {id: Lineage(tuple(older.get(id, ())), tuple(newer.get(id, ())), folded.get(id)) for id in ids}
