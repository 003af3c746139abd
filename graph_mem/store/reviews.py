"""The review queue: proposals, the changes that kept ones made, and what people decided by shape.

A proposal is connected to nothing: search, context, centrality and supersession cannot meet it on their way.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from graph_mem.core.changes import Change, Kept
from graph_mem.core.model import Page, Place, Principal, UserId, place_of
from graph_mem.core.proposals import Proposal, ProposalKind, ProposalState, Step, TrustCount
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.images import change_json, change_of
from graph_mem.store.times import instant, instant_or_none, ms
from graph_mem.store.visibility import (
    PLACE,
    access,
    admit,
    admitted,
    counted,
    per_place,
    place_properties,
    visible,
)

_COLUMNS: LiteralString = (
    "p {.id, .key, .org, .owner, .level, .clientId, .dealId, .kind, .shape, .state, .subjectIds, .evidenceIds,"
    " .signals, .score, .gate, .reason, .change, .proposedAt, .proposedBy, .decidedAt, .decidedBy, .decisionReason,"
    " .undone, .version, .changedAt}"
)

FILE = """
UNWIND $proposals AS new
MERGE (p:Proposal {key: new.key})
  ON CREATE SET p += new.properties, p.changedAt = datetime.realtime().epochMillis
WITH p, new WHERE p.id = new.properties.id
RETURN p.id AS id
"""
BY_ID = f"MATCH (p:Proposal) WHERE p.id IN $ids AND {visible('p')} RETURN {_COLUMNS} AS node"
LOCK = f"""
MATCH (p:Proposal {{id: $id}}) WHERE {visible("p")}
SET p.lock = $id
WITH p
RETURN {_COLUMNS} AS node
"""
QUEUE = f"""
MATCH (p:Proposal) WHERE {visible("p")} AND p.state IN $states AND ($kinds IS NULL OR p.kind IN $kinds)
  AND ($after IS NULL OR p.id > $after)
WITH p ORDER BY p.id LIMIT $limit
RETURN {_COLUMNS} AS node
"""
COUNT = f"""
MATCH (p:Proposal) WHERE {visible("p")} AND p.state IN $states AND ($kinds IS NULL OR p.kind IN $kinds)
{per_place("p")}
"""
CHANGED = f"""
MATCH (p:Proposal) WHERE {visible("p")} AND p.changedAt >= $since AND ($kinds IS NULL OR p.kind IN $kinds)
WITH p ORDER BY p.changedAt, p.id LIMIT 500
RETURN {_COLUMNS} AS node
"""
DECIDE = f"""
MATCH (p:Proposal {{id: $id}}) WHERE {visible("p")}
SET p.state = $state, p.undone = $undone, p.decidedAt = $at, p.decidedBy = $by, p.decisionReason = $reason,
    p.version = p.version + 1, p.changedAt = datetime.realtime().epochMillis
WITH p
RETURN {_COLUMNS} AS node
"""
KNOWN = "MATCH (p:Proposal) WHERE p.key IN $keys RETURN p.key AS key"
OPEN = f"""
MATCH (p:Proposal) WHERE {visible("p")} AND p.state = 'PENDING'
UNWIND p.subjectIds AS subject
RETURN p.kind AS kind, collect(DISTINCT subject) AS subjects
"""
WITHDRAW = f"""
MATCH (p:Proposal) WHERE {visible("p")} AND p.state = 'PENDING' AND p.kind <> 'MERGE_ENTITIES'
  AND EXISTS {{ MATCH (r:Memory|Fact {{id: p.subjectIds[0]}}) WHERE {visible("r")}
    AND r.standing <> CASE p.kind WHEN 'PROMOTE_FACT' THEN 'PROVISIONAL' ELSE 'CURRENT' END }}
DELETE p
RETURN count(*) AS withdrawn
"""
WITHDRAW_MERGES = f"""
MATCH (p:Proposal) WHERE {visible("p")} AND p.state = 'PENDING' AND p.kind = 'MERGE_ENTITIES'
  AND any(id IN p.subjectIds WHERE NOT EXISTS {{
    MATCH (e:Entity {{id: id}}) WHERE e.mergedInto IS NULL AND {visible("e")} }})
DELETE p
RETURN count(*) AS withdrawn
"""
TRUST = f"""
MATCH (p:Proposal) WHERE {visible("p")}
  AND (p.state IN ['KEPT', 'REVERTED'] OR p.undone) AND coalesce(p.owner, '') = coalesce($owner, '')
RETURN p {{.kind, .shape, {PLACE}}} AS node, sum(CASE WHEN p.state = 'KEPT' THEN 1 ELSE 0 END) AS kept,
  sum(CASE WHEN p.state = 'REVERTED' OR p.undone THEN 1 ELSE 0 END) AS reverted
"""
REMEMBER = """
MERGE (s:Snapshot {proposalId: $proposal})
SET s += $place, s.change = $change, s.nodeIds = $nodes, s.seq = $seq
"""
RECALL = f"""
MATCH (s:Snapshot {{proposalId: $proposal}}) WHERE {visible("s")}
RETURN s {{.change, .seq, {PLACE}}} AS node
"""
LATER = f"""
MATCH (s:Snapshot) WHERE {visible("s")} AND s.seq > $seq AND any(id IN $nodes WHERE id IN s.nodeIds)
SET s.lock = s.proposalId
RETURN s {{id: s.proposalId, .change, .seq, {PLACE}}} AS node ORDER BY node.seq
"""
REWRITE = f"""
UNWIND $changes AS one
MATCH (s:Snapshot {{proposalId: one.id}}) WHERE {visible("s")}
SET s.change = one.change
"""
FORGET = f"MATCH (s:Snapshot {{proposalId: $proposal}}) WHERE {visible('s')} DELETE s"
NEXT = """
MERGE (l:Lease {name: $name})
SET l.lock = $name
SET l.seq = coalesce(l.seq, 0) + 1
RETURN l.seq AS seq
"""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which proposals a list holds; `kinds` None for all."""

    kinds: tuple[ProposalKind, ...] | None
    states: tuple[ProposalState, ...]

    def parameters(self, principal: Principal) -> dict[str, Any]:
        return {
            **access(principal),
            "kinds": None if self.kinds is None else [kind.value for kind in self.kinds],
            "states": [state.value for state in self.states],
        }


async def file(tx: Tx, proposals: Sequence[Proposal]) -> list[str]:
    """Store those of `proposals` that were never filed before; returns their ids."""
    given = [{"key": one.key, "properties": _properties(one)} for one in sorted(proposals, key=lambda one: one.key)]
    return [found["id"] for found in await rows(tx, FILE, proposals=given)]


async def by_ids(tx: Tx, principal: Principal, ids: Collection[str]) -> list[Proposal]:
    """The proposals among `ids` that `principal` may see, in no order."""
    found = await rows(tx, BY_ID, ids=list(ids), **access(principal))
    return admitted(principal, (row["node"] for row in found), _proposal)


async def lock(tx: Tx, principal: Principal, id: str) -> Proposal | None:
    """The proposal, locked until the transaction ends."""
    found = await rows(tx, LOCK, id=id, **access(principal))
    return next(iter(admitted(principal, (row["node"] for row in found), _proposal)), None)


async def page(tx: Tx, principal: Principal, filter: Filter, page: Page) -> list[Proposal]:
    """Oldest first; one more than `page.first` when there are more. Page key: (id,)."""
    after = page.after[0] if page.after else None
    found = await rows(tx, QUEUE, after=after, limit=page.first + 1, **filter.parameters(principal))
    return admitted(principal, (row["node"] for row in found), _proposal)


async def count(tx: Tx, principal: Principal, filter: Filter) -> int:
    """How many proposals the list holds in all."""
    return counted(principal, await rows(tx, COUNT, **filter.parameters(principal)), "a count of proposals")


async def changed(
    tx: Tx, principal: Principal, *, kinds: tuple[ProposalKind, ...] | None, since: datetime
) -> list[tuple[Proposal, datetime]]:
    """Proposals filed or decided at `since` or later, with when, oldest change first."""
    given = Filter(kinds, ()).parameters(principal)
    found = await rows(tx, CHANGED, since=ms(since), **given)
    return admitted(
        principal, (row["node"] for row in found), lambda node: (_proposal(node), instant(node["changedAt"]))
    )


async def decide(
    tx: Tx, principal: Principal, id: str, step: Step, *, by: UserId, at: datetime, reason: str | None
) -> Proposal:
    """Bring a locked proposal to where `step` leads."""
    found = await row(
        tx,
        DECIDE,
        id=id,
        state=step.state.value,
        undone=step.undone,
        at=ms(at),
        by=by,
        reason=reason,
        **access(principal),
    )
    assert found is not None  # noqa: S101  the caller holds its lock
    return admitted(principal, [found["node"]], _proposal)[0]


async def known(tx: Tx, keys: Collection[str]) -> set[str]:
    """Those of `keys` that were filed before, whatever was decided."""
    return {found["key"] for found in await rows(tx, KNOWN, keys=list(keys))}


async def open_subjects(tx: Tx, principal: Principal) -> dict[ProposalKind, frozenset[str]]:
    """What pending proposals are about, by kind."""
    found = await rows(tx, OPEN, **access(principal))
    return {ProposalKind(row["kind"]): frozenset(row["subjects"]) for row in found}


async def withdraw(tx: Tx, principal: Principal) -> int:
    """Remove pending proposals whose subjects moved on, which nobody could keep any more; returns how many."""
    records = await row(tx, WITHDRAW, **access(principal))
    merges = await row(tx, WITHDRAW_MERGES, **access(principal))
    return sum(found["withdrawn"] for found in (records, merges) if found)


async def trust(tx: Tx, principal: Principal, *, owner_id: UserId | None) -> list[TrustCount]:
    """What people decided so far, by shape: on shared records, or on those of `owner_id`."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for found in await rows(tx, TRUST, owner=owner_id, **access(principal)):
        node = found["node"]
        if admit(principal, place_of(node), "a count of decisions"):
            shape = (node["kind"], node["shape"])
            kept, reverted = sums.get(shape, (0, 0))
            sums[shape] = kept + found["kept"], reverted + found["reverted"]
    return [TrustCount(ProposalKind(kind), shape, *counts) for (kind, shape), counts in sorted(sums.items())]


async def remember(tx: Tx, place: Place, proposal_id: str, change: Change) -> None:
    """Store what keeping a proposal changed, after everything that was kept before in its partition."""
    found = await row(tx, NEXT, name=f"decisions {place.partition_token}")
    await rows(
        tx,
        REMEMBER,
        proposal=proposal_id,
        place=place_properties(place),
        change=change_json(change),
        nodes=_node_ids(change),
        seq=found["seq"] if found else 0,
    )


async def recall(tx: Tx, principal: Principal, proposal_id: str) -> tuple[Change, tuple[Kept, ...]] | None:
    """What keeping a proposal changed, and what decisions after it that still stand did to the same nodes."""
    found = await row(tx, RECALL, proposal=proposal_id, **access(principal))
    if found is None or not admit(principal, place_of(found["node"]), proposal_id):
        return None
    change = change_of(found["node"]["change"])
    later = await rows(tx, LATER, seq=found["node"]["seq"], nodes=_node_ids(change), **access(principal))
    nodes = (one["node"] for one in later)
    return change, tuple(admitted(principal, nodes, lambda node: Kept(node["id"], change_of(node["change"]))))


async def rewrite(tx: Tx, principal: Principal, changes: Sequence[Kept]) -> None:
    """Replace what later decisions remember: an earlier one they stood on was taken back."""
    given = [{"id": one.id, "change": change_json(one.change)} for one in changes]
    await rows(tx, REWRITE, changes=given, **access(principal))


async def forget(tx: Tx, principal: Principal, proposal_id: str) -> None:
    """Remove what keeping a proposal changed: it has been taken back."""
    await rows(tx, FORGET, proposal=proposal_id, **access(principal))


def _node_ids(change: Change) -> list[str]:
    nodes = {c.node.id for c in change.properties} | {c.node.id for c in change.sets}
    ends = {end.id for c in change.edges for end in (c.edge.start, c.edge.end)}
    return sorted(nodes | ends)


def _properties(one: Proposal) -> dict[str, Any]:
    return {
        **place_properties(one.place),
        "id": one.id,
        "kind": one.kind.value,
        "shape": one.shape,
        "state": one.state.value,
        "subjectIds": list(one.subject_ids),
        "evidenceIds": list(one.evidence_ids),
        "signals": json.dumps(dict(one.signals), sort_keys=True),
        "score": one.score,
        "gate": one.gate,
        "reason": one.reason,
        "change": json.dumps(dict(one.change), ensure_ascii=False, sort_keys=True),
        "proposedAt": ms(one.proposed_at),
        "proposedBy": one.proposed_by,
        "undone": one.undone,
        "version": one.version,
    }


def _proposal(node: Row) -> Proposal:
    return Proposal(
        id=node["id"],
        key=node["key"],
        place=place_of(node),
        kind=ProposalKind(node["kind"]),
        shape=node["shape"],
        state=ProposalState(node["state"]),
        subject_ids=tuple(node["subjectIds"]),
        evidence_ids=tuple(node.get("evidenceIds") or ()),
        signals=json.loads(node.get("signals") or "{}"),
        score=node["score"],
        gate=node["gate"],
        reason=node.get("reason") or "",
        proposed_at=instant(node["proposedAt"]),
        proposed_by=UserId(node["proposedBy"]),
        change=json.loads(node.get("change") or "{}"),
        decided_at=instant_or_none(node.get("decidedAt")),
        decided_by=UserId(node["decidedBy"]) if node.get("decidedBy") else None,
        decision_reason=node.get("decisionReason"),
        undone=bool(node.get("undone")),
        version=node["version"],
    )
