"""What a leg brings back: search units with all that ranking must know of their records, in one row.

One row, because the driver's work is by row: a leg of fifty rows costs the client more than the search itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from graph_mem.core.model import Interval, Place, Principal, RecordId, Signals, place_of
from graph_mem.store.db import Row
from graph_mem.store.records import interval_of, signals_of
from graph_mem.store.times import instant, instant_or_none
from graph_mem.store.visibility import admit

SHOWN = 2_000
"""Characters of a unit that leave the store: enough for a snippet, and to tell look-alikes."""


@dataclass(frozen=True, slots=True)
class Found:
    """A search unit - chunk, fact or unprocessed memory - with its record's ranking data.

    `raw` is BM25 or cosine. `fresh_at`: of a text saved again in part, a chunk is as fresh as what stands in it.
    `in_time`: within the time filters, which the full-text index does not know.
    """

    unit_id: str
    record_id: RecordId
    raw: float
    place: Place
    label: str
    importance: float
    fresh_at: datetime
    signals: Signals
    neighbours: tuple[str, ...]
    participants: tuple[str, ...]
    source: str | None
    content: str
    in_time: bool
    interval: Interval
    stated_to: datetime | None


COLLECTED: LiteralString = """collect({
  score: score, unit: n.id, content: left(coalesce(n.content, r.text, ''), $shown),
  record: r {.id, .org, .owner, .level, .clientId, .dealId, .label, .sourceKey, .importance, .createdAt, .validFrom,
    .validTo, .knownFrom, .knownTo, .gaps, .statedTo, .retrievals, .queryKinds, .lastRetrievedAt, .lastValidatedAt,
    .centrality, .confidence, .trust, .evergreen, .startingStrength},
  fresh: CASE WHEN r.staleAt IS NULL OR n.start IS NULL THEN r.freshAt ELSE reduce(
    at = r.staleAt, i IN [i IN range(0, size(r.freshSpans) / 3 - 1)
      WHERE r.freshSpans[3 * i] < n.end AND n.start < r.freshSpans[3 * i + 1]] |
    CASE WHEN r.freshSpans[3 * i + 2] > at THEN r.freshSpans[3 * i + 2] ELSE at END) END,
  neighbours: [(n)-[:NEXT]-(x:Chunk) | x.id],
  participants: [(r)-[:MENTIONS {role: 'PARTICIPANT'}]->(e:Entity) | [e.name] + coalesce(e.aliases, [])],
  inTime: ($createdFrom IS NULL OR r.createdAt >= $createdFrom) AND ($createdTo IS NULL OR r.createdAt < $createdTo)
    AND ($occurredFrom IS NULL OR r.occurredAt >= $occurredFrom) AND ($occurredTo IS NULL OR r.occurredAt < $occurredTo)
    AND ($heldAt IS NULL OR (r.validFrom <= $heldAt AND r.validTo > $heldAt))
}) AS found"""
"""What `found_of` reads of units `n` of records `r` with their `score`, in their order."""


def found_of(principal: Principal, answer: Row | None, *, raw: Callable[[float], float]) -> list[Found]:
    """The units of a leg's row that `principal` may see."""
    places: dict[tuple[str | None, ...], Place | None] = {}
    made: list[Found] = []
    for one in answer["found"] if answer else ():
        node: Row = one["record"]
        key = (node["org"], node["owner"], node["level"], node["clientId"], node["dealId"])
        if key not in places:
            place = place_of(node)
            places[key] = place if admit(principal, place, str(node["id"])) else None
        if (place := places[key]) is not None:
            made.append(_unit(one, node, place, raw(one["score"])))
    return made


def _unit(one: Row, node: Row, place: Place, raw: float) -> Found:
    importance, fresh_at = node["importance"], one["fresh"]
    return Found(
        unit_id=one["unit"],
        record_id=RecordId(node["id"]),
        raw=raw,
        place=place,
        label=node["label"],
        importance=0.5 if importance is None else importance,
        fresh_at=instant(node["createdAt"] if fresh_at is None else fresh_at),
        signals=signals_of(node),
        neighbours=tuple(one["neighbours"]),
        participants=tuple(name for names in one["participants"] for name in names),
        source=node["sourceKey"],
        content=one["content"],
        in_time=bool(one["inTime"]),
        interval=interval_of(node),
        stated_to=instant_or_none(node["statedTo"]),
    )
