"""Accounts of searches: one node for each, which is also the access log's line.

A trace names partitions and scopes by their index keys: those it searched, and those of the records that it found or
counted, on whichever page. Its maker may see it, and whoever may see all of that, so that its counts tell nobody of
what is another's alone. Erasing a record takes the query out; ids are no content.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString

from graph_mem.core.model import ClientId, DealId, OrganizationId, Page, Principal, RecordId, Scope, ScopeLevel, UserId
from graph_mem.core.retrieval import (
    Leg,
    LegState,
    RetrievalConfig,
    RetrievalMode,
    Score,
    Tier,
    Trace,
    TracedHit,
)
from graph_mem.store import leases
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import access, security_events

_MAX_KINDS = 64

CREATE = """
UNWIND $traces AS new
WITH new, EXISTS { MATCH (r:Memory|Fact) WHERE r.id IN new.recordIds AND r.standing = 'ERASED' } AS gone
MERGE (t:Trace {id: new.id})
  ON CREATE SET t:AccessEntry, t += new, t.query = CASE WHEN gone THEN null ELSE new.query END
  ON MATCH SET t.recordIds = new.recordIds, t.payload = new.payload, t.everywhere = t.everywhere OR new.everywhere,
    t.partitions = t.partitions + [one IN new.partitions WHERE NOT one IN t.partitions],
    t.scopes = t.scopes + [one IN new.scopes WHERE NOT one IN t.scopes],
    t.served = CASE WHEN new.served > t.served THEN new.served ELSE t.served END
"""
STRENGTHEN = """
UNWIND $records AS one
MATCH (r:Memory|Fact {id: one.id}) WHERE r.partition = one.partition AND r.standing <> 'ERASED'
SET r.retrievals = coalesce(r.retrievals, 0) + one.times,
    r.lastRetrievedAt = CASE WHEN one.at > coalesce(r.lastRetrievedAt, 0) THEN one.at ELSE r.lastRetrievedAt END,
    r.queryKinds = (coalesce(r.queryKinds, []) +
      [kind IN one.kinds WHERE NOT kind IN coalesce(r.queryKinds, [])])[..$most]
"""
TOLD: LiteralString = """
  t.org = $org AND (t.by = $user OR (
    all(partition IN t.partitions WHERE partition IN $partitions)
    AND ($scopes IS NULL OR (NOT t.everywhere AND all(scope IN t.scopes WHERE scope IN $scopes)))))"""
"""The predicate of statements over traces `t`: the caller's own, and those that name nothing hidden from the caller."""
BY_ID = f"MATCH (t:Trace {{id: $id}}) WHERE {TOLD} RETURN t {{.*}} AS node"
PAGE = f"""
MATCH (t:Trace) WHERE t.org = $org AND t.at >= $from AND t.at < $to AND {TOLD}
  AND ($modes IS NULL OR t.mode IN $modes)
  AND ($beforeAt IS NULL OR t.at < $beforeAt OR (t.at = $beforeAt AND t.id < $beforeId))
RETURN t {{.*}} AS node ORDER BY t.at DESC, t.id DESC LIMIT $limit
"""
RETURNED = f"""
MATCH (t:Trace) WHERE {TOLD} AND t.counts
UNWIND [id IN t.recordIds[..t.served] WHERE id IN $ids] AS id
WITH id, t ORDER BY t.at DESC, t.id DESC
WITH id, collect(t {{.id, .org, .by, .at, .partitions, .scopes, .everywhere}})[..$most] AS nodes
UNWIND nodes AS node
RETURN id, node
"""
ACCESS = """
MATCH (t:AccessEntry) WHERE t.org = $org AND t.at >= $from AND t.at < $to AND ($all OR t.by = $user)
  AND ($modes IS NULL OR t.mode IN $modes) AND ($by IS NULL OR t.by = $by)
  AND ($beforeAt IS NULL OR t.at < $beforeAt OR (t.at = $beforeAt AND t.id < $beforeId))
RETURN t {.id, .org, .at, .by, .action, .mode, .recordId, .allowed, traceId: CASE WHEN t:Trace THEN t.id END} AS node
ORDER BY t.at DESC, t.id DESC LIMIT $limit
"""
LOG_ACCESS = """
UNWIND $entries AS new
CREATE (t:AccessEntry) SET t = new
"""
PRUNE = """
MATCH (t:AccessEntry|RunTrace) WHERE t.org = $org AND t.at < $before
WITH t LIMIT $limit
DETACH DELETE t
RETURN count(*) AS pruned
"""

_EVER = (-(2**62), 2**62)


@dataclass(frozen=True, slots=True)
class Saved:
    """A trace to write, with what it names. `served` is how much of the ranking was handed out, `counts` whether that
    strengthened anything."""

    trace: Trace
    org_id: OrganizationId
    partitions: tuple[str, ...]
    scopes: tuple[str, ...]
    everywhere: bool
    served: int
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Strengthened:
    """A record that searches returned: how often since the last write, by which kinds of query, when last."""

    id: RecordId
    partition: str
    times: int
    kinds: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One line of the access log."""

    id: str
    at: datetime
    by: UserId
    action: str
    allowed: bool = True
    mode: RetrievalMode | None = None
    record_id: str | None = None
    trace_id: str | None = None


async def write(tx: Tx, saved: Sequence[Saved], strengthened: Sequence[Strengthened]) -> None:
    """Store traces, or how much further they were read, and strengthen what they returned.

    A trace that waited while something was erased comes without its query, which may quote that.
    """
    if saved:
        erased = await leases.last_erasures(tx, {one.org_id for one in saved})
        made = [_properties(one, hushed=ms(one.trace.at) < erased[one.org_id]) for one in saved]
        await rows(tx, CREATE, traces=made)
    if strengthened:
        records = [
            {"id": one.id, "partition": one.partition, "times": one.times, "kinds": list(one.kinds), "at": ms(one.at)}
            for one in sorted(strengthened, key=lambda one: one.id)
        ]
        await rows(tx, STRENGTHEN, records=records, most=_MAX_KINDS)


async def by_id(tx: Tx, principal: Principal, id: str) -> tuple[Trace, int] | None:
    """A trace that `principal` may see, and how much of its ranking was handed out."""
    found = await row(tx, BY_ID, id=id, **_caller(principal))
    nodes = _told(principal, [found["node"]] if found else [])
    return (trace_of(nodes[0]), nodes[0]["served"]) if nodes else None


@dataclass(frozen=True, slots=True)
class Between:
    """Which lines of a log: from `start`, before `end`, of these modes, by this user; None is any."""

    start: datetime | None = None
    end: datetime | None = None
    modes: tuple[RetrievalMode, ...] | None = None
    by: UserId | None = None

    def parameters(self, page: Page) -> dict[str, Any]:
        before_at, before_id = page.after or (None, None)
        return {
            "from": _EVER[0] if self.start is None else ms(self.start),
            "to": _EVER[1] if self.end is None else ms(self.end),
            "modes": None if self.modes is None else [mode.value for mode in self.modes],
            "beforeAt": before_at,
            "beforeId": before_id,
            "limit": page.first + 1,
        }


async def page(tx: Tx, principal: Principal, between: Between, page: Page) -> list[tuple[Trace, int]]:
    """Traces, newest first, each with how much was handed out; one more than `page.first` when there are more."""
    found = await rows(tx, PAGE, **_caller(principal), **between.parameters(page))
    return [(trace_of(node), node["served"]) for node in _told(principal, (one["node"] for one in found))]


async def returning(
    tx: Tx, principal: Principal, ids: Collection[RecordId], *, most: int
) -> dict[RecordId, list[tuple[datetime, str]]]:
    """For each record the newest searches that returned it and were counted for it: when, and the id of the trace."""
    found = await rows(tx, RETURNED, ids=list(ids), most=most, **_caller(principal))
    of: dict[RecordId, list[tuple[datetime, str]]] = {id: [] for id in ids}
    for one in found:
        of[RecordId(one["id"])] += [(instant(node["at"]), node["id"]) for node in _told(principal, [one["node"]])]
    return of


async def access_log(tx: Tx, principal: Principal, between: Between, page: Page) -> list[AccessEntry]:
    """Lines newest first: all of the organization for owners and admins, else one's own; one more if there are more."""
    found = await rows(
        tx,
        ACCESS,
        org=principal.org_id,
        user=principal.user_id,
        all=principal.role.sees_all_shared,
        by=between.by,
        **between.parameters(page),
    )
    lines = (one["node"] for one in found)
    return [_entry(line) for line in lines if _checked(principal, line, principal.role.sees_all_shared)]


async def log_access(tx: Tx, org_id: OrganizationId, entries: Sequence[AccessEntry]) -> None:
    """Add lines that are no search."""
    await rows(tx, LOG_ACCESS, entries=[_line(org_id, entry) for entry in entries])


async def prune(tx: Tx, org_id: OrganizationId, *, before: datetime, limit: int = 1_000) -> int:
    """Delete up to `limit` lines older than `before`; returns how many."""
    found = await row(tx, PRUNE, org=org_id, before=ms(before), limit=limit)
    return found["pruned"] if found else 0


def _told(principal: Principal, nodes: Iterable[Row]) -> list[Row]:
    """The traces that pass the second layer: the caller's own, and those that name nothing the caller may not read."""
    given = access(principal)

    def named(node: Row) -> bool:
        scopes = given["scopes"] is None or (not node["everywhere"] and set(node["scopes"]) <= set(given["scopes"]))
        return scopes and set(node["partitions"]) <= set(given["partitions"])

    return [node for node in nodes if _checked(principal, node, named(node))]


def _checked(principal: Principal, node: Row, others: bool) -> bool:
    """Whether a line may be shown: one of the caller's organization, and the caller's own unless `others` may be."""
    if node["org"] == principal.org_id and (others or node["by"] == principal.user_id):
        return True
    security_events.record(principal, str(node["id"]))
    return False


def _caller(principal: Principal) -> dict[str, Any]:
    return {**access(principal), "org": principal.org_id, "user": principal.user_id}


def _line(org_id: OrganizationId, entry: AccessEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "org": org_id,
        "by": entry.by,
        "at": ms(entry.at),
        "action": entry.action,
        "recordId": entry.record_id,
        "allowed": entry.allowed,
    }


def _entry(node: Row) -> AccessEntry:
    return AccessEntry(
        id=node["id"],
        at=instant(node["at"]),
        by=UserId(node["by"]),
        action=node["action"],
        allowed=node["allowed"],
        mode=RetrievalMode(node["mode"]) if node["mode"] else None,
        record_id=node["recordId"],
        trace_id=node["traceId"],
    )


def _properties(saved: Saved, *, hushed: bool) -> dict[str, Any]:
    trace = saved.trace
    return {
        "id": trace.id,
        "org": saved.org_id,
        "by": trace.by,
        "at": ms(trace.at),
        "action": "search",
        "allowed": True,
        "mode": trace.mode.value,
        "query": None if hushed else trace.query,
        "recordIds": [hit.record_id for hit in trace.hits],
        "partitions": list(saved.partitions),
        "scopes": list(saved.scopes),
        "everywhere": saved.everywhere,
        "served": saved.served,
        "counts": saved.counts,
        "payload": json.dumps(_payload(trace), separators=(",", ":")),
    }


def _payload(trace: Trace) -> dict[str, Any]:
    return {
        "reason": trace.degraded_reason,
        "legs": [[leg.name, leg.state, leg.reason, leg.candidates, _short(leg.took_ms)] for leg in trace.legs],
        "scopes": None
        if trace.scopes is None
        else [[scope.level, scope.client_id, scope.deal_id] for scope in trace.scopes],
        "config": trace.config.overrides(RetrievalConfig()),
        "configVersion": trace.config.version,
        "counts": [trace.fused_candidates, trace.below_floor, trace.passed_over, trace.pending],
        "diversified": trace.diversified,
        "tookMs": _short(trace.took_ms),
        "notes": list(trace.notes),
        "hits": [[hit.rank, hit.tier, *map(_short, _numbers(hit.score))] for hit in trace.hits],
    }


def _numbers(score: Score) -> tuple[float | None, ...]:
    return (
        score.final,
        score.fused,
        score.strength,
        score.lexical,
        score.vector,
        score.fade_part,
        score.mmr,
        score.neighbour,
        score.participant,
    )


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def trace_of(node: Row) -> Trace:
    """The trace that a Trace node holds."""
    payload: Mapping[str, Any] = json.loads(node["payload"])
    fused, below, passed, pending = payload["counts"]
    return Trace(
        id=node["id"],
        at=instant(node["at"]),
        by=UserId(node["by"]),
        query=node.get("query"),
        mode=RetrievalMode(node["mode"]),
        degraded_reason=payload["reason"],
        legs=tuple(Leg(name, LegState(state), *rest) for name, state, *rest in payload["legs"]),
        scopes=None if payload["scopes"] is None else tuple(_scope(*one) for one in payload["scopes"]),
        config=_config(payload),
        fused_candidates=fused,
        below_floor=below,
        passed_over=passed,
        pending=pending,
        diversified=payload["diversified"],
        took_ms=payload["tookMs"],
        hits=tuple(
            TracedHit(rank, RecordId(id), Tier(tier), Score(*numbers))
            for id, (rank, tier, *numbers) in zip(node.get("recordIds") or (), payload["hits"], strict=False)
        ),
        notes=tuple(payload["notes"]),
    )


def _config(payload: Mapping[str, Any]) -> RetrievalConfig:
    made = RetrievalConfig().changed(payload["config"])
    return replace(made, version=payload["configVersion"])


def _scope(level: str, client: str | None, deal: str | None) -> Scope:
    return Scope(ScopeLevel(level), ClientId(client) if client else None, DealId(deal) if deal else None)
