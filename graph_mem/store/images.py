"""The part of the graph that a decision may touch: read as an image, set back from one."""

import json
from collections.abc import Collection, Mapping
from typing import Any, LiteralString, cast

from graph_mem.core.changes import (
    Change,
    EdgeChange,
    EdgeRef,
    Image,
    NodeRef,
    Properties,
    PropertyChange,
    SetChange,
    Undo,
)
from graph_mem.core.model import Principal, place_of
from graph_mem.store.db import Row, Tx, rows
from graph_mem.store.visibility import access, admit, visible

# `embedding` never changes by a decision, `lock` means nothing.
_PROPERTIES: LiteralString = "{.*, embedding: null, embedding2: null, lock: null}"
_UNIQUE = ("dedupKey", "activeKey")
_LABEL: LiteralString = "[label IN labels(n) WHERE label IN ['Memory', 'Fact', 'Entity', 'Chunk']][0]"

NODES = f"""
MATCH (n:Memory|Fact|Entity|Chunk) WHERE n.id IN $ids AND {visible("n")}
RETURN {_LABEL} AS label, n.id AS id, n {_PROPERTIES} AS properties
UNION ALL
MATCH (n:Chunk) WHERE n.memoryId IN $ids AND {visible("n")}
RETURN 'Chunk' AS label, n.id AS id, n {_PROPERTIES} AS properties
UNION ALL
MATCH (n:Slot) WHERE n.key IN $ids AND {visible("n")}
RETURN 'Slot' AS label, n.key AS id, n {_PROPERTIES} AS properties
UNION ALL
MATCH (n:Rehearsal) WHERE n.recordId IN $ids AND {visible("n")}
RETURN 'Rehearsal' AS label, n.recordId AS id, n {_PROPERTIES} AS properties
"""
_EDGE: LiteralString = """
WITH DISTINCT r, startNode(r) AS a, endNode(r) AS b
RETURN type(r) AS type, a {.id, .key, .org, .owner, .level, .clientId, .dealId, labels: labels(a)} AS start,
  b {.id, .org, .owner, .level, .clientId, .dealId, labels: labels(b)} AS end, properties(r) AS properties
"""
EDGES = f"""
MATCH (n:Memory|Fact|Entity)-[r:SUPERSEDES|MENTIONS|ABOUT|CURRENT]-(other)
WHERE n.id IN $ids AND {visible("n")} AND {visible("other")}
{_EDGE}
UNION
MATCH (n:Fact)-[r:STATES|FOLDED_INTO]-(other:Memory|Fact)
WHERE n.id IN $ids AND {visible("n")} AND {visible("other")}
{_EDGE}
UNION
MATCH (n:Slot)-[r:CURRENT]->(other:Fact) WHERE n.key IN $ids AND {visible("n")} AND {visible("other")}
{_EDGE}
"""
AROUND = f"""
MATCH (f:Fact) WHERE f.id IN $ids AND {visible("f")}
MATCH (s:Slot {{key: f.slotKey}})
OPTIONAL MATCH (s)-[:CURRENT]->(seated:Fact) WHERE {visible("seated")}
RETURN s.key AS slot, seated.id AS seated
"""
SET_NODES = f"""
UNWIND $nodes AS one
MATCH (n:Memory|Fact|Entity|Chunk {{id: one.id}}) WHERE {visible("n")}
SET n += one.properties
"""
SET_SLOTS = f"""
UNWIND $nodes AS one
MATCH (n:Slot {{key: one.id}}) WHERE {visible("n")}
SET n += one.properties
"""
SET_REHEARSALS = f"""
UNWIND $nodes AS one
MATCH (n:Rehearsal {{recordId: one.id}}) WHERE {visible("n")}
SET n += one.properties
"""
MAKE_EDGES = f"""
UNWIND $edges AS one
MATCH (a:Memory|Fact|Entity {{id: one.start}}) WHERE {visible("a")}
MATCH (b:Memory|Fact|Entity {{id: one.end}}) WHERE {visible("b")}
CREATE (a)-[r:$(one.type)]->(b)
SET r = one.properties
"""
DROP_EDGES = f"""
UNWIND $edges AS one
MATCH (a:Memory|Fact|Entity {{id: one.start}})-[r:SUPERSEDES|MENTIONS|ABOUT|STATES|FOLDED_INTO]->(b {{id: one.end}})
WHERE type(r) = one.type AND coalesce(r.id, '') = one.id AND {visible("a")} AND {visible("b")}
DELETE r
"""
SEAT = f"""
UNWIND $edges AS one
MATCH (a:Slot {{key: one.start}}) WHERE {visible("a")}
MATCH (b:Fact {{id: one.end}}) WHERE {visible("b")}
MERGE (a)-[:CURRENT]->(b)
"""
UNSEAT = f"""
UNWIND $edges AS one
MATCH (a:Slot {{key: one.start}})-[r:CURRENT]->(b:Fact {{id: one.end}}) WHERE {visible("a")} AND {visible("b")}
DELETE r
"""
LOCK_TEXTS = """
UNWIND $buckets AS bucket
MERGE (l:Lease {name: bucket})
SET l.lock = bucket
"""
TAKEN = """
UNWIND $keys AS one
OPTIONAL MATCH (m:Memory {dedupKey: one.key}) WHERE m.id <> one.id
OPTIONAL MATCH (f:Fact {activeKey: one.key}) WHERE f.id <> one.id
WITH one, coalesce(m.id, f.id) AS holder WHERE holder IS NOT NULL AND NOT holder IN $leaving
RETURN one.id AS id
"""

RETIRED = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")} AND r.standing = 'CURRENT'
  AND EXISTS {{ (r)<-[:SUPERSEDES {{state: 'ACTIVE', retires: true}}]-() }}
RETURN r.id AS id
"""


async def around(tx: Tx, principal: Principal, ids: Collection[str]) -> set[str]:
    """`ids`, with the slots of those that are facts and whoever is seated there."""
    found = await rows(tx, AROUND, ids=sorted(ids), **access(principal))
    return {*ids, *(row["slot"] for row in found), *(row["seated"] for row in found if row["seated"])}


async def image(tx: Tx, principal: Principal, ids: Collection[str]) -> Image:
    """The nodes `ids` (slots by their key) with their chunks, rehearsals and links, as they are now."""
    given = {"ids": sorted(ids), **access(principal)}
    nodes = {
        NodeRef(row["label"], row["id"]): _present(row["properties"])
        for row in await rows(tx, NODES, **given)
        if admit(principal, place_of(row["properties"]), row["id"])
    }
    edges = {
        _edge_ref(row): _present(row["properties"])
        for row in await rows(tx, EDGES, **given)
        if all(admit(principal, place_of(end), row["type"]) for end in (row["start"], row["end"]))
    }
    return Image(nodes, edges)


async def taken(tx: Tx, nodes: Mapping[NodeRef, Properties]) -> list[str]:
    """Those of `nodes` whose unique text or seat somebody else has by now; nobody else can take one after this."""
    texts = [str(new["dedupKey"]).rpartition("|")[2] for new in nodes.values() if new.get("dedupKey")]
    await rows(tx, LOCK_TEXTS, buckets=sorted({f"text {text[:2]}" for text in texts}))
    keys = [
        {"id": ref.id, "key": new[name]} for ref, new in nodes.items() for name in _UNIQUE if new.get(name) is not None
    ]
    leaving = [ref.id for ref, new in nodes.items() if any(name in new and new[name] is None for name in _UNIQUE)]
    return [row["id"] for row in await rows(tx, TAKEN, keys=keys, leaving=leaving)]


async def retired(tx: Tx, principal: Principal, nodes: Mapping[NodeRef, Properties]) -> list[str]:
    """Those of `nodes`, as they are now, that are current though a link retires them."""
    ids = [ref.id for ref in nodes if ref.label in ("Memory", "Fact")]
    return [row["id"] for row in await rows(tx, RETIRED, ids=ids, **access(principal))]


async def restore(tx: Tx, principal: Principal, undo: Undo) -> None:
    """Set nodes and links as `undo` says."""
    await _edges(tx, principal, {ref: {} for ref in undo.drop}, links=DROP_EDGES, seats=UNSEAT)
    statements: tuple[tuple[LiteralString, frozenset[str]], ...] = (
        (SET_NODES, frozenset({"Memory", "Fact", "Entity", "Chunk"})),
        (SET_SLOTS, frozenset({"Slot"})),
        (SET_REHEARSALS, frozenset({"Rehearsal"})),
    )
    for statement, labels in statements:
        # Whoever gives up a unique key comes before whoever gets it: the constraint looks at every single write.
        ordered = sorted(undo.set.items(), key=lambda item: any(item[1].get(name) is not None for name in _UNIQUE))
        nodes = [{"id": ref.id, "properties": dict(new)} for ref, new in ordered if ref.label in labels]
        await rows(tx, statement, nodes=nodes, **access(principal))
    await _edges(tx, principal, undo.make, links=MAKE_EDGES, seats=SEAT)


async def _edges(
    tx: Tx, principal: Principal, edges: Mapping[EdgeRef, Properties], *, links: LiteralString, seats: LiteralString
) -> None:
    linked = [_edge(ref, new) for ref, new in edges.items() if ref.type != "CURRENT"]
    seated = [_edge(ref, new) for ref, new in edges.items() if ref.type == "CURRENT"]
    await rows(tx, links, edges=linked, **access(principal))
    await rows(tx, seats, edges=seated, **access(principal))


def change_json(change: Change) -> str:
    """`change` as it is stored."""
    return json.dumps(
        {
            "properties": [[*c.node, c.name, c.before, c.after] for c in change.properties],
            "sets": [[*c.node, c.name, c.removed, c.added] for c in change.sets],
            "edges": [[c.edge.type, *c.edge.start, *c.edge.end, c.edge.id, c.before, c.after] for c in change.edges],
        },
        ensure_ascii=False,
    )


def change_of(text: str) -> Change:
    """The stored change."""
    stored: dict[str, list[list[Any]]] = json.loads(text)
    return Change(
        tuple(PropertyChange(NodeRef(c[0], c[1]), c[2], c[3], c[4]) for c in stored["properties"]),
        tuple(
            SetChange(NodeRef(c[0], c[1]), c[2], tuple((index, tag) for index, tag in c[3]), tuple(c[4]))
            for c in stored["sets"]
        ),
        tuple(
            EdgeChange(EdgeRef(c[0], NodeRef(c[1], c[2]), NodeRef(c[3], c[4]), c[5]), c[6], c[7])
            for c in stored["edges"]
        ),
    )


def _edge_ref(row: Row) -> EdgeRef:
    properties: Properties = row["properties"]
    return EdgeRef(row["type"], _node_ref(row["start"]), _node_ref(row["end"]), str(properties.get("id") or ""))


def _node_ref(node: Row) -> NodeRef:
    label = next(label for label in node["labels"] if label in ("Memory", "Fact", "Entity", "Slot"))
    return NodeRef(label, node["id"] or node["key"])


def _edge(ref: EdgeRef, properties: Properties) -> dict[str, Any]:
    return {"type": ref.type, "start": ref.start.id, "end": ref.end.id, "id": ref.id, "properties": dict(properties)}


def _present(properties: Mapping[str, Any]) -> Properties:
    return {name: value for name, value in cast("dict[str, Any]", properties).items() if value is not None}
