"""Archive, restore, validate, reclass, merge: the changes that review and people make to single records."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from graph_mem.core.model import EntityId, Principal, RecordId
from graph_mem.core.tags import entity_tag, label_tag
from graph_mem.store.db import Tx, row, rows
from graph_mem.store.times import ms
from graph_mem.store.visibility import access, visible

RIVAL = f"""
MATCH (r:Memory|Fact {{id: $id}}) WHERE {visible("r")}
OPTIONAL MATCH (f:Fact {{activeKey: r.seat}}) WHERE f.id <> r.id
RETURN f.id AS seated, r.textHash AS textHash
"""
VALIDATED = f"""
MATCH (r:Memory|Fact {{id: $id}}) WHERE {visible("r")}
SET r.lastValidatedAt = $at, r.version = r.version + 1
"""
RECLASS = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
SET m.label = $label, m.importance = $importance, m.startingStrength = $startingStrength, m.confidence = $confidence,
    m.evergreen = $evergreen, m.keys = [key IN m.keys | CASE WHEN key = $from THEN $to ELSE key END],
    m.version = m.version + 1
WITH m
MATCH (c:Chunk {{memoryId: m.id}}) WHERE {visible("c")}
SET c.label = $label, c.keys = [key IN c.keys | CASE WHEN key = $from THEN $to ELSE key END]
"""
SLOT_MATES = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
MATCH (mate:Fact {{slotKey: f.slotKey}}) WHERE {visible("mate")} AND mate.standing IN ['CURRENT', 'SUPERSEDED']
RETURN mate.id AS id
"""
START_AT = f"""
MATCH (f:Fact {{id: $id}}) WHERE {visible("f")}
SET f.startingStrength = $strength
"""
LOCK_ENTITIES = f"""
MATCH (e:Entity) WHERE e.id IN $ids AND {visible("e")}
WITH e ORDER BY e.nameKey
SET e.lock = $lock
WITH e
RETURN e.id AS id, e.mergedInto AS mergedInto
"""
LINKED = f"""
MATCH (e:Entity {{id: $id}})<-[:MENTIONS|ABOUT]-(r:Memory|Fact) WHERE {visible("e")} AND {visible("r")}
RETURN r.id AS id ORDER BY id
"""
MERGED_BEFORE = f"""
MATCH (e:Entity) WHERE e.mergedInto IN $ids AND {visible("e")}
RETURN e.id AS id
"""
MERGE_ENTITIES = f"""
MATCH (heir:Entity {{id: $heir}}) WHERE {visible("heir")}
MATCH (gone:Entity {{id: $gone}}) WHERE {visible("gone")}
SET heir.aliases = coalesce(heir.aliases, [])
    + [name IN [gone.name] + coalesce(gone.aliases, []) WHERE NOT name IN coalesce(heir.aliases, []) + [heir.name]],
    gone.mergedInto = heir.id
WITH heir, gone
CALL (heir, gone) {{
  MATCH (before:Entity {{mergedInto: gone.id}}) WHERE {visible("before")}
  SET before.mergedInto = heir.id
}}
CALL (heir, gone) {{
  MATCH (m:Memory)-[old:MENTIONS]->(gone) WHERE {visible("m")}
  OPTIONAL MATCH (m)-[there:MENTIONS]->(heir)
  FOREACH (_ IN CASE WHEN there IS NULL THEN [1] ELSE [] END |
    CREATE (m)-[new:MENTIONS]->(heir) SET new = properties(old))
  DELETE old
}}
CALL (heir, gone) {{
  MATCH (f:Fact)-[old:ABOUT]->(gone) WHERE {visible("f")}
  OPTIONAL MATCH (f)-[there:ABOUT]->(heir)
  FOREACH (_ IN CASE WHEN there IS NULL THEN [1] ELSE [] END |
    CREATE (f)-[new:ABOUT]->(heir) SET new = properties(old))
  DELETE old
}}
"""
RETAG = f"""
MATCH (n:Memory|Fact) WHERE n.id IN $ids AND {visible("n")}
SET n.keys = CASE
  WHEN $to IN n.keys THEN [key IN n.keys WHERE key <> $from]
  ELSE [key IN n.keys | CASE WHEN key = $from THEN $to ELSE key END] END
WITH n
MATCH (c:Chunk {{memoryId: n.id}}) WHERE {visible("c")}
SET c.keys = CASE
  WHEN $to IN c.keys THEN [key IN c.keys WHERE key <> $from]
  ELSE [key IN c.keys | CASE WHEN key = $from THEN $to ELSE key END] END
"""


@dataclass(frozen=True, slots=True)
class Rival:
    """What may stand in the way of a record's return: the fact in its seat; and the hash its text is unique by."""

    seated: RecordId | None
    text_hash: str | None


@dataclass(frozen=True, slots=True)
class Class:
    """How much a memory counts, apart from what is counted of it."""

    label: str
    importance: float
    starting_strength: float | None
    confidence: float | None
    evergreen: bool


async def rival(tx: Tx, principal: Principal, id: RecordId) -> Rival:
    """Who took the place of a locked record meanwhile."""
    found = await row(tx, RIVAL, id=id, **access(principal))
    if found is None:
        return Rival(None, None)
    return Rival(RecordId(found["seated"]) if found["seated"] else None, found["textHash"])


async def validated(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> None:
    """Note that a locked record was found to hold."""
    await rows(tx, VALIDATED, id=id, at=ms(at), **access(principal))


async def reclass(tx: Tx, principal: Principal, id: RecordId, new: Class, *, old_label: str) -> None:
    """Give a locked memory another class, in all its chunks."""
    await rows(
        tx,
        RECLASS,
        id=id,
        label=new.label,
        importance=new.importance,
        startingStrength=new.starting_strength,
        confidence=new.confidence,
        evergreen=new.evergreen,
        **{"from": label_tag(old_label), "to": label_tag(new.label)},
        **access(principal),
    )


async def slot_mates(tx: Tx, principal: Principal, id: RecordId) -> list[RecordId]:
    """The facts that hold or held in the slot of a fact."""
    return [RecordId(row["id"]) for row in await rows(tx, SLOT_MATES, id=id, **access(principal))]


async def start_at(tx: Tx, principal: Principal, id: RecordId, *, strength: float) -> None:
    """Set what a promoted fact's strength starts from."""
    await rows(tx, START_AT, id=id, strength=strength, **access(principal))


async def lock_entities(tx: Tx, principal: Principal, ids: Sequence[str]) -> dict[str, str | None]:
    """Those of `ids` that `principal` may see, locked, each with the one it was merged into."""
    found = await rows(tx, LOCK_ENTITIES, ids=sorted(ids), lock="".join(sorted(ids)), **access(principal))
    return {row["id"]: row["mergedInto"] for row in found}


async def linked(tx: Tx, principal: Principal, id: str) -> list[RecordId]:
    """The records that mention an entity or are about it."""
    return [RecordId(row["id"]) for row in await rows(tx, LINKED, id=id, **access(principal))]


async def merged_before(tx: Tx, principal: Principal, ids: Sequence[str]) -> list[str]:
    """The entities that were merged into one of `ids` before."""
    return [row["id"] for row in await rows(tx, MERGED_BEFORE, ids=list(ids), **access(principal))]


async def merge_entities(
    tx: Tx, principal: Principal, *, heir: EntityId, gone: EntityId, record_ids: Sequence[RecordId]
) -> None:
    """Let `heir` stand for `gone` as well; `record_ids` are those linked to `gone`, locked."""
    await rows(tx, MERGE_ENTITIES, heir=heir, gone=gone, **access(principal))
    tags = {"from": entity_tag(gone), "to": entity_tag(heir)}
    await rows(tx, RETAG, ids=list(record_ids), **tags, **access(principal))
