"""Brings a set into an organization as a user would: captured and processed, or saved as facts in order of time."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from bench.sets import DataSet, Document
from graph_mem.app import HANDLERS
from graph_mem.core.model import Principal, RecordId, Role, SourceKind
from graph_mem.errors import NotFound
from graph_mem.services import Deps, admin, capture, facts, identity
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.worker import Worker

_USER = "bench"
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Loaded:
    """A set in the database: who owns it, who may see one group alone, and what became of each document."""

    set: DataSet
    owner: Principal
    groups: dict[str | None, Principal]
    records: dict[str, RecordId]
    seconds: float

    def principal(self, group: str | None) -> Principal:
        return self.groups[group]

    @property
    def documents(self) -> dict[RecordId, str]:
        return {record: document for document, record in self.records.items()}


async def load(deps: Deps, data: DataSet, *, cache: Path) -> Loaded:
    """`data` in its own organization; what an earlier run loaded is used again."""
    organization = f"bench {data.name}"
    owner = await _enrolled(deps, organization, _USER, Role.OWNER)
    groups: dict[str | None, Principal] = {None: owner}
    for group in sorted({document.group for document in data.documents if document.group}):
        groups[group] = await _enrolled(deps, organization, f"{_USER} {group}", Role.MEMBER, client=group)
    known = cache / f"{data.name}-{owner.org_id}.json"
    started = asyncio.get_running_loop().time()
    if known.exists():
        records = {document: RecordId(id) for document, id in json.loads(known.read_text()).items()}
    else:
        records = await (_facts if data.are_facts else _memories)(deps, data, owner, groups)
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(records))
    await _processed(deps, owner)
    return Loaded(data, owner, groups, records, asyncio.get_running_loop().time() - started)


async def _enrolled(deps: Deps, organization: str, user: str, role: Role, *, client: str | None = None) -> Principal:
    enrolment = await admin.ensure_principal(deps, organization=organization, user=user, role=role, client=client)
    found = await identity.principal(deps, org_id=enrolment.org_id, user_id=enrolment.user_id)
    if found is None:
        raise NotFound(user)
    return found


async def _memories(
    deps: Deps, data: DataSet, owner: Principal, groups: dict[str | None, Principal]
) -> dict[str, RecordId]:
    records: dict[str, RecordId] = {}
    documents = data.documents
    for start in range(0, len(documents), _BATCH):
        batch = documents[start : start + _BATCH]
        new = [_memory(document, groups) for document in batch]
        saved = await capture.accept_all(deps, owner, new, rank=start)
        records |= {document.id: memory.id for document, memory in zip(batch, saved, strict=True)}
    return records


def _memory(document: Document, groups: dict[str | None, Principal]) -> NewMemory:
    client = next(iter(groups[document.group].client_ids), None)
    return NewMemory(
        text=document.text,
        title=document.title,
        client_id=client,
        source_kind=SourceKind.TRANSCRIPT if document.group else SourceKind.DOCUMENT,
        source_uri=document.session,
        occurred_at=document.at,
    )


async def _facts(
    deps: Deps,
    data: DataSet,
    owner: Principal,
    groups: dict[str | None, Principal],  # noqa: ARG001 # as _memories
) -> dict[str, RecordId]:
    records: dict[str, RecordId] = {}
    for document in sorted(data.documents, key=lambda one: str(one.meta["time"])):
        new = NewFact(
            subject=document.meta["subject"],
            relation=document.meta["relation"],
            statement=document.text,
            valid_from=document.at,
        )
        saved = await facts.save(deps, owner, new)
        if saved.fact is not None:
            records[document.id] = saved.fact.id
    return records


async def _processed(deps: Deps, owner: Principal) -> None:
    """Work until nothing of the organization waits."""
    await deps.embedder.settled()
    worker = Worker(deps, HANDLERS, org_ids=[owner.org_id])
    while await worker.work_once():
        pass
