"""Entities, and the links from records to them.

An entity lives where the record lives that names it: what stands in one client's room is not listed in another's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graph_mem.core.model import (
    Entity,
    EntityId,
    EntityLink,
    EntityRole,
    Memory,
    Page,
    Place,
    Principal,
    RecordId,
    place_of,
    token,
)
from graph_mem.core.text import name_key
from graph_mem.errors import Conflict, NotFound
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.memories import Key
from graph_mem.store.records import memory_columns, memory_of
from graph_mem.store.visibility import access, admitted, place_properties, visible

_COLUMNS = "e {.id, .org, .owner, .level, .clientId, .dealId, .name, .label, .aliases, .centrality}"

# What a record must hold before it is linked: itself, then every entity that it is or will be linked to.
HOLD = """
CALL () {
  UNWIND $records AS one
  MATCH (r:Memory|Fact {id: one.id}) WHERE r.partition = one.partition
  WITH r ORDER BY r.id
  SET r.lock = r.id
  WITH r
  MATCH (r)-[:MENTIONS|ABOUT]->(e:Entity)
  RETURN collect(DISTINCT e.nameKey) AS linked
}
CALL () {
  UNWIND $keys AS key
  MATCH (e:Entity {nameKey: key})
  WITH e.mergedInto AS heirId WHERE heirId IS NOT NULL
  MATCH (heir:Entity {id: heirId})
  RETURN collect(DISTINCT heir.nameKey) AS heirs
}
RETURN linked + heirs AS keys
"""
UPSERT = """
UNWIND $entities AS new
CALL (new) {
  WITH new WHERE new.properties IS NOT NULL
  MERGE (e:Entity {nameKey: new.nameKey})
    ON CREATE SET e += new.properties
  SET e.lock = new.nameKey
  RETURN e
 UNION ALL
  WITH new WHERE new.properties IS NULL
  MATCH (e:Entity {nameKey: new.nameKey})
  SET e.lock = new.nameKey
  RETURN e
}
WITH e, new WHERE new.properties IS NOT NULL
SET e.aliases = e.aliases + [alias IN new.properties.aliases WHERE NOT alias IN e.aliases]
RETURN new.nameKey AS nameKey, coalesce(e.mergedInto, e.id) AS id
"""
UNLINK = """
UNWIND $memories AS one
MATCH (m:Memory {id: one.id})-[old:MENTIONS]->(e:Entity) WHERE m.partition = one.partition
WITH old, e.id AS id
DELETE old
RETURN DISTINCT id
"""
LINK = """
UNWIND $links AS link
MATCH (m:Memory {id: link.memoryId}) WHERE m.partition = link.partition
MATCH (e:Entity {id: link.entityId}) WHERE e.partition = m.partition AND e.scope = m.scope
MERGE (m)-[r:MENTIONS]->(e)
SET r.role = link.role
RETURN count(*) AS linked
"""
BY_ID = f"MATCH (e:Entity) WHERE e.id IN $ids AND {visible('e')} RETURN {_COLUMNS} AS node"
PAGE = f"""
MATCH (e:Entity) WHERE {visible("e")} AND e.mergedInto IS NULL AND ($label IS NULL OR e.label = $label)
  AND ($query IS NULL OR toLower(e.name) CONTAINS $query
       OR any(alias IN e.aliases WHERE toLower(alias) CONTAINS $query))
  AND ($afterName IS NULL OR e.name > $afterName OR (e.name = $afterName AND e.id > $afterId))
WITH e ORDER BY e.name, e.id LIMIT $limit
RETURN {_COLUMNS} AS node
"""
OF_MEMORIES = f"""
MATCH (m:Memory)-[r:MENTIONS]->(e:Entity)
WHERE m.id IN $ids AND {visible("m")} AND {visible("e")}
RETURN m.id AS memoryId, r.role AS role, {_COLUMNS} AS node ORDER BY e.name, e.id
"""
MEMORIES = f"""
MATCH (e:Entity {{id: $id}})<-[:MENTIONS]-(m:Memory)
WHERE {visible("e")} AND {visible("m")} AND m.standing = 'CURRENT' AND ($before IS NULL OR m.id < $before)
WITH m ORDER BY m.id DESC LIMIT $limit
RETURN {memory_columns("m")} AS node
"""
RELATED = f"""
MATCH (named:Entity {{id: $id}})<-[:MENTIONS]-(m:Memory)-[:MENTIONS]->(e:Entity)
WHERE {visible("named")} AND {visible("m")} AND {visible("e")} AND m.standing = 'CURRENT' AND e.id <> $id
WITH e, count(DISTINCT m) AS together
WHERE $afterTogether IS NULL OR together < $afterTogether OR (together = $afterTogether AND e.id > $afterId)
WITH e, together ORDER BY together DESC, e.id LIMIT $limit
RETURN together, {_COLUMNS} AS node
"""


_TRIES = 10


@dataclass(frozen=True, slots=True)
class Named:
    """An entity as the extractor names it, at the place of the record that mentions it."""

    place: Place
    name: str
    label: str
    aliases: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return token("entity", self.place.partition_token, self.place.scope_token, self.label, name_key(self.name))


@dataclass(frozen=True, slots=True)
class Mention:
    memory_id: RecordId
    partition: str
    entity_id: str
    role: EntityRole


def entity_of(node: Row) -> Entity:
    return Entity(
        EntityId(node["id"]),
        place_of(node),
        node["name"],
        node["label"],
        tuple(node.get("aliases") or ()),
        node.get("centrality"),
    )


async def upsert(tx: Tx, named: Iterable[tuple[Named, str]], *, records: Sequence[Key]) -> dict[str, str]:
    """The id of each entity by its key; each comes with an id to have if it is new. A merged one gives its heir's.

    `records`, which are going to be linked to them, are locked, and after them these entities and those that the
    records are linked to by now. Whoever else needs several of these took records first and then entities in order of
    key, so that nobody locks another one out.
    """
    wanted = {one.key: _properties(one, id) for one, id in named}
    ordered = sorted(records, key=lambda one: one.id)
    given = [{"id": one.id, "partition": one.partition} for one in ordered]
    found = await row(tx, HOLD, records=given, keys=list(wanted))
    others = dict.fromkeys(found["keys"] if found else ())
    ids: dict[str, str] = {}
    for _ in range(_TRIES):
        entities = [{"nameKey": key, "properties": (others | wanted)[key]} for key in sorted({*others, *wanted})]
        ids |= {one["nameKey"]: one["id"] for one in await rows(tx, UPSERT, entities=entities) if one["id"]}
        # An erasure may take an entity away between the moment that it is found and the one that it is locked.
        wanted = {key: properties for key, properties in wanted.items() if key not in ids}
        others = {}
        if not wanted:
            return ids
    raise Conflict("Entities that a record names are being erased all the time; try again when that is over.")


def _properties(one: Named, id: str) -> dict[str, Any]:
    return {
        **place_properties(one.place),
        "id": id,
        "name": one.name,
        "label": one.label,
        "aliases": list(one.aliases),
        "keys": [one.place.partition_token, one.place.scope_token],
    }


async def relink(tx: Tx, memories: Sequence[Memory], mentions: Sequence[Mention]) -> None:
    """Replace the links of `memories` to entities by `mentions`; what nothing mentions any more goes.

    Errors: NotFound if an entity is not there; the transaction must not go on.
    """
    keys = [{"id": memory.id, "partition": memory.place.partition_token} for memory in memories]
    before = {found["id"] for found in await rows(tx, UNLINK, memories=keys)}
    links = [
        {
            "memoryId": mention.memory_id,
            "partition": mention.partition,
            "entityId": mention.entity_id,
            "role": mention.role.value,
        }
        for mention in sorted(mentions, key=lambda one: (one.entity_id, one.memory_id))
    ]
    linked = await row(tx, LINK, links=links)
    if not linked or linked["linked"] != len(links):
        raise NotFound(links[0]["entityId"])
    left = before - {mention.entity_id for mention in mentions}
    if left:
        await sweep(tx, memories[0].place.org_id, sorted(left))


async def by_ids(tx: Tx, principal: Principal, ids: Sequence[str]) -> list[Entity]:
    """The entities among `ids` that `principal` may see, in no order."""
    found = await rows(tx, BY_ID, ids=list(ids), **access(principal))
    return admitted(principal, (row["node"] for row in found), entity_of)


async def page(tx: Tx, principal: Principal, *, query: str | None, label: str | None, page: Page) -> list[Entity]:
    """By name; one row more than `page.first` when there are more. `query` is part of a name or alias."""
    name, id = page.after or (None, None)
    found = await rows(
        tx,
        PAGE,
        query=query.lower() if query else None,
        label=label,
        afterName=name,
        afterId=id,
        limit=page.first + 1,
        **access(principal),
    )
    return admitted(principal, (row["node"] for row in found), entity_of)


async def of_memories(tx: Tx, principal: Principal, ids: Sequence[RecordId]) -> dict[RecordId, list[EntityLink]]:
    """The entities that each of the memories mentions, by name."""
    links: dict[RecordId, list[EntityLink]] = {}
    for found in await rows(tx, OF_MEMORIES, ids=list(ids), **access(principal)):
        for entity in admitted(principal, [found["node"]], entity_of):
            links.setdefault(RecordId(found["memoryId"]), []).append(EntityLink(entity, EntityRole(found["role"])))
    return links


async def memories(tx: Tx, principal: Principal, id: EntityId, page: Page) -> list[Memory]:
    """Current memories that mention the entity, newest first; one more than `page.first` when there are more."""
    before = page.after[0] if page.after else None
    found = await rows(tx, MEMORIES, id=id, before=before, limit=page.first + 1, **access(principal))
    return admitted(principal, (row["node"] for row in found), memory_of)


async def related(tx: Tx, principal: Principal, id: EntityId, page: Page) -> list[tuple[Entity, int]]:
    """Entities mentioned together with this one and in how many memories, most often first."""
    together, after = page.after or (None, None)
    found = await rows(
        tx, RELATED, id=id, afterTogether=together, afterId=after, limit=page.first + 1, **access(principal)
    )
    return [(entity, row["together"]) for row in found for entity in admitted(principal, [row["node"]], entity_of)]


SWEEP = """
MATCH (e:Entity) WHERE e.id IN $ids AND e.org = $org AND e.mergedInto IS NULL
  AND NOT EXISTS { (e)<-[:MENTIONS|ABOUT]-() }
  AND NOT EXISTS { MATCH (merged:Entity {mergedInto: e.id}) }
DETACH DELETE e
RETURN count(*) AS swept
"""


async def sweep(tx: Tx, org_id: str, ids: Sequence[str]) -> int:
    """Remove those of `ids` that no record mentions any more; returns how many."""
    found = await row(tx, SWEEP, org=org_id, ids=list(ids))
    return found["swept"] if found else 0
