"""Run traces: what each context held, by version and digest, never by its words."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graph_mem.core.canon import Absence, AbsentPin, Pin
from graph_mem.core.context import Cut, PinText, ShownPin, digest
from graph_mem.core.model import (
    ClientId,
    DealId,
    OrganizationId,
    Place,
    Principal,
    RecordId,
    Scope,
    ScopeLevel,
    SourceKind,
    UserId,
    place_of,
    token,
)
from graph_mem.core.runs import Held, RunTrace, VersionRef
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import PLACE, access, admit, place_properties, visible

CREATE = "CREATE (t:RunTrace) SET t = $properties"
OF_RUN = f"""
MATCH (t:RunTrace {{runKey: $runKey}}) WHERE {visible("t")}
  AND ($scopes IS NULL OR all(scope IN t.namedScopes WHERE scope IN $scopes))
RETURN t {{.id, .org, .owner, .level, .clientId, .dealId, .at, .by, .payload}} AS node
ORDER BY t.by = $user DESC, t.at DESC, t.id DESC LIMIT 1
"""
BY_ID = f"""
MATCH (t:RunTrace {{id: $id}}) WHERE {visible("t")}
  AND ($scopes IS NULL OR all(scope IN t.namedScopes WHERE scope IN $scopes))
RETURN t {{.id, .org, .owner, .level, .clientId, .dealId, .at, .by, .payload}} AS node
"""
HELD = f"""
MATCH (t:RunTrace {{runKey: $runKey}}) WHERE {visible("t")} AND t.by = $user AND $hash IN t.heldHashes
WITH t ORDER BY t.at DESC LIMIT 1
RETURN t {{.id, .by, {PLACE}}} AS node,
  t.heldIds[[i IN range(0, size(t.heldHashes) - 1) WHERE t.heldHashes[i] = $hash][0]] AS id
"""
NAMING = """
MATCH (t:RunTrace {org: $org}) WHERE any(id IN t.recordIds WHERE id IN $ids)
SET t.lock = $ids[0]
RETURN t.id AS id, t.payload AS payload, t.heldHashes AS hashes, t.heldIds AS ids
"""
FORGET = """
UNWIND $traces AS one
MATCH (t:RunTrace {id: one.id, org: $org})
SET t.payload = one.payload, t.heldHashes = one.hashes, t.heldIds = one.ids
"""
WORDS = f"""
UNWIND $pins AS pin
MATCH (m:Memory {{id: pin.id}}) WHERE {visible("m")} AND m.standing <> 'ERASED'
CALL (m, pin) {{
  MATCH (v:Version {{memoryId: m.id}}) WHERE {visible("v")}
  WITH v ORDER BY abs(v.version - pin.version) LIMIT 3
  RETURN collect(v.text) AS former
}}
RETURN m {{.id, .org, .owner, .level, .clientId, .dealId, .text, .sourceUri}} AS node, former
"""


async def create(tx: Tx, trace: RunTrace, held: Iterable[Held]) -> None:
    """Keep `trace`, and by which hashes what it held will be recognised."""
    recalled = {one.text_hash: one.record_id or "" for one in held}
    properties = {
        **place_properties(trace.place),
        "id": trace.id,
        "runKey": _run_key(trace.place.org_id, trace.run_id),
        "runId": trace.run_id,
        "at": ms(trace.at),
        "by": trace.by,
        "prefixHash": trace.prefix_hash,
        "namedScopes": sorted({place.scope_token for place in trace.named}),
        "recordIds": sorted({*(pin.memory_id for pin in trace.pins), *trace.tail_record_ids}),
        "heldHashes": list(recalled),
        "heldIds": list(recalled.values()),
        "payload": _json(_payload(trace)),
    }
    await rows(tx, CREATE, properties=properties)


async def of_run(tx: Tx, principal: Principal, run_id: str) -> RunTrace | None:
    """The latest trace of `run_id`, the caller's own before anybody else's whose every part the caller may see."""
    key = _run_key(principal.org_id, run_id)
    return _seen(principal, await row(tx, OF_RUN, runKey=key, user=principal.user_id, **access(principal)))


async def by_id(tx: Tx, principal: Principal, id: str) -> RunTrace | None:
    return _seen(principal, await row(tx, BY_ID, id=id, **access(principal)))


async def held(tx: Tx, principal: Principal, *, run_id: str, text_hash: str) -> Held | None:
    """A text and the record that it comes from, if a context of this caller's run held it."""
    key = _run_key(principal.org_id, run_id)
    found = await row(tx, HELD, runKey=key, user=principal.user_id, hash=text_hash, **access(principal))
    if found is None or not admit(principal, place_of(found["node"]), found["node"]["id"]):
        return None
    return Held(text_hash, RecordId(found["id"]) if found["id"] else None)


async def forget(tx: Tx, *, org_id: OrganizationId, record_ids: Sequence[RecordId]) -> int:
    """Take what could still identify the words of erased records out of run traces; returns from how many."""
    if not record_ids:
        return 0
    gone = set(record_ids)
    found = await rows(tx, NAMING, org=org_id, ids=list(record_ids))
    await rows(tx, FORGET, org=org_id, traces=[_without(one, gone) for one in found])
    return len(found)


async def words(tx: Tx, principal: Principal, pins: Sequence[ShownPin]) -> dict[RecordId, PinText]:
    """The words that `pins` showed: of a memory's present and former texts the one with the digest.

    Lacks memories that were erased since; the present text stands for one that is nowhere.
    """
    digests = {pin.memory_id: pin.digest for pin in pins}
    named = [{"id": pin.memory_id, "version": pin.memory_version} for pin in pins]
    found = [
        one
        for one in await rows(tx, WORDS, pins=named, **access(principal))
        if admit(principal, place_of(one["node"]), one["node"]["id"]) and one["node"]["text"] is not None
    ]
    return {
        RecordId(one["node"]["id"]): PinText(
            _with_digest([one["node"]["text"], *one["former"]], digests[one["node"]["id"]]), one["node"]["sourceUri"]
        )
        for one in found
    }


def _with_digest(texts: Sequence[str], wanted: str) -> str:
    return next((text for text in texts if digest(text) == wanted), texts[0])


def _without(found: Row, gone: set[RecordId]) -> dict[str, Any]:
    """A stored trace without the digests and hashes of records in `gone`."""
    payload = json.loads(found["payload"])
    for pin in payload["pins"]:
        pin["digest"] = "" if pin["memoryId"] in gone else pin["digest"]
    kept = [(hash, id) for hash, id in zip(found["hashes"], found["ids"], strict=True) if id not in gone]
    return {
        "id": found["id"],
        "payload": _json(payload),
        "hashes": [hash for hash, _ in kept],
        "ids": [id for _, id in kept],
    }


def _json(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


def _run_key(org_id: OrganizationId, run_id: str) -> str:
    return token("run", org_id, run_id)


def _seen(principal: Principal, found: Row | None) -> RunTrace | None:
    if found is None:
        return None
    node = found["node"]
    trace = _trace(node)
    places = (trace.place, *trace.named)
    return trace if all(admit(principal, place, trace.id) for place in places) else None


def _payload(trace: RunTrace) -> dict[str, Any]:
    return {
        "runId": trace.run_id,
        "named": [_place_json(place) for place in trace.named],
        "format": trace.format,
        "budget": trace.budget,
        "used": trace.used,
        "overBudget": trace.over_budget,
        "policies": [[ref.id, ref.version] for ref in trace.policies],
        "variables": [[ref.id, ref.version] for ref in trace.variables],
        "pins": [_shown_json(pin) for pin in trace.pins],
        "absent": [{**_pin_json(one.pin), "reason": one.reason.value} for one in trace.absent],
        "semanticTail": trace.semantic_tail,
        "tailRecordIds": list(trace.tail_record_ids),
        "prefixHash": trace.prefix_hash,
        "prefixTokens": trace.prefix_tokens,
        "tailHash": trace.tail_hash,
        "retrievalTraceId": trace.retrieval_trace_id,
    }


def _trace(node: Row) -> RunTrace:
    payload: Mapping[str, Any] = json.loads(node["payload"])
    place = place_of(node)
    return RunTrace(
        id=node["id"],
        run_id=payload["runId"],
        at=instant(node["at"]),
        by=UserId(node["by"]),
        place=place,
        named=tuple(_place(place.org_id, one) for one in payload["named"]),
        format=payload["format"],
        budget=payload["budget"],
        used=payload["used"],
        over_budget=payload["overBudget"],
        policies=tuple(VersionRef(id, version) for id, version in payload["policies"]),
        variables=tuple(VersionRef(id, version) for id, version in payload["variables"]),
        pins=tuple(_shown(place.org_id, one) for one in payload["pins"]),
        absent=tuple(AbsentPin(_pin(place.org_id, one), Absence(one["reason"])) for one in payload["absent"]),
        semantic_tail=payload["semanticTail"],
        tail_record_ids=tuple(RecordId(id) for id in payload["tailRecordIds"]),
        prefix_hash=payload["prefixHash"],
        prefix_tokens=payload["prefixTokens"],
        tail_hash=payload["tailHash"],
        retrieval_trace_id=payload["retrievalTraceId"],
    )


def _shown_json(shown: ShownPin) -> dict[str, Any]:
    return {
        **_pin_json(shown.pin),
        "memoryId": shown.memory_id,
        "version": shown.memory_version,
        "label": shown.label,
        "source": shown.source_kind.value,
        "digest": shown.digest,
        "tokens": shown.tokens,
        "followed": shown.followed,
        "cut": None if shown.cut is None else [shown.cut.end, shown.cut.kept, shown.cut.paragraphs],
    }


def _shown(org_id: OrganizationId, found: Mapping[str, Any]) -> ShownPin:
    return ShownPin(
        pin=_pin(org_id, found),
        memory_id=RecordId(found["memoryId"]),
        memory_version=found["version"],
        label=found["label"],
        source_kind=SourceKind(found["source"]),
        digest=found["digest"],
        tokens=found["tokens"],
        followed=found["followed"],
        cut=None if found["cut"] is None else Cut(*found["cut"]),
    )


def _pin_json(pin: Pin) -> dict[str, Any]:
    return {
        "pinId": pin.id,
        "place": _place_json(pin.place),
        "pinned": pin.memory_id,
        "slot": pin.slot,
        "order": pin.order,
        "pinVersion": pin.version,
    }


def _pin(org_id: OrganizationId, found: Mapping[str, Any]) -> Pin:
    return Pin(
        id=found["pinId"],
        place=_place(org_id, found["place"]),
        memory_id=RecordId(found["pinned"]),
        slot=found["slot"],
        order=found["order"],
        version=found["pinVersion"],
    )


def _place_json(place: Place) -> list[str | None]:
    return [place.scope.level.value, place.scope.client_id, place.scope.deal_id, place.owner_id]


def _place(org_id: OrganizationId, found: Sequence[str | None]) -> Place:
    level, client, deal, owner = found
    scope = Scope(ScopeLevel(level), ClientId(client) if client else None, DealId(deal) if deal else None)
    return Place(org_id, scope, UserId(owner) if owner else None)
