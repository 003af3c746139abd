"""Erasing a record: what of it is where, and taking all of it away in one transaction.

A node without content stays for each erased record, so that no chain of supersession breaks; history stays in events,
which are connected to nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from graph_mem.core.changes import without
from graph_mem.core.model import Memory, OrganizationId, Principal, RecordId, token
from graph_mem.core.text import text_hash
from graph_mem.store import leases, standing
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.images import change_json, change_of
from graph_mem.store.remnants import Needles
from graph_mem.store.times import ms
from graph_mem.store.traces import TOLD
from graph_mem.store.visibility import PLACE, access, admitted, visible

SAME_TEXT = f"""
MATCH (m:Memory {{id: $id}}) WHERE {visible("m")}
OPTIONAL MATCH (m)-[:FOLDED_INTO*0..]->(root:Memory) WHERE NOT EXISTS {{ (root)-[:FOLDED_INTO]->() }}
OPTIONAL MATCH (copy:Memory)-[:FOLDED_INTO*0..]->(root) WHERE {visible("copy")} AND copy.standing <> 'ERASED'
OPTIONAL MATCH (waiting:Pending {{partition: root.partition}}) WHERE {visible("waiting")}
  AND waiting.scope = root.scope AND waiting.text = m.text
WITH collect(DISTINCT copy) + collect(DISTINCT waiting) AS copies
UNWIND copies AS copy
RETURN collect(DISTINCT copy {{.id, {PLACE}}}) AS nodes
"""
LOCK_PROPOSALS = """
MATCH (p:Proposal {org: $org}) WHERE any(id IN p.subjectIds + p.evidenceIds WHERE id IN $ids)
WITH p ORDER BY p.id
SET p.lock = p.id
"""
LOCK_JOBS = """
MATCH (j:Job) WHERE j.recordId IN $ids
WITH j ORDER BY j.id
SET j.lock = j.id
"""
# Taking a link away locks both its ends: whoever the erased are linked to is locked with them, in one order.
LOCK_RECORDS = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")}
OPTIONAL MATCH (r)-[:STATES|RELATES]-(beside:Memory|Fact)
WITH collect(r) + collect(beside) AS records
UNWIND records AS one
WITH DISTINCT one ORDER BY one.id
SET one.lock = one.id
"""
LOCK_ENTITIES = f"""
MATCH (r:Memory|Fact)-[:MENTIONS|ABOUT]->(e:Entity) WHERE r.id IN $ids AND {visible("r")}
OPTIONAL MATCH (merged:Entity {{mergedInto: e.id}})
WITH collect(e) + collect(merged) AS entities
UNWIND entities AS one
WITH DISTINCT one ORDER BY one.nameKey
SET one.lock = one.nameKey
"""
LOCK_SOURCES = f"""
MATCH (m:Memory) WHERE m.id IN $ids AND {visible("m")}
WITH DISTINCT m.sourceKey AS key ORDER BY key
MATCH (s:Source {{key: key}})
SET s.lock = key
"""
STATED = f"""
MATCH (m:Memory)-[:STATES]->(f:Fact) WHERE m.id IN $ids AND {visible("f")} AND f.standing <> 'ERASED'
WITH DISTINCT f
RETURN f {{.id, {PLACE}}} AS node,
  EXISTS {{ (other:Memory)-[:STATES]->(f) WHERE NOT other.id IN $ids AND other.standing <> 'ERASED' }} AS elsewhere
"""
NAMED = f"""
MATCH (r:Memory|Fact)-[:MENTIONS|ABOUT]->(e:Entity) WHERE r.id IN $ids AND {visible("e")}
WITH DISTINCT e
WHERE NOT EXISTS {{ (other:Memory|Fact)-[:MENTIONS|ABOUT]->(e) WHERE NOT other.id IN $ids }}
RETURN collect(e {{.id, {PLACE}}}) AS nodes
"""
COUNTS = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")}
WITH collect(r) AS records
RETURN size([r IN records WHERE r:Memory]) AS memories, size([r IN records WHERE r:Fact]) AS facts,
  COUNT {{ MATCH (c:Chunk) WHERE c.memoryId IN $ids }} AS chunks,
  COUNT {{ MATCH (v:Version) WHERE v.memoryId IN $ids }} AS versions,
  COUNT {{ MATCH (t:Trace) WHERE {TOLD} AND (any(id IN t.recordIds WHERE id IN $ids)
             OR (($only IS NULL OR t.by = $only)
               AND (t.query IN $exact OR any(n IN $needles WHERE t.query CONTAINS n)))) }} AS traces,
  COUNT {{ MATCH (a:RunTrace {{org: $org}}) WHERE {visible("a")} AND any(id IN a.recordIds WHERE id IN $ids)
             AND ($scopes IS NULL OR all(scope IN a.namedScopes WHERE scope IN $scopes)) }} AS runTraces,
  COUNT {{ MATCH (p:Proposal {{org: $org}}) WHERE {visible("p")} AND (any(id IN p.subjectIds WHERE id IN $ids)
             OR any(id IN p.evidenceIds WHERE id IN $ids)) }} AS proposals,
  COUNT {{ MATCH (s:Snapshot {{org: $org}})
           WHERE {visible("s")} AND any(id IN s.nodeIds WHERE id IN $ids) }} AS snapshots,
  COUNT {{ MATCH (j:Job) WHERE j.recordId IN $ids }} AS jobs,
  COUNT {{ MATCH (e:Event) WHERE e.recordId IN $ids }} AS events
"""
HOLLOW = f"""
MATCH (m:Memory) WHERE m.id IN $ids AND {visible("m")}
OPTIONAL MATCH (m)-[gone:MENTIONS|STATES|RELATES]-()
DELETE gone
WITH DISTINCT m
SET m = m {{.id, .org, .owner, .level, .clientId, .dealId, .partition, .scope, .kind, .label, .position, .processing,
  .sourceKind, .author, .importance, .trust, .createdAt, .freshAt, .validFrom, .validTo, .knownFrom, .knownTo,
  version: m.version + 1, title: CASE WHEN m.id IN $named THEN m.title END, standing: 'ERASED', erasedAt: $at,
  erasedBy: $by}}
"""
HOLLOW_FACTS = f"""
MATCH (f:Fact) WHERE f.id IN $ids AND {visible("f")}
OPTIONAL MATCH (f)-[gone:ABOUT|STATES|CURRENT|RELATES]-()
DELETE gone
WITH DISTINCT f, f.slotKey AS slot
SET f = f {{.id, .org, .owner, .level, .clientId, .dealId, .partition, .scope, .kind, .label, .author, .createdAt,
  .validFrom, .validTo, .knownFrom, .knownTo, version: f.version + 1, subject: '', relation: '', statement: '',
  standing: 'ERASED', erasedAt: $at, erasedBy: $by}}
WITH DISTINCT slot
MATCH (s:Slot {{key: slot}})
WHERE NOT EXISTS {{ MATCH (other:Fact {{slotKey: slot}}) }}
DETACH DELETE s
"""
DROP_CHUNKS = f"MATCH (c:Chunk) WHERE c.memoryId IN $ids AND {visible('c')} DETACH DELETE c"
DROP_VERSIONS = f"MATCH (v:Version) WHERE v.memoryId IN $ids AND {visible('v')} DETACH DELETE v"
DROP_ENTITIES = f"""
MATCH (e:Entity) WHERE (e.id IN $entities OR e.mergedInto IN $entities) AND {visible("e")}
  AND NOT EXISTS {{ (other:Memory|Fact)-[:MENTIONS|ABOUT]->(e) }}
DETACH DELETE e
"""
HUSH_LINKS = f"""
MATCH (r:Memory|Fact)-[x:SUPERSEDES]-() WHERE r.id IN $ids AND {visible("r")}
SET x.reason = null, x.correction = null
"""
HUSH_OTHER_LINKS = f"""
MATCH (r:Memory|Fact)-[x:SUPERSEDES|RELATES]->() WHERE {visible("r")} AND r.org = $org
  AND ($only IS NULL OR r.owner = $only) AND any(n IN $needles WHERE x.reason CONTAINS n OR x.correction CONTAINS n)
SET x.reason = null, x.correction = null
"""
HUSH_EVENTS = """
MATCH (e:Event) WHERE e.org = $org
  AND (e.recordId IN $ids OR (($only IS NULL OR e.owner = $only) AND any(n IN $needles WHERE e.detail CONTAINS n)))
SET e.detail = null
"""
HUSH_TRACES = """
MATCH (t:Trace {org: $org})
WHERE any(id IN t.recordIds WHERE id IN $ids)
  OR (($only IS NULL OR t.by = $only) AND (t.query IN $exact OR any(n IN $needles WHERE t.query CONTAINS n)))
SET t.query = null
"""
ERASED_SINCE = """
MATCH (e:Event {org: $org}) WHERE e.kind = 'erased' AND e.at >= $since
RETURN DISTINCT e.recordId AS id
"""
DROP_PROPOSALS = """
MATCH (p:Proposal {org: $org, state: 'PENDING'}) WHERE any(id IN p.subjectIds WHERE id IN $ids OR id IN $entities)
DELETE p
"""
HUSH_PROPOSALS = """
MATCH (p:Proposal {org: $org})
WHERE any(id IN p.subjectIds WHERE id IN $ids) OR any(id IN p.evidenceIds WHERE id IN $ids)
  OR (($only IS NULL OR p.owner = $only)
    AND any(n IN $needles WHERE p.reason CONTAINS n OR p.decisionReason CONTAINS n OR p.change CONTAINS n))
SET p.reason = '', p.decisionReason = null, p.signals = '{}',
    p.change = CASE WHEN any(id IN p.subjectIds WHERE id IN $ids) THEN '{}' ELSE p.change END,
    p.evidenceIds = [id IN p.evidenceIds WHERE NOT id IN $ids]
"""
SNAPSHOTS = """
MATCH (s:Snapshot {org: $org}) WHERE any(id IN s.nodeIds WHERE id IN $ids)
SET s.lock = s.proposalId
RETURN s.proposalId AS id, s.change AS change
"""
REDUCE_SNAPSHOT = """
MATCH (s:Snapshot {proposalId: $id})
SET s.change = $change, s.nodeIds = [id IN s.nodeIds WHERE NOT id IN $ids]
"""
DROP_SNAPSHOT = "MATCH (s:Snapshot {proposalId: $id}) DELETE s"
DROP_REHEARSALS = "MATCH (r:Rehearsal) WHERE r.recordId IN $ids DELETE r"
DROP_JOBS = "MATCH (j:Job) WHERE j.recordId IN $ids DELETE j"
DROP_IDEMPOTENCY = "MATCH (i:Idempotency {org: $org}) WHERE any(id IN $ids WHERE i.result CONTAINS id) DELETE i"
BAN = """
UNWIND $keys AS key
MERGE (t:Tombstone {key: key}) ON CREATE SET t.org = $org, t.at = $at
"""
BANNED = "MATCH (t:Tombstone) WHERE t.key IN $keys RETURN t.key AS key"
SECRETS = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")}
OPTIONAL MATCH (v:Version {{memoryId: r.id}})
WITH r, collect(v.text) AS former
RETURN r {{.id, {PLACE}, .title, .sourceKey, .partition, .scope,
  texts: [text IN [r.text, r.statement] + former WHERE text IS NOT NULL]}} AS node
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What erasing takes away: records with their copies, facts nobody else attests, entities nobody else names.

    `shared_fact_ids` stay, with one source fewer.
    """

    memory_ids: tuple[RecordId, ...]
    fact_ids: tuple[RecordId, ...]
    shared_fact_ids: tuple[RecordId, ...]
    entity_ids: tuple[str, ...]

    @property
    def ids(self) -> list[RecordId]:
        return [*self.memory_ids, *self.fact_ids]

    @property
    def touched(self) -> set[RecordId]:
        return {*self.ids, *self.shared_fact_ids}


@dataclass(frozen=True, slots=True)
class Secret:
    """The words of one record that must be nowhere afterwards, its name, and what it may be recognised by."""

    id: RecordId
    texts: tuple[str, ...]
    title: str | None
    bans: tuple[str, ...]


async def plan(tx: Tx, principal: Principal, id: RecordId) -> Plan:
    """What erasing the record takes away: every copy that was folded with it is the same text."""
    if id.startswith("fact_"):
        memory_ids, stated = [], [(id, False)]
    else:
        found = await row(tx, SAME_TEXT, id=id, **access(principal))
        memory_ids = sorted(_ids(principal, found))
        facts = await rows(tx, STATED, ids=memory_ids, **access(principal))
        elsewhere_too = {one["node"]["id"] for one in facts if one["elsewhere"]}
        stated = sorted(
            admitted(
                principal,
                (one["node"] for one in facts),
                lambda node: (RecordId(node["id"]), node["id"] in elsewhere_too),
            )
        )
    gone = [fact for fact, elsewhere in stated if not elsewhere]
    entities = await row(tx, NAMED, ids=[*memory_ids, *gone], **access(principal))
    return Plan(
        memory_ids=tuple(memory_ids),
        fact_ids=tuple(gone),
        shared_fact_ids=tuple(fact for fact, elsewhere in stated if elsewhere),
        entity_ids=tuple(sorted(_ids(principal, entities))),
    )


def _ids(principal: Principal, found: Row | None) -> list[RecordId]:
    return admitted(principal, found["nodes"] if found else (), lambda node: RecordId(node["id"]))


async def lock(tx: Tx, principal: Principal, id: RecordId, *, at: datetime) -> Plan | None:
    """The plan, with all that it names locked to the end of the transaction; None if it has grown meanwhile: again.

    First the turn of the organization, which trace writers take too, then jobs, proposals, slots, records, entities
    in order of their keys, sources: whoever else holds some of these took them in that order.
    """
    await leases.last_erasures(tx, [principal.org_id], at=at)
    wanted = await plan(tx, principal, id)
    await rows(tx, LOCK_JOBS, ids=wanted.ids)
    await rows(tx, LOCK_PROPOSALS, ids=wanted.ids, org=principal.org_id)
    await standing.lock_slots(tx, principal, wanted.touched)
    for statement in _LOCKS:
        await rows(tx, statement, ids=sorted(wanted.touched), **access(principal))
    locked = await plan(tx, principal, id)
    return locked if locked.touched <= wanted.touched else None


async def secrets(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> list[Secret]:
    """What the records say, in every version."""
    found = await rows(tx, SECRETS, ids=sorted(ids), **access(principal))
    return admitted(principal, (one["node"] for one in found), _secret)


def _secret(node: Row) -> Secret:
    known = (*map(text_hash, node["texts"]), node["sourceKey"])
    bans = (ban_key(node["partition"], node["scope"], key) for key in known if key is not None)
    return Secret(RecordId(node["id"]), tuple(node["texts"]), node["title"], tuple(bans))


async def counts(tx: Tx, principal: Principal, plan: Plan, needles: Needles) -> dict[str, int]:
    """How many nodes of each kind erasing touches, of those that `principal` may see: it touches all."""
    found = await row(tx, COUNTS, **_given(principal, plan, needles))
    assert found is not None  # noqa: S101  an aggregation gives one row
    return {
        **{name: int(found[name]) for name in found.keys()},  # noqa: SIM118  a Record is no mapping of names
        "sharedFacts": len(plan.shared_fact_ids),
        "entities": len(plan.entity_ids),
    }


async def erase(
    tx: Tx,
    principal: Principal,
    plan: Plan,
    needles: Needles,
    *,
    named: Collection[RecordId],
    bans: Collection[str],
    at: datetime,
) -> None:
    """Carry out `plan` for locked records. `named` keep their title; `bans` refuse the same again."""
    given = {**_given(principal, plan, needles), "at": ms(at), "by": principal.user_id, "named": sorted(named)}
    for statement in _STEPS:
        await rows(tx, statement, **given)
    await _reduce_snapshots(tx, principal.org_id, plan)
    await rows(tx, BAN, keys=sorted(bans), org=principal.org_id, at=ms(at))


_LOCKS: tuple[LiteralString, ...] = (LOCK_RECORDS, LOCK_ENTITIES, LOCK_SOURCES)
_STEPS: tuple[LiteralString, ...] = (
    HUSH_LINKS,
    HOLLOW,
    HOLLOW_FACTS,
    DROP_CHUNKS,
    DROP_VERSIONS,
    DROP_ENTITIES,
    HUSH_OTHER_LINKS,
    HUSH_EVENTS,
    HUSH_TRACES,
    DROP_PROPOSALS,
    HUSH_PROPOSALS,
    DROP_REHEARSALS,
    DROP_JOBS,
    DROP_IDEMPOTENCY,
)


async def _reduce_snapshots(tx: Tx, org_id: OrganizationId, plan: Plan) -> None:
    """Take the erased out of what decisions remember; the rest can still be undone."""
    gone = {*plan.ids, *plan.entity_ids}
    for found in await rows(tx, SNAPSHOTS, org=org_id, ids=sorted(gone)):
        left = without(change_of(found["change"]), gone)
        if left:
            await rows(tx, REDUCE_SNAPSHOT, id=found["id"], change=change_json(left), ids=sorted(gone))
        else:
            await rows(tx, DROP_SNAPSHOT, id=found["id"])


async def erased_since(tx: Tx, org_id: OrganizationId, since: datetime) -> list[RecordId]:
    """What was erased from `since` on."""
    return [RecordId(found["id"]) for found in await rows(tx, ERASED_SINCE, org=org_id, since=ms(since))]


async def banned(tx: Tx, memories: Sequence[Memory]) -> set[RecordId]:
    """Those of `memories` whose text or source was erased there under a policy that refuses it."""
    keys = {key: memory.id for memory in memories for key in _bans(memory)}
    return {keys[found["key"]] for found in await rows(tx, BANNED, keys=list(keys))}


def _bans(memory: Memory) -> list[str]:
    place, known = memory.place, (text_hash(memory.text or ""), memory.source.token(memory.place))
    return [ban_key(place.partition_token, place.scope_token, one) for one in known if one is not None]


def ban_key(partition: str, scope: str, what: str) -> str:
    """What is kept of an erased text or source where the same is to be refused: no words, one hash of a hash."""
    return token("erased", partition, scope, what)


def _given(principal: Principal, plan: Plan, needles: Needles) -> Mapping[str, object]:
    return {
        **access(principal),
        "org": principal.org_id,
        "user": principal.user_id,
        "ids": plan.ids,
        "entities": list(plan.entity_ids),
        "exact": list(needles.exact),
        "needles": list(needles.parts),
        "only": needles.only,
    }
