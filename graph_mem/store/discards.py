"""What a restore that was broken off has brought in, found again and removed: the operator's.

Each statement names the organizations that the restore made, or what it noted that it brought; none names a principal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from graph_mem.core.archive import KINDS
from graph_mem.store.db import Tx, row, rows

UNFINISHED = """
MATCH (p:Restoration) WHERE p.organizations IS NOT NULL
RETURN p.key AS key, p.organizations AS organizations, p.people AS people,
  coalesce(p.returned, []) AS returned, p.marks AS marks ORDER BY p.at, p.key
"""
GIVE_UP = """
MATCH (p:Restoration {key: $key})
SET p.line = -1
WITH p
OPTIONAL MATCH (o:Organization)<-[:MEMBER_OF]-(:User) WHERE o.id IN $orgs
RETURN collect(DISTINCT o.name) AS live
"""
REMOVE = """
MATCH (n:$($label)) WHERE n.org IN $orgs
WITH n LIMIT $limit
DETACH DELETE n
RETURN count(*) AS removed
"""
REMOVE_MARKS = "MATCH (n:Lease) WHERE n.name IN $marks DETACH DELETE n RETURN count(*) AS removed"
REMOVE_PEOPLE = """
MATCH (n:User) WHERE n.id IN $people AND NOT EXISTS { (n)-->() }
DELETE n
RETURN count(*) AS removed
"""
REMOVE_ORGANIZATIONS = """
MATCH (n:Organization) WHERE n.id IN $orgs
DETACH DELETE n
RETURN count(*) AS removed
"""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A restore that did not come to its end: the organizations that it made, the people and marks it brought, and
    the people to whom it gave their names back."""

    key: str
    organizations: Sequence[str]
    people: Sequence[str]
    returned: Sequence[str]
    marks: Sequence[str]


async def unfinished(tx: Tx) -> list[Unfinished]:
    """Every restore that was begun here and not finished, the oldest first."""
    found = await rows(tx, UNFINISHED)
    return [Unfinished(one["key"], one["organizations"], one["people"], one["returned"], one["marks"]) for one in found]


async def give_up(tx: Tx, one: Unfinished) -> list[str]:
    """Stop whoever still restores the archive; returns the names of organizations that have members already."""
    found = await row(tx, GIVE_UP, key=one.key, orgs=one.organizations)
    return found["live"] if found else []


def labels() -> list[str]:
    """Of what belongs to an organization, in the order in which it goes: no worker begins on what others lose."""
    return ["Job", *(kind for kind in KINDS if kind not in ("Job", "Organization", "User", "Lease"))]


async def remove(tx: Tx, one: Unfinished, label: str, *, limit: int) -> int:
    """Remove up to `limit` nodes with that label; returns how many there were."""
    found = await row(tx, REMOVE, label=label, orgs=one.organizations, limit=limit)
    return found["removed"] if found else 0


async def remove_rest(tx: Tx, one: Unfinished) -> int:
    """Remove the organizations themselves, and people of theirs who are nobody's; returns how many nodes."""
    marks = await row(tx, REMOVE_MARKS, marks=one.marks)
    organizations = await row(tx, REMOVE_ORGANIZATIONS, orgs=one.organizations)
    people = await row(tx, REMOVE_PEOPLE, people=one.people)
    return sum(found["removed"] for found in (marks, organizations, people) if found)
