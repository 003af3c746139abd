"""Everything of an organization in the graph, read without the product's help, and taken out of it."""

import json
from typing import Any

from graph_mem.core.model import OrganizationId
from graph_mem.store.db import Database

_OURS = "(n.org = $org OR n.id = $org OR EXISTS { (n:User)-[:MEMBER_OF]->(:Organization {id: $org}) })"
NODES = f"""
MATCH (n) WHERE {_OURS}
RETURN labels(n) AS labels, properties(n) AS properties
"""
EDGES = f"""
MATCH (n)-[r]->(m) WHERE {_OURS}
RETURN labels(n) + labels(m) AS labels, coalesce(n.id, n.key) AS start, type(r) AS type, properties(r) AS properties,
  coalesce(m.id, m.key) AS end
"""
GONE = f"MATCH (n) WHERE {_OURS} DETACH DELETE n"


async def whole(database: Database, org_id: OrganizationId) -> tuple[list[str], list[str]]:
    """Every node with its labels and properties, vectors and locks included, and every edge; each list in order."""
    nodes, edges = [
        sorted(json.dumps(_plain(row), sort_keys=True) for row in await database.run(statement, org=org_id))
        for statement in (NODES, EDGES)
    ]
    return nodes, edges


def _plain(row: Any) -> dict[str, Any]:
    return {**row, "labels": sorted(row["labels"])}


async def wipe(database: Database, org_id: OrganizationId) -> None:
    """The worst day: the organization and its people are gone."""
    await database.run(GONE, org=org_id)
