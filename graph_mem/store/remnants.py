"""Where words stand that were erased or are to be: for whoever erases, and for the proof that nothing is left."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import LiteralString

from graph_mem.core.model import OrganizationId, Principal, UserId
from graph_mem.store.db import Row, Tx, rows
from graph_mem.store.visibility import PLACE, access, admitted, visible

_LISTED = 100

# One look at each property of each node and edge: `properties` reads them all at once, the vectors are passed over.
# Not slower than only reading everything, measured on 60,000 nodes: most values are too short to hold a needle.
_HOLDING: LiteralString = """
WITH n, properties(n) AS p
UNWIND [key IN keys(p) WHERE NOT key STARTS WITH 'embedding' AND any(value IN
    CASE WHEN p[key] IS :: STRING NOT NULL THEN [p[key]] WHEN p[key] IS :: LIST<STRING NOT NULL> THEN p[key] ELSE [] END
  WHERE size(value) >= $least AND any(t IN $needles WHERE value CONTAINS t))] AS property
"""
FOUND = f"""
MATCH (n) WHERE $org IS NULL OR n.org = $org
{_HOLDING}
RETURN labels(n)[0] AS what, coalesce(n.id, n.key, elementId(n)) AS id, property LIMIT $listed
UNION ALL
MATCH (start)-[n]->() WHERE $org IS NULL OR start.org = $org
{_HOLDING}
RETURN type(n) AS what, coalesce(n.id, elementId(n)) AS id, property LIMIT $listed
"""
ELSEWHERE = f"""
MATCH (n:Memory|Fact|Version|Entity|Policy|PolicyVersion|Variable|VariableVersion|Pin|ScratchNote)
WHERE {visible("n")} AND NOT n.id IN $ids AND NOT (n:Version AND n.memoryId IN $ids)
WITH n, properties(n) AS p
UNWIND [key IN $told WHERE any(value IN CASE WHEN p[key] IS :: STRING NOT NULL THEN [p[key]] ELSE p[key] END
  WHERE value IN $exact OR any(t IN $needles WHERE value CONTAINS t))] AS property
RETURN n {{.id, {PLACE}, what: labels(n)[0], property: property}} AS node ORDER BY node.what, node.id, property
"""
_TOLD = (
    *("text", "title", "metadata", "sourceUri", "statement", "subject", "relation"),
    *("name", "aliases", "value", "slot"),
)
"""What people wrote, or what was read in it."""


@dataclass(frozen=True, slots=True)
class Needles:
    """What to look for elsewhere: `exact` values, and `parts` of longer ones, also as JSON writes them.

    `only`: whose things alone are looked through. Nobody else ever saw a private record, so the same words in what is
    others' are theirs: erasing it neither counts nor takes these.
    """

    exact: tuple[str, ...]
    parts: tuple[str, ...]
    only: UserId | None = None

    @classmethod
    def of(cls, texts: Collection[str], *, least: int = 12, only: UserId | None = None) -> "Needles":
        """Texts shorter than `least` characters are looked for as whole values only: they stand in anything."""
        stripped = {text for one in texts for text in (one, one.strip()) if text}
        written = {json.dumps(text, ensure_ascii=False)[1:-1] for text in stripped}
        parts = {text for text in stripped | written if len(text) >= least}
        return cls(tuple(sorted(stripped)), _shortest(parts), only)

    def told_by(self, text: str) -> bool:
        """Whether `text` holds any of it."""
        return any(part in text for part in (*self.exact, *self.parts))


def _shortest(texts: Collection[str]) -> tuple[str, ...]:
    """Those of `texts` in which no other stands: whatever holds one of the others holds one of these."""
    kept: list[str] = []
    for text in sorted(texts, key=lambda text: (len(text), text)):
        if not any(part in text for part in kept):
            kept.append(text)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Remnant:
    """A property of a node or relationship that still holds words that were to be gone."""

    what: str
    id: str
    property: str


async def remnants(tx: Tx, needles: Sequence[str], *, org_id: OrganizationId | None) -> list[Remnant]:
    """Whatever in the whole database, or in one organization, holds one of `needles` in any property.

    At most 100 of nodes and 100 of edges.
    """
    least = min(map(len, needles), default=0)
    found = await rows(tx, FOUND, needles=list(needles), least=least, org=org_id, listed=_LISTED)
    return [Remnant(one["what"], one["id"], one["property"]) for one in found]


async def elsewhere(
    tx: Tx, principal: Principal, needles: Needles, *, but: Collection[str]
) -> tuple[list[Remnant], int]:
    """Where the same words stand in what `principal` may read and erasing `but` leaves; at most 100, and how many."""
    found = await rows(
        tx,
        ELSEWHERE,
        ids=sorted(but),
        told=list(_TOLD),
        exact=list(needles.exact),
        needles=list(needles.parts),
        **access(principal),
    )
    seen = admitted(principal, (one["node"] for one in found), _remnant)
    return seen[:_LISTED], len(seen)


def _remnant(node: Row) -> Remnant:
    return Remnant(node["what"], node["id"], node["property"])
