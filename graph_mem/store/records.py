"""How a memory and a fact stand in the graph: the projection that reads one, the row that becomes one."""

import json
from collections.abc import Collection
from typing import Any, LiteralString

from graph_mem.core.model import (
    Fact,
    Interval,
    Memory,
    Principal,
    Processing,
    Record,
    RecordId,
    Signals,
    Source,
    SourceKind,
    Standing,
    UserId,
    place_of,
)
from graph_mem.store.db import Row, Tx, rows
from graph_mem.store.times import instant, instant_or_none, ms
from graph_mem.store.visibility import access, admitted, visible

_SHARED: LiteralString = (
    ".id, .org, .owner, .level, .clientId, .dealId, .kind, .standing, .version, .author, .createdAt,"
    " .validFrom, .validTo, .knownFrom, .knownTo, .gaps, .retrievals, .queryKinds, .lastRetrievedAt,"
    " .lastValidatedAt, .centrality, .confidence, .trust, .evergreen, .startingStrength"
)


def memory_columns(alias: LiteralString) -> LiteralString:
    """The projection of a Memory node that `memory_of` reads."""
    return (
        f"{alias} {{{_SHARED}, .label, .position, .title, .text, .metadata, .processing, .failure, .sourceKind,"
        " .sourceUri, .runId, .occurredAt, .importance, .freshAt, .foldCount}"
    )


def fact_columns(alias: LiteralString) -> LiteralString:
    """The projection of a Fact node that `fact_of` reads."""
    return f"{alias} {{{_SHARED}, .subject, .relation, .statement, .revokedAt}}"


def record_columns(alias: LiteralString) -> LiteralString:
    """The projection of either, for `record_of`."""
    return (
        f"{alias} {{{_SHARED}, .label, .position, .title, .text, .metadata, .processing, .failure, .sourceKind,"
        " .sourceUri, .runId, .occurredAt, .importance, .freshAt, .foldCount, .subject, .relation, .statement,"
        " .revokedAt}"
    )


BY_ID = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")} AND r.standing <> 'ERASED'
RETURN {record_columns("r")} AS node
"""


async def by_ids(tx: Tx, principal: Principal, ids: Collection[RecordId]) -> dict[RecordId, Record]:
    """The memories and facts among `ids` that `principal` may see."""
    found = await rows(tx, BY_ID, ids=sorted(ids), **access(principal))
    return {record.id: record for record in admitted(principal, (row["node"] for row in found), record_of)}


def signals_of(node: Row) -> Signals:
    return Signals(
        retrievals=node.get("retrievals") or 0,
        query_kinds=tuple(node.get("queryKinds") or ()),
        last_retrieved_at=instant_or_none(node.get("lastRetrievedAt")),
        last_validated_at=instant_or_none(node.get("lastValidatedAt")),
        centrality=node.get("centrality"),
        confidence=node.get("confidence"),
        source_trust=_or(node.get("trust"), 0.5),
        evergreen=bool(node.get("evergreen")),
        starting_strength=node.get("startingStrength"),
    )


def interval_of(node: Row) -> Interval:
    gaps: list[int] = node.get("gaps") or []
    return Interval(
        valid_from=instant(node["validFrom"]),
        valid_to=instant(node["validTo"]),
        known_from=instant(node["knownFrom"]),
        known_to=instant(node["knownTo"]),
        gaps=tuple((instant(start), instant(end)) for start, end in zip(gaps[::2], gaps[1::2], strict=True)),
    )


def interval_properties(interval: Interval) -> dict[str, Any]:
    """What a node carries of `interval`."""
    return {
        "validFrom": ms(interval.valid_from),
        "validTo": ms(interval.valid_to),
        "knownFrom": ms(interval.known_from),
        "knownTo": ms(interval.known_to),
        "gaps": [edge for start, end in interval.gaps for edge in (ms(start), ms(end))],
    }


def memory_of(node: Row) -> Memory:
    metadata: str | None = node.get("metadata")
    return Memory(
        id=RecordId(node["id"]),
        place=place_of(node),
        label=node["label"],
        position=bool(node.get("position")),
        text=node.get("text"),
        source=Source(
            kind=SourceKind(node["sourceKind"]),
            author=UserId(node["author"]),
            uri=node.get("sourceUri"),
            run_id=node.get("runId"),
            occurred_at=instant_or_none(node.get("occurredAt")),
            trust=_or(node.get("trust"), 0.5),
        ),
        processing=Processing(node["processing"]),
        standing=Standing(node["standing"]),
        version=node["version"],
        importance=node["importance"],
        created_at=instant(node["createdAt"]),
        fresh_at=instant(node["freshAt"]),
        interval=interval_of(node),
        signals=signals_of(node),
        title=node.get("title"),
        metadata=json.loads(metadata) if metadata else None,
        failure=node.get("failure"),
        fold_count=node.get("foldCount") or 0,
    )


def fact_of(node: Row) -> Fact:
    return Fact(
        id=RecordId(node["id"]),
        place=place_of(node),
        subject=node["subject"],
        relation=node["relation"],
        statement=node["statement"],
        standing=Standing(node["standing"]),
        version=node["version"],
        confidence=_or(node.get("confidence"), 1.0),
        created_at=instant(node["createdAt"]),
        interval=interval_of(node),
        author=UserId(node["author"]),
        revoked_at=instant_or_none(node.get("revokedAt")),
        signals=signals_of(node),
    )


def record_of(node: Row) -> Record:
    """A memory or a fact, by the node's `kind`."""
    return fact_of(node) if node["kind"] == "fact" else memory_of(node)


def _or(value: Any, default: float) -> float:
    return default if value is None else float(value)
