"""History: one node for each event in a record's life, connected to nothing, so that it outlives the record."""

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from graph_mem.core.model import Event, Page, Place, Principal, is_id
from graph_mem.store.db import Row, Tx, rows
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import PLACE, access, admitted, place_properties, visible

APPEND = """
UNWIND $events AS new
CREATE (e:Event) SET e = new
"""
HISTORY = f"""
MATCH (e:Event {{recordId: $id}})
WHERE {visible("e")} AND ($afterAt IS NULL OR e.at > $afterAt OR (e.at = $afterAt AND e.id > $afterId))
WITH e ORDER BY e.at, e.id LIMIT $limit
RETURN e {{.id, .org, .owner, .level, .clientId, .dealId, .recordId, .at, .by, .kind, .version, .detail,
  .strength}} AS node
"""

NAMED = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND {visible("r")}
RETURN r {{.id, {PLACE}}} AS node
"""


async def append(tx: Tx, place: Place, *events: Event) -> None:
    """Add `events` of records at `place` to their history."""
    await rows(tx, APPEND, events=[properties(place, event) for event in events])


async def history(tx: Tx, principal: Principal, record_id: str, page: Page) -> list[Event]:
    """What happened to a record, oldest first; one event more than `page.first` when there are more.

    Other records are named to whoever may see them.
    Page keys: (at, id). The events of an erased record are still here.
    """
    at, id = page.after or (None, None)
    found = await rows(tx, HISTORY, id=record_id, afterAt=at, afterId=id, limit=page.first + 1, **access(principal))
    events = admitted(principal, (row["node"] for row in found), _event)
    others = sorted({id for event in events for id in _others(event)})
    if not others:
        return events
    named = await rows(tx, NAMED, ids=others, **access(principal))
    seen = set(admitted(principal, (row["node"] for row in named), lambda node: str(node["id"])))
    return [_discreet(event, seen) for event in events]


def _others(event: Event) -> list[str]:
    """The other records that an event names."""
    values = (event.detail or {}).values()
    return [one for one in values if isinstance(one, str) and is_id(one, "mem", "fact") and one != event.record_id]


def _discreet(event: Event, seen: Collection[str]) -> Event:
    """`event` without the records, and the link to them, that its reader may not see."""
    hidden = {id for id in _others(event) if id not in seen}
    if not hidden or event.detail is None:
        return event
    kept = {
        name: value
        for name, value in event.detail.items()
        if name != "relation" and not (isinstance(value, str) and value in hidden)
    }
    return replace(event, detail=kept or None)


def properties(place: Place, event: Event) -> dict[str, Any]:
    """What `APPEND` asks of each of `$events`."""
    return {
        **place_properties(place),
        "id": event.id,
        "recordId": event.record_id,
        "at": ms(event.at),
        "by": event.by,
        "kind": event.kind,
        "version": event.version,
        "detail": None if event.detail is None else json.dumps(event.detail, ensure_ascii=False, sort_keys=True),
        "strength": event.strength,
    }


def _event(node: Row) -> Event:
    detail: str | None = node.get("detail")
    return Event(
        id=node["id"],
        record_id=node["recordId"],
        at=instant(node["at"]),
        by=node["by"],
        kind=node["kind"],
        version=node.get("version"),
        detail=json.loads(detail) if detail else None,
        strength=node.get("strength"),
    )
