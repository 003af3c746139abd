"""When the records that matter most are due to be looked at again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from graph_mem.core.model import Page, Principal, RecordId
from graph_mem.core.rehearsal import Rehearsal
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import instant, ms
from graph_mem.store.visibility import PLACE, access, admitted, pinned_at_home, visible

ENROL = f"""
MATCH (m:Memory) WHERE {visible("m")} AND m.standing = 'CURRENT' AND m.createdAt >= $since
  AND (m.position OR m.evergreen OR m.label IN $protected OR {pinned_at_home("m")})
  AND NOT EXISTS {{ MATCH (r:Rehearsal {{recordId: m.id}}) }}
WITH m ORDER BY m.createdAt LIMIT 1000
MERGE (r:Rehearsal {{recordId: m.id}})
  ON CREATE SET r += m {{{PLACE}, .partition, .scope}}, r.box = $box, r.dueAt = $due, r.enrolledAt = $at
RETURN count(*) AS enrolled, max(m.createdAt) AS upTo
"""
# Two MATCHes joined by a value, one of them of either label, are more than Neo4j's planner can do on a small database.
PAGE = f"""
MATCH (r:Rehearsal) WHERE {visible("r")} AND r.dueAt <= $until
  AND ($afterDue IS NULL OR r.dueAt > $afterDue OR (r.dueAt = $afterDue AND r.recordId > $afterId))
  AND EXISTS {{ MATCH (m:Memory|Fact {{id: r.recordId}}) WHERE {visible("m")} AND m.standing = 'CURRENT' }}
WITH r ORDER BY r.dueAt, r.recordId LIMIT $limit
RETURN r {{.recordId, {PLACE}, .box, .dueAt}} AS node
"""
OF = f"""
MATCH (r:Rehearsal {{recordId: $id}}) WHERE {visible("r")}
SET r.lock = $id
WITH r
RETURN r {{.recordId, {PLACE}, .box, .dueAt}} AS node
"""
RECORD = f"""
MATCH (r:Rehearsal {{recordId: $id}}) WHERE {visible("r")}
SET r.box = $box, r.dueAt = $due, r.lastAt = $at
"""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A record that is rehearsed."""

    record_id: RecordId
    rehearsal: Rehearsal


async def enrol(
    tx: Tx, principal: Principal, first: Rehearsal, *, protected: Sequence[str], since: datetime, at: datetime
) -> tuple[int, datetime]:
    """Enrol what nobody enrolled of what was saved from `since` on: current positions, protected labels, evergreen and
    memories pinned at their place.

    At most 1,000 at once, oldest first; returns how many, and from when on to continue. `protected` are the labels
    of that class.
    """
    given = {"protected": list(protected), "since": ms(since), "at": ms(at), "box": first.box, "due": ms(first.due_at)}
    found = await row(tx, ENROL, **given, **access(principal))
    if found is None or not found["enrolled"]:
        return 0, since
    return found["enrolled"], instant(found["upTo"])


async def page(tx: Tx, principal: Principal, *, until: datetime, page: Page) -> list[Enrolled]:
    """Due until then, soonest first; one more than `page.first` when there are more. Page keys: (due, id)."""
    due, id = page.after or (None, None)
    found = await rows(tx, PAGE, until=ms(until), afterDue=due, afterId=id, limit=page.first + 1, **access(principal))
    return admitted(principal, (row["node"] for row in found), _rehearsal)


async def lock(tx: Tx, principal: Principal, id: RecordId) -> Rehearsal | None:
    """The rehearsal of a record, locked; None if it is not enrolled."""
    found = await rows(tx, OF, id=id, **access(principal))
    return next((one.rehearsal for one in admitted(principal, (row["node"] for row in found), _rehearsal)), None)


async def record(tx: Tx, principal: Principal, id: RecordId, new: Rehearsal, *, at: datetime) -> None:
    """Store what a rehearsal at `at` led to."""
    await rows(tx, RECORD, id=id, box=new.box, due=ms(new.due_at), at=ms(at), **access(principal))


def _rehearsal(node: Row) -> Enrolled:
    return Enrolled(RecordId(node["recordId"]), Rehearsal(node["box"], instant(node["dueAt"])))
