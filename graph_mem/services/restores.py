"""Brings the organizations of an archive back, in batches that each note how far they came."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from graph_mem.core.archive import Edge, Footer, Header, Model, Node, astray
from graph_mem.core.model import OrganizationId, RecordId
from graph_mem.core.vectors import Placed, Space
from graph_mem.errors import AlreadyThere, ArchiveDamaged, ArchiveUnsupported, Conflict
from graph_mem.local import archive
from graph_mem.services.admin import AdminDeps
from graph_mem.services.revectoring import VECTORS
from graph_mem.store import archives, jobs, tenants
from graph_mem.store.db import Tx
from graph_mem.store.jobs import NewJob
from graph_mem.store.times import ms

_BATCH = 500
_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Restored:
    """What came back. `resumed_at`: lines that an earlier, broken-off restore had brought; `to_embed`: records whose
    vectors the worker makes anew."""

    header: Header
    footer: Footer
    resumed_at: int
    to_embed: int


@dataclass(frozen=True, slots=True)
class _Step:
    """Lines that one transaction restores; `line` is how many are restored after it."""

    line: int
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    to_embed: tuple[Node, ...] = ()

    @property
    def size(self) -> int:
        return len(self.nodes) + len(self.edges) + len(self.to_embed)


async def restore(deps: AdminDeps, source: Path, *, model: Placed) -> Restored:
    """Bring back what the archive holds; a restore of the same archive that was broken off goes on where it was.

    The whole file is checked before anything is written. An organization here that is called as one of the archive, or
    is it, and holds nothing but members gives way to it, as do names of people who are members nowhere.

    Errors: ArchiveDamaged, ArchiveUnsupported, AlreadyThere; Conflict if the same archive is being restored by
    somebody else.
    """
    header, footer, people = await _checked(deps, source)
    key = footer.sha256
    begun = await deps.db.write(lambda tx: _begin(tx, deps, key, header, people), timeout_s=_TIMEOUT_S)
    if begun < 0:
        raise Conflict("A restore of this archive is being discarded; discard it to the end first.")
    embed = header.model != Model(model.source.model, model.source.dimension)
    space = None if embed else model.space
    to_embed, after = 0, begun
    for step in _steps(source, embed=embed):
        to_embed += len(step.to_embed)
        if step.line > begun:
            await _take(deps, key, step, after=after, space=space)
            after = step.line
    await deps.db.write(lambda tx: archives.done(tx, key))
    return Restored(header, footer, begun, to_embed)


async def _checked(deps: AdminDeps, source: Path) -> tuple[Header, Footer, Mapping[str, str]]:
    """The archive's first and last line, once it is known to be whole and understood, and its people's names by id."""
    header, footer = None, None
    people: dict[str, str] = {}
    for line in archive.lines(source):
        if isinstance(line, Header):
            header = line
        elif isinstance(line, Footer):
            footer = line
        elif isinstance(line, Node):
            if header is None or astray(line, header.organizations):
                raise ArchiveDamaged(f"Found {line.kind} {line.key} at no place of an organization in the archive.")
            if line.kind == "User" and "name" in line.properties:
                people[line.key] = line.properties["name"]
    if header is None or footer is None:
        raise ArchiveDamaged(f"{source} is empty.")
    schema = await deps.db.read(archives.schema_version)
    if header.schema > schema:
        raise ArchiveUnsupported(f"The archive has schema {header.schema}, this database {schema}: upgrade first.")
    return header, footer, people


async def _begin(tx: Tx, deps: AdminDeps, key: str, header: Header, people: Mapping[str, str]) -> int:
    """How far a restore of the archive came before; one that is new is noted, once it has a place here."""
    now, organizations = deps.clock(), header.organizations
    begun = await archives.begun(tx, key)
    if not begun:
        for org_id in await archives.empty(tx, organizations=organizations):
            await tenants.lock_organization(tx, org_id, at=now)
            await tenants.remove_organization(tx, org_id, at=now)
        await tenants.release_names(tx, await archives.nobody(tx, people=people), at=now)
    taken = await archives.there(tx, organizations={} if begun else organizations, people=people)
    if taken:
        raise AlreadyThere(
            f"Found here already: {', '.join(taken[:5])}. An archive is restored where its organizations hold nothing"
            " and the names of its people are free: `graph-mem org remove --org NAME` takes away an organization in"
            " which nothing was saved, and ends the memberships in it; any other archive goes into an empty database."
        )
    return await archives.begin(tx, key, organizations=organizations, at=ms(now))


def _steps(source: Path, *, embed: bool) -> Iterator[_Step]:
    """The archive in pieces, always the same ones; at the end the work that vectors are to be made by."""
    line = 0
    for step in _pieces(archive.lines(source)):
        line += step.size
        yield _Step(line, step.nodes, step.edges)
    if embed:
        bare = (one for one in archive.lines(source) if isinstance(one, Node) and _needs_vectors(one))
        for step in _pieces(bare):
            line += step.size
            yield _Step(line, to_embed=step.nodes)


def _pieces(lines: Iterable[object]) -> Iterator[_Step]:
    """Nodes, or edges, that follow each other."""
    nodes: list[Node] = []
    edges: list[Edge] = []
    for line in lines:
        full = len(nodes) + len(edges) == _BATCH
        if full or (nodes and isinstance(line, Edge)) or (edges and isinstance(line, Node)):
            yield _Step(0, tuple(nodes), tuple(edges))
            nodes, edges = [], []
        if isinstance(line, Node):
            nodes.append(line)
        elif isinstance(line, Edge):
            edges.append(line)
    if nodes or edges:
        yield _Step(0, tuple(nodes), tuple(edges))


def _needs_vectors(node: Node) -> bool:
    """Whether passages of the record, which the archive holds, are to be embedded."""
    if node.kind == "Fact":
        return "statement" in node.properties
    return node.kind == "Memory" and "Pending" not in node.labels and "text" in node.properties


async def _take(deps: AdminDeps, key: str, step: _Step, *, after: int, space: Space | None) -> None:
    made = [
        NewJob(
            id=deps.new_id("job"),
            kind=VECTORS,
            record_id=RecordId(one.key),
            org_id=OrganizationId(one.properties["org"]),
            partition=one.properties["partition"],
            rank=rank,
        )
        for rank, one in enumerate(step.to_embed, start=step.line - step.size)
    ]

    async def work(tx: Tx) -> None:
        if not await archives.advance(tx, key, after=after, line=step.line):
            raise Conflict("The same archive is being restored by somebody else.")
        await archives.brings(tx, key, step.nodes)
        await archives.create(tx, step.nodes, space=space)
        if await archives.connect(tx, step.edges) != len(step.edges):
            raise ArchiveDamaged("Found an edge whose ends the archive does not hold.")
        await jobs.enqueue(tx, made, now=deps.clock())

    await deps.db.write(work, timeout_s=_TIMEOUT_S)
