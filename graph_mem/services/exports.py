"""Writes organizations into an archive while they are in use.

Neo4j shows each read what is committed at that moment, so a long export sees one record early and the next one late.
Whatever changes a record leaves an event in the same transaction. So events are read first and again at the end, and
what happened to meanwhile is read once more together with all it is linked to, the last time under locks: then every
record stands in the archive as it stood at one moment, and so do all those that a change touches together.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from graph_mem.core.archive import KINDS, Edge, Footer, Header, Model, Node
from graph_mem.core.model import ORGANIZATION, OrganizationId, Place, UserId
from graph_mem.core.people import Organization
from graph_mem.core.vectors import Placed, Space
from graph_mem.errors import InvalidInput, NotFound
from graph_mem.local import archive
from graph_mem.local.spool import Spool
from graph_mem.services.admin import AdminDeps
from graph_mem.store import archives, tenants
from graph_mem.store.db import Tx
from graph_mem.store.times import instant, ms

T = TypeVar("T", Node, Edge)

_LARGE = frozenset(
    {"Job", "Event", "Memory", "Version", "Chunk", "Slot", "Fact", "Entity"}
    | {"ScratchNote", "RunTrace", "Trace", "AccessEntry", "Idempotency"}
)
"""Kinds that are read once; of the others everything is read again whenever something changed."""

_SKEW = timedelta(hours=2)
"""By how much the clocks of writers, whose events are looked for, may differ."""
_BATCH = 500
_LOCKED_AT_ONCE = 200
_ROUNDS = 20
_TIMEOUT_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Exported:
    """What an archive holds now; `restarted` is how often an erasure meanwhile made the export begin anew."""

    header: Header
    footer: Footer
    restarted: int


class _Erased(Exception):
    """Something was erased since the export began: what was read may hold it."""


@dataclass(frozen=True, slots=True)
class _Source:
    """One organization being read into a spool. `since`: when that began, in epoch milliseconds."""

    deps: AdminDeps
    spool: Spool
    org_id: OrganizationId
    space: Space | None
    since: int

    def read(self, kind: str) -> bool:
        return self.spool.has(self._mark(kind))

    def note_read(self, kind: str) -> None:
        self.spool.note(self._mark(kind), "read")

    def _mark(self, kind: str) -> str:
        return f"{self.org_id} {kind}"


async def export(
    deps: AdminDeps, target: Path, *, organization: str | None, model: Placed, vectors: bool = True
) -> Exported:
    """Write the organization called so, or every one, to `target`; one that was broken off goes on where it was.

    Errors: NotFound; InvalidInput if the file exists, or was begun with other options.
    """
    chosen = await _chosen(deps, organization)
    spool = Spool.beside(target)
    restarted = 0
    with contextlib.closing(spool):
        while True:
            try:
                header = await _read(deps, spool, chosen, model if vectors else None, every=organization is None)
                break
            except _Erased:
                spool.clear()
                restarted += 1
        footer = archive.write(target, header, spool.body())
    spool.remove()
    return Exported(header, footer, restarted)


async def _chosen(deps: AdminDeps, organization: str | None) -> list[Organization]:
    if organization is None:
        return await deps.db.read(tenants.list_organizations)
    found = await deps.db.read(lambda tx: tenants.find_organization(tx, organization))
    if found is None:
        raise NotFound(organization, path=("org",), what="organization")
    return [found]


async def _read(
    deps: AdminDeps, spool: Spool, chosen: Sequence[Organization], model: Placed | None, *, every: bool
) -> Header:
    """Everything of the chosen organizations, in the spool."""
    ids = " ".join(sorted(one.id for one in chosen))
    if spool.note("organizations", ids) != ids or spool.note("model", str(model)) != str(model):
        raise InvalidInput(f"{spool.path} was begun with other options: delete it to begin anew.", path=("FILE",))
    begun = int(spool.note("begun", str(ms(deps.clock()))))
    schema = await deps.db.read(archives.schema_version)
    since = ms(instant(begun) - _SKEW)
    sources = [_Source(deps, spool, one.id, model.space if model else None, since) for one in chosen]
    for source in sources:
        for kind in KINDS:
            if not source.read(kind):
                await _read_kind(source, kind)
                source.note_read(kind)
    if every:
        await _former(deps, spool)
    for source in sources:
        await _settle(source)
    organizations = {str(one.id): one.name for one in chosen}
    return Header(spool.note("id", deps.new_id("exp")), schema, begun, organizations, _named(model))


def _named(model: Placed | None) -> Model | None:
    return Model(model.source.model, model.source.dimension) if model else None


async def _read_kind(source: _Source, kind: str) -> None:
    """Every node of `kind` and every edge from one. The transaction may run twice: what is added again replaces."""
    partitions = await _partitions(source)

    async def work(tx: Tx) -> None:
        found = archives.nodes(tx, kind, org_id=source.org_id, partitions=partitions, space=source.space)
        async for nodes in _batches(found):
            source.spool.add(nodes=nodes)
        async for edges in _batches(archives.edges(tx, kind, org_id=source.org_id)):
            source.spool.add(edges=edges)

    await source.deps.db.read(work, timeout_s=_TIMEOUT_S)


async def _partitions(source: _Source) -> list[str]:
    async def work(tx: Tx) -> list[str]:
        members = await tenants.list_members(tx, source.org_id)
        owners: list[UserId | None] = [None, *(one.user_id for one in members)]
        return [Place(source.org_id, ORGANIZATION, owner).partition_token for owner in owners]

    return await source.deps.db.read(work)


async def _former(deps: AdminDeps, spool: Spool) -> None:
    async def work(tx: Tx) -> None:
        async for nodes in _batches(archives.former_people(tx)):
            spool.add(nodes=nodes)

    await deps.db.read(work, timeout_s=_TIMEOUT_S)


async def _settle(source: _Source) -> None:
    """Read again what changed since the reading began.

    Errors: _Erased.
    """
    for attempt in range(_ROUNDS):
        happened = await source.deps.db.read(lambda tx: _happened(tx, source), timeout_s=_TIMEOUT_S)
        records = _records(happened)
        if len(records) <= _LOCKED_AT_ONCE or attempt == _ROUNDS - 1:
            if records:
                await source.deps.db.write(partial(_read_locked, source=source, ids=records), timeout_s=_TIMEOUT_S)
            source.spool.add(nodes=happened)
            return
        for start in range(0, len(records), _LOCKED_AT_ONCE):
            part = records[start : start + _LOCKED_AT_ONCE]
            await source.deps.db.read(partial(_read_again, source=source, ids=part), timeout_s=_TIMEOUT_S)
        source.spool.add(nodes=happened)


async def _happened(tx: Tx, source: _Source) -> list[Node]:
    """Events that the spool does not hold yet."""
    found = source.spool.unknown(await archives.events_since(tx, source.org_id, since=source.since))
    if any(one.properties["kind"] == "erased" for one in found):
        raise _Erased
    return found


def _records(happened: Iterable[Node]) -> list[str]:
    return sorted({one.record for one in happened})


async def _read_again(tx: Tx, source: _Source, ids: Sequence[str]) -> None:
    await _replace(tx, source, await archives.around(tx, source.org_id, ids))


async def _read_locked(tx: Tx, source: _Source, ids: Sequence[str]) -> None:
    """As `_read_again`, while nobody changes the records, and with all that changed meanwhile.

    Where that never ends, at last only with what changed together with one of them.
    """
    held: set[str] = set()
    wanted = set(await archives.around(tx, source.org_id, ids))
    for _ in range(_ROUNDS):
        held |= wanted
        await archives.lock(tx, source.org_id, sorted(held), lock=source.spool.path.name)
        await _read_small(source)
        wanted = set(await archives.around(tx, source.org_id, _records(await _happened(tx, source)))) - held
        if not wanted:
            break
    while wanted := wanted & set(await archives.around(tx, source.org_id, sorted(held))) - held:
        held |= wanted
        await archives.lock(tx, source.org_id, sorted(held), lock=source.spool.path.name)
        wanted = set(await archives.around(tx, source.org_id, _records(await _happened(tx, source))))
    await _replace(tx, source, sorted(held))


async def _read_small(source: _Source) -> None:
    for kind in KINDS:
        if kind not in _LARGE:
            source.spool.forget_kind(kind)
            await _read_kind(source, kind)


async def _replace(tx: Tx, source: _Source, ids: Sequence[str]) -> None:
    nodes, edges = await archives.of_records(tx, source.org_id, ids, space=source.space)
    source.spool.forget(ids)
    source.spool.add(nodes, edges)


async def _batches(found: AsyncGenerator[T, None]) -> AsyncGenerator[list[T], None]:
    batch: list[T] = []
    async for one in found:
        batch.append(one)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch
