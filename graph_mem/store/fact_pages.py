"""Lists of facts: those of a place and time, those a memory states, those about an entity."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from graph_mem.core.model import FAR, Entity, EntityId, Fact, Memory, Page, Principal, RecordId, Scope, Standing
from graph_mem.store.db import Tx, row, rows
from graph_mem.store.entities import entity_of
from graph_mem.store.records import fact_columns, fact_of, memory_columns, memory_of
from graph_mem.store.times import ms
from graph_mem.store.visibility import access, admitted, counted, per_place, visible

_WANTED: LiteralString = f"""
{visible("f")} AND ($scope IS NULL OR f.scope = $scope) AND f.standing IN $standings
  AND ($subject IS NULL OR f.subjectKey = $subject) AND ($relation IS NULL OR f.relationKey = $relation)
"""
# Believed at $knownAt: saved by then, and not withdrawn as never true by then. A fact held until its stated end, or
# the beginning of one that replaced it or was put after it, as far as that was known: a link counts from when it was
# made to when it was corrected.
_HELD: LiteralString = """
f.knownFrom <= $knownAt AND NOT (f.standing = 'ARCHIVED' AND f.knownTo <= $knownAt)
  AND f.validFrom <= $asOf AND f.statedTo > $asOf
  AND NOT (coalesce(f.withdrawnAt, $far) <= $knownAt AND f.withdrawnTo <= $asOf)
  AND NOT EXISTS {
    (n:Fact)-[s:SUPERSEDES]->(f)
    WHERE s.at <= $knownAt AND coalesce(s.correctedAt, $far) > $knownAt AND n.validFrom <= $asOf
  }
"""
# Active at $knownAt, whatever time it speaks of.
_ACTIVE: LiteralString = """
f.knownFrom <= $knownAt AND f.knownTo > $knownAt
  AND none(i IN range(0, size(f.gaps) / 2 - 1) WHERE f.gaps[2 * i] <= $knownAt AND $knownAt < f.gaps[2 * i + 1])
"""
_IN_TIME: LiteralString = (
    f"CASE WHEN $asOf IS NOT NULL THEN {_HELD} WHEN $knownAt IS NOT NULL THEN {_ACTIVE} ELSE true END"
)
_NEWEST: LiteralString = f"""
WITH f WHERE $beforeAt IS NULL OR f.createdAt < $beforeAt OR (f.createdAt = $beforeAt AND f.id < $beforeId)
WITH f ORDER BY f.createdAt DESC, f.id DESC LIMIT $limit
RETURN {fact_columns("f")} AS node
"""

PAGE = f"MATCH (f:Fact) WHERE {_WANTED} AND ({_IN_TIME}) {_NEWEST}"
COUNT = f"MATCH (f:Fact) WHERE {_WANTED} AND ({_IN_TIME}) {per_place('f')}"
OF_MEMORY = f"""
MATCH (m:Memory {{id: $id}})-[:STATES]->(f:Fact) WHERE {visible("m")} AND {visible("f")} AND f.standing <> 'ERASED'
{_NEWEST}
"""
ABOUT = f"""
MATCH (e:Entity {{id: $id}})<-[:ABOUT]-(f:Fact) WHERE {visible("e")} AND {visible("f")} AND f.standing = 'CURRENT'
{_NEWEST}
"""
SOURCES = f"""
MATCH (f:Fact {{id: $id}})<-[:STATES]-(m:Memory) WHERE {visible("f")} AND {visible("m")} AND m.standing <> 'ERASED'
  AND ($beforeAt IS NULL OR m.createdAt < $beforeAt OR (m.createdAt = $beforeAt AND m.id < $beforeId))
WITH m ORDER BY m.createdAt DESC, m.id DESC LIMIT $limit
RETURN {memory_columns("m")} AS node
"""
ENTITY = f"""
MATCH (f:Fact {{id: $id}})-[:ABOUT]->(e:Entity) WHERE {visible("f")} AND {visible("e")}
RETURN e {{.id, .org, .owner, .level, .clientId, .dealId, .name, .label, .aliases, .centrality}} AS node LIMIT 1
"""
_EVERY_TIME = [standing.value for standing in Standing if standing is not Standing.ERASED]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which facts a list holds. `subject` and `relation` as `name_key` writes them; None for all.

    `as_of`: what held then; `known_at`: what was known then, and without `as_of` what was active then. With either,
    `standings` as of today play no part.
    """

    scope: Scope | None
    subject: str | None
    relation: str | None
    standings: tuple[Standing, ...]
    as_of: datetime | None
    known_at: datetime | None

    def parameters(self, principal: Principal) -> dict[str, Any]:
        timely = self.as_of is not None or self.known_at is not None
        return {
            **access(principal),
            "scope": None if self.scope is None else self.scope.token(principal.org_id),
            "subject": self.subject,
            "relation": self.relation,
            "standings": _EVERY_TIME if timely else [one.value for one in self.standings if one is not Standing.ERASED],
            "asOf": None if self.as_of is None else ms(self.as_of),
            "knownAt": ms(self.known_at or FAR) - (self.known_at is None) if timely else None,
            "far": ms(FAR),
        }


async def page(tx: Tx, principal: Principal, filter: Filter, page: Page) -> list[Fact]:
    """Newest first; one row more than `page.first` when there are more. Page keys: (created at, id)."""
    return await _facts(tx, PAGE, principal, page, filter.parameters(principal))


async def count(tx: Tx, principal: Principal, filter: Filter) -> int:
    """How many facts the list holds in all."""
    return counted(principal, await rows(tx, COUNT, **filter.parameters(principal)), "a count of facts")


async def of_memory(tx: Tx, principal: Principal, id: RecordId, page: Page) -> list[Fact]:
    """The facts that a memory states, newest first."""
    return await _facts(tx, OF_MEMORY, principal, page, {"id": id, **access(principal)})


async def about(tx: Tx, principal: Principal, id: EntityId, page: Page) -> list[Fact]:
    """Current facts about an entity, newest first."""
    return await _facts(tx, ABOUT, principal, page, {"id": id, **access(principal)})


async def sources(tx: Tx, principal: Principal, id: RecordId, page: Page) -> list[Memory]:
    """The memories that state a fact, newest first."""
    at, last = page.after or (None, None)
    found = await rows(tx, SOURCES, id=id, beforeAt=at, beforeId=last, limit=page.first + 1, **access(principal))
    return admitted(principal, (one["node"] for one in found), memory_of)


async def _facts(
    tx: Tx, statement: LiteralString, principal: Principal, page: Page, given: dict[str, Any]
) -> list[Fact]:
    at, last = page.after or (None, None)
    found = await rows(tx, statement, beforeAt=at, beforeId=last, limit=page.first + 1, **given)
    return admitted(principal, (one["node"] for one in found), fact_of)


async def entity(tx: Tx, principal: Principal, id: RecordId) -> Entity | None:
    """The entity that a fact is about."""
    found = await row(tx, ENTITY, id=id, **access(principal))
    return next(iter(admitted(principal, [found["node"]], entity_of)), None) if found else None
