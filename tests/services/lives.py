"""Records to decide about, and everything of them in the graph, for comparing before and after."""

from typing import Any

from graph_mem.core.lifecycle import LifecycleConfig
from graph_mem.core.model import Memory, Principal, RecordId
from graph_mem.core.proposals import Proposal, ProposalKind
from graph_mem.services import Deps, capture, filing, records
from graph_mem.services.capture import NewMemory
from graph_mem.store import reviews
from graph_mem.store.db import Tx, rows
from tests.people import Company, work_off

EVERYTHING = """
MATCH (n) WHERE n.org = $org AND any(label IN labels(n) WHERE label IN
  ['Memory', 'Fact', 'Chunk', 'Entity', 'Slot', 'Rehearsal', 'Pin', 'Version'])
OPTIONAL MATCH (n)-[r]->(m)
WITH n, r, m ORDER BY type(r), coalesce(m.id, m.key)
RETURN labels(n)[0] + ' ' + coalesce(n.id, n.key, n.recordId) AS id, n {.*, lock: null} AS properties,
  collect([type(r), coalesce(m.id, m.key), properties(r)]) AS edges
"""


async def everything(deps: Deps, org: Company) -> dict[str, Any]:
    """Every property of every record of the organization, of its chunks and its entities, and all their edges."""

    async def work(tx: Tx) -> list[Any]:
        return [row.data() for row in await rows(tx, EVERYTHING, org=org.id)]

    found = await deps.db.read(work)
    return {row["id"]: ({k: v for k, v in row["properties"].items() if v is not None}, row["edges"]) for row in found}


async def saved(deps: Deps, org: Company, *texts: str, by: Principal | None = None, **given: Any) -> list[RecordId]:
    """The ids of new memories, READY."""
    ids = [(await capture.accept(deps, by or org.owner, NewMemory(text=text, **given))).memory.id for text in texts]
    await work_off(deps, org.id)
    return ids


async def stored(deps: Deps, org: Company, id: RecordId) -> Memory:
    found = (await records.by_ids(deps, org.owner, [id]))[id]
    assert isinstance(found, Memory)
    return found


async def proposed(deps: Deps, org: Company, kind: ProposalKind, id: RecordId, **given: Any) -> Proposal:
    """A pending proposal about a memory, filed as the cycle would."""
    memory = await stored(deps, org, id)
    vocabulary = await deps.settings.vocabulary(org.id)
    fields: dict[str, Any] = {"score": 0.2, "gate": "a test", "reason": "Because.", "basis": ()}
    if kind is ProposalKind.PROMOTE_MEMORY:
        fields |= {"score": 0.7, "change": {"from": memory.label, "to": "insight", "importance": 0.6}}
    one = filing.proposal(deps, memory.place, kind, [id], shape=filing.shape(memory, vocabulary), **{**fields, **given})
    await file(deps, one)
    return one


async def file(deps: Deps, *proposals: Proposal) -> list[str]:
    async def work(tx: Tx) -> list[str]:
        return await reviews.file(tx, proposals)

    return await deps.db.write(work)


DEFAULT = LifecycleConfig()
