"""Whole organizations, read for an export and written by a restore: the operator's, who stands above all principals.

Each statement names the organization; none names a principal, so none carries the visibility predicate.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from neo4j.vector import Vector

from graph_mem.core.archive import KINDS, Edge, End, Node, kind_of
from graph_mem.core.model import OrganizationId
from graph_mem.core.vectors import Space
from graph_mem.store.db import Row, Tx, row, rows

_NODE: LiteralString = """
RETURN labels(n) AS labels, n {.*, embedding: null, embedding2: null} AS properties,
  CASE WHEN n[$property] IS NOT NULL THEN vector(n[$property], size(n[$property]), FLOAT32) END AS vector
"""
_EDGE: LiteralString = """
RETURN type(r) AS type, properties(r) AS properties, labels(a) AS startLabels, a {.id, .key} AS start,
  labels(b) AS endLabels, b {.id, .key} AS end
"""
NODES = f"MATCH (n:$($label)) WHERE n.org = $org {_NODE}"
ORGANIZATION = f"MATCH (n:Organization {{id: $org}}) {_NODE}"
MEMBERS = f"MATCH (n:User)-[:MEMBER_OF]->(:Organization {{id: $org}}) {_NODE}"
FORMER = f"MATCH (n:User) WHERE NOT EXISTS {{ (n)-[:MEMBER_OF]->() }} {_NODE}"
MARKS = f"MATCH (n:Lease) WHERE any(one IN $partitions WHERE n.name ENDS WITH one) {_NODE}"
EDGES = f"MATCH (a:$($label))-[r]->(b) WHERE a.org = $org {_EDGE}"
PEOPLE = f"""
MATCH (a:User)-[r:MEMBER_OF|ASSIGNED_TO]->(b:Organization|Client|Deal) WHERE b.id = $org OR b.org = $org {_EDGE}
"""
_OF_KIND: Mapping[str, LiteralString] = {"Organization": ORGANIZATION, "User": MEMBERS, "Lease": MARKS}
SINCE = f"MATCH (n:Event) WHERE n.org = $org AND n.at >= $since {_NODE}"
AROUND = """
CALL () {
  MATCH (r:Memory|Fact) WHERE r.id IN $ids AND r.org = $org RETURN r
 UNION
  MATCH (one:Memory|Fact)-[:SUPERSEDES|FOLDED_INTO|STATES|RELATES]-(r:Memory|Fact)
  WHERE one.id IN $ids AND one.org = $org
  RETURN r
 UNION
  MATCH (one:Fact) WHERE one.id IN $ids AND one.org = $org
  MATCH (r:Fact {slotKey: one.slotKey})
  RETURN r
}
RETURN r.id AS id ORDER BY id
"""
LOCK = "UNWIND $ids AS id MATCH (r:Memory|Fact {id: id}) WHERE r.org = $org SET r.lock = $lock"
OF_RECORDS = f"""
CALL () {{
  MATCH (n:Memory|Fact) WHERE n.id IN $ids RETURN n
 UNION
  MATCH (n:Chunk|Version) WHERE n.memoryId IN $ids RETURN n
 UNION
  MATCH (n:Job|Event|Rehearsal) WHERE n.recordId IN $ids RETURN n
 UNION
  MATCH (one:Fact) WHERE one.id IN $ids MATCH (n:Slot {{key: one.slotKey}}) RETURN n
 UNION
  MATCH (one:Memory|Fact)-[:MENTIONS|ABOUT]->(n:Entity) WHERE one.id IN $ids RETURN n
}}
WITH n WHERE n.org = $org
{_NODE}"""
EDGES_OF = f"""
CALL () {{
  MATCH (n:Memory|Fact) WHERE n.id IN $ids RETURN n
 UNION
  MATCH (n:Chunk|Version) WHERE n.memoryId IN $ids RETURN n
}}
MATCH (n)-[r]-() WHERE n.org = $org
WITH DISTINCT r, startNode(r) AS a, endNode(r) AS b
{_EDGE}"""
CENSUS = """
CALL () {
  MATCH (n) WHERE n:User OR n:Organization OR EXISTS { (:Organization {id: n.org}) }
  RETURN count(n) AS nodes
}
CALL () {
  MATCH ()-[r]->()
  RETURN count(r) AS edges
}
RETURN nodes, edges
"""
SCHEMA = "MATCH (m:Migration) RETURN max(m.version) AS version"

THERE = """
CALL () {
  MATCH (n:Organization) WHERE n.id IN $ids OR n.name IN $names RETURN n.name AS name
 UNION
  UNWIND $people AS one
  MATCH (n:User {name: one.name}) WHERE n.id <> one.id RETURN n.name AS name
}
RETURN name ORDER BY name
"""
IN_THE_WAY = """
MATCH (o:Organization) WHERE (o.id IN $ids OR o.name IN $names)
  AND NOT EXISTS { (p:Restoration) WHERE o.id IN p.organizations }
RETURN o.id AS id
"""
HOLDS = "RETURN EXISTS { MATCH (n:$($label)) WHERE n.org = $org } AS held"
NOBODY = """
UNWIND $people AS one
MATCH (u:User {name: one.name}) WHERE u.id <> one.id AND NOT EXISTS { (u)-[:MEMBER_OF]->() }
  AND NOT EXISTS { (p:Restoration) WHERE u.id IN p.people OR u.id IN p.returned }
RETURN u.id AS id
"""
BEGIN = """
MERGE (p:Restoration {key: $key})
ON CREATE SET p.line = 0, p.at = $at, p.organizations = $organizations, p.people = [], p.returned = [], p.marks = []
RETURN p.line AS line
"""
AT = "MATCH (p:Restoration {key: $key}) RETURN p.line AS line"
ADVANCE = "MATCH (p:Restoration {key: $key, line: $after}) SET p.line = $line RETURN p.line AS line"
BRINGS = """
MATCH (p:Restoration {key: $key})
CALL () { UNWIND $people AS one WITH one WHERE NOT EXISTS { (:User {id: one}) } RETURN collect(one) AS people }
CALL () { UNWIND $marks AS one WITH one WHERE NOT EXISTS { (:Lease {name: one}) } RETURN collect(one) AS marks }
CALL () { UNWIND $named AS one MATCH (u:User {id: one}) WHERE u.name IS NULL RETURN collect(one) AS returned }
SET p.people = p.people + people, p.marks = p.marks + marks, p.returned = coalesce(p.returned, []) + returned
"""
DONE = "MATCH (p:Restoration {key: $key}) DELETE p"
CREATE = """
UNWIND $nodes AS one
CREATE (n:$(one.labels)) SET n = one.properties
WITH n, one WHERE one.vector IS NOT NULL
SET n[$property] = toFloatList(one.vector)
"""
MERGE_PEOPLE = """
UNWIND $nodes AS one
MERGE (u:User {id: one.properties.id}) ON CREATE SET u = one.properties
WITH u, one WHERE u.name IS NULL AND one.properties.name IS NOT NULL
SET u = one.properties
"""
MERGE_MARKS = """
UNWIND $nodes AS one
MERGE (l:Lease {name: one.properties.name}) SET l = one.properties
"""
CONNECT = """
UNWIND $edges AS one
MATCH (a:Organization|User|Client|Deal|ApiKey|Memory|Chunk|Fact|Version|Entity|Policy|PolicyVersion|Variable|
  VariableVersion|Pin {id: one.start})
MATCH (b:Organization|User|Client|Deal|ApiKey|Memory|Chunk|Fact|Version|Entity|Policy|PolicyVersion|Variable|
  VariableVersion|Pin {id: one.end})
CREATE (a)-[r:$(one.type)]->(b) SET r = one.properties
RETURN count(r) AS made
"""
CONNECT_SLOTS = """
UNWIND $edges AS one
MATCH (a:Slot {key: one.start})
MATCH (b:Fact {id: one.end})
CREATE (a)-[r:$(one.type)]->(b) SET r = one.properties
RETURN count(r) AS made
"""


async def nodes(
    tx: Tx, kind: str, *, org_id: OrganizationId, partitions: Sequence[str], space: Space | None
) -> AsyncGenerator[Node, None]:
    """Every node of `kind` in the organization; `partitions` are those whose marks belong to it."""
    async for found in _stream(
        tx, _OF_KIND.get(kind, NODES), label=kind, org=org_id, partitions=partitions, space=space
    ):
        if found.kind == kind:
            yield found


async def former_people(tx: Tx) -> AsyncGenerator[Node, None]:
    """Users who are members nowhere now: authors of what they once wrote."""
    async for found in _stream(tx, FORMER):
        yield found


async def edges(tx: Tx, kind: str, *, org_id: OrganizationId) -> AsyncGenerator[Edge, None]:
    """Every edge of the organization that begins at a node of `kind`."""
    statement = PEOPLE if kind == "User" else EDGES
    result = await tx.run(statement, {"label": kind, "org": org_id})
    async for found in result:
        yield _edge(found)


async def events_since(tx: Tx, org_id: OrganizationId, *, since: int) -> list[Node]:
    """What happened in the organization at or after `since` (epoch milliseconds), in no order."""
    return [one async for one in _stream(tx, SINCE, org=org_id, since=since)]


async def around(tx: Tx, org_id: OrganizationId, ids: Collection[str]) -> list[str]:
    """The records among `ids`, those linked to them and those that share a slot with one, by id."""
    return [found["id"] for found in await rows(tx, AROUND, org=org_id, ids=sorted(ids))]


async def lock(tx: Tx, org_id: OrganizationId, ids: Sequence[str], *, lock: str) -> None:
    """Let nobody change these records before the transaction ends."""
    await rows(tx, LOCK, org=org_id, ids=ids, lock=lock)


async def of_records(
    tx: Tx, org_id: OrganizationId, ids: Sequence[str], *, space: Space | None
) -> tuple[list[Node], list[Edge]]:
    """These records with everything that belongs to them, and every edge from or to it."""
    found = [one async for one in _stream(tx, OF_RECORDS, org=org_id, ids=ids, space=space)]
    return found, [_edge(one) for one in await rows(tx, EDGES_OF, org=org_id, ids=ids)]


@dataclass(frozen=True, slots=True)
class Census:
    """How many nodes there are that belong to an organization or a person, and how many edges."""

    nodes: int
    edges: int


async def census(tx: Tx) -> Census:
    """What an export of everything, and a restore of it, must come to."""
    found = await row(tx, CENSUS)
    return Census(found["nodes"], found["edges"]) if found else Census(0, 0)


async def schema_version(tx: Tx) -> int:
    """The newest migration that was applied; 0 on an empty database."""
    found = await row(tx, SCHEMA)
    return (found["version"] or 0) if found else 0


async def there(tx: Tx, *, organizations: Mapping[str, str], people: Mapping[str, str]) -> list[str]:
    """The names of `organizations` (by id) that exist, and of `people` (by id) that somebody else has."""
    given = [{"id": id, "name": name} for id, name in people.items()]
    found = await rows(tx, THERE, ids=list(organizations), names=list(organizations.values()), people=given)
    return [one["name"] for one in found]


async def empty(tx: Tx, *, organizations: Mapping[str, str]) -> list[OrganizationId]:
    """Organizations with the id or name of one of `organizations` (by id) in which there is nothing but members.

    One that a restore is bringing is not among them, however little of it is here.
    """
    found = await rows(tx, IN_THE_WAY, ids=list(organizations), names=list(organizations.values()))
    return [OrganizationId(one["id"]) for one in found if not await _holds(tx, one["id"])]


async def _holds(tx: Tx, org_id: str) -> bool:
    """Whether a node of any kind belongs to the organization."""
    for label in KINDS:
        found = await row(tx, HOLDS, label=label, org=org_id)
        if found and found["held"]:
            return True
    return False


async def nobody(tx: Tx, *, people: Mapping[str, str]) -> list[str]:
    """Who has the name of one of `people` (by id) and is a member nowhere, nor brought by a restore."""
    given = [{"id": id, "name": name} for id, name in people.items()]
    return [one["id"] for one in await rows(tx, NOBODY, people=given)]


async def begin(tx: Tx, key: str, *, organizations: Collection[str], at: int) -> int:
    """Note that the archive is being restored; returns how many of its lines are, fewer than none while that is
    taken back."""
    found = await row(tx, BEGIN, key=key, at=at, organizations=list(organizations))
    assert found is not None  # noqa: S101  MERGE always gives a row
    return found["line"]


async def begun(tx: Tx, key: str) -> bool:
    """Whether a restore of the archive was broken off, or is under way."""
    return await row(tx, AT, key=key) is not None


async def advance(tx: Tx, key: str, *, after: int, line: int) -> bool:
    """Note that lines up to `line` are restored; False if that was not at `after`: somebody else restores too."""
    return await row(tx, ADVANCE, key=key, after=after, line=line) is not None


async def brings(tx: Tx, key: str, made: Sequence[Node]) -> None:
    """Note the people and marks among `made` that are not here yet, and people who had given up their names: what a
    restore that is discarded takes along, and from whom it takes the name again."""
    people = [one.key for one in made if one.kind == "User"]
    named = [one.key for one in made if one.kind == "User" and "name" in one.properties]
    marks = [one.key for one in made if one.kind == "Lease"]
    if people or marks:
        await rows(tx, BRINGS, key=key, people=people, named=named, marks=marks)


async def done(tx: Tx, key: str) -> None:
    """Forget that the archive was being restored."""
    await rows(tx, DONE, key=key)


async def create(tx: Tx, made: Sequence[Node], *, space: Space | None) -> None:
    """Add nodes as they are, with their vectors in `space` or without; people who are here already stay as they are,
    but for those who had given up their names, who have them again."""
    await rows(tx, MERGE_PEOPLE, nodes=[_given(one, vectors=False) for one in made if one.kind == "User"])
    await rows(tx, MERGE_MARKS, nodes=[_given(one, vectors=False) for one in made if one.kind == "Lease"])
    others = [_given(one, vectors=space is not None) for one in made if one.kind not in ("User", "Lease")]
    await rows(tx, CREATE, nodes=others, property=_property(space))


async def connect(tx: Tx, made: Sequence[Edge]) -> int:
    """Add edges between nodes that exist; returns how many."""
    of_slots = [_ends(one) for one in made if one.start.kind == "Slot"]
    others = [_ends(one) for one in made if one.start.kind != "Slot"]
    found = [await row(tx, CONNECT_SLOTS, edges=of_slots), await row(tx, CONNECT, edges=others)]
    return sum(one["made"] for one in found if one)


def _ends(edge: Edge) -> dict[str, Any]:
    given = {"type": edge.type, "start": edge.start.key, "end": edge.end.key}
    return {**given, "properties": dict(edge.properties)}


def _given(node: Node, *, vectors: bool) -> dict[str, Any]:
    vector = None if node.vector is None or not vectors else Vector(node.vector, "f32", byteorder="little")
    return {"labels": list(node.labels), "properties": dict(node.properties), "vector": vector}


def _property(space: Space | None) -> str:
    """Where vectors are; without them, where none are."""
    return space.property if space else "none"


async def _stream(
    tx: Tx, statement: LiteralString, *, space: Space | None = None, **parameters: Any
) -> AsyncGenerator[Node, None]:
    """The nodes of `statement` as they come: there may be more than memory holds."""
    result = await tx.run(statement, {**parameters, "property": _property(space)})
    async for found in result:
        labels = tuple(sorted(found["labels"]))
        kind = kind_of(labels)
        if kind is not None:
            properties = {name: value for name, value in found["properties"].items() if value is not None}
            vector = found["vector"]
            packed = None if vector is None else vector.raw(byteorder="little")
            yield Node(kind, properties[KINDS[kind]], labels, properties, packed)


def _edge(found: Row) -> Edge:
    start, end = _end(found["startLabels"], found["start"]), _end(found["endLabels"], found["end"])
    return Edge(found["type"], start, end, found["properties"])


def _end(labels: Sequence[str], node: Row) -> End:
    kind = kind_of(tuple(labels))
    assert kind is not None  # noqa: S101 # the guards know every kind of node with an edge
    return End(kind, node[KINDS[kind]])
