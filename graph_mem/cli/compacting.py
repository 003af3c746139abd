"""`db compact`: the database written anew, so that no file of it holds what was erased or freed."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from graph_mem import app
from graph_mem.cli.access import engine_for, open_database, with_address
from graph_mem.cli.instance import size_of
from graph_mem.cli.output import Output
from graph_mem.cli.people import Desk
from graph_mem.config import Settings
from graph_mem.core.vectors import FIRST, Placed, Source, Vectorings
from graph_mem.errors import SetupError
from graph_mem.local import swap
from graph_mem.local.conf import Ports
from graph_mem.local.dump import require_stopped
from graph_mem.local.server import LocalServer
from graph_mem.services import exports, restores
from graph_mem.store import archives, spaces
from graph_mem.store.archives import Census

ANY = Ports(bolt=0, http=0)


@dataclass(frozen=True, slots=True)
class Compacted:
    """What the new store holds, and the bytes of the old and the new one."""

    census: Census
    bytes_before: int
    bytes_after: int


def compact(settings: Settings, output: Output) -> Compacted:
    """Write the stopped instance's database anew and put it in the place of the old one. The folder is held.

    Errors: SetupError if it runs, is empty, lacks room, or the new store does not hold exactly what the old one does.
    """
    root, engine = settings.data_dir.resolve(), engine_for(settings, output)
    old, new = LocalServer(root / "neo4j", engine), LocalServer(swap.beside(root), engine)
    require_stopped(old)
    if not old.home.has_data:
        raise SetupError(f"There is nothing to compact: {old.home.path} holds no database.")
    before = size_of(old.home.path)
    if shutil.disk_usage(root).free < 2 * before:
        raise SetupError(f"The new store may need {2 * before:,} bytes beside the old one; {root} has less left.")
    try:
        file = _empty(root / "compacting") / "all.gz"
        output.note("Reading the old store.")
        counted, model = asyncio.run(_out(settings, old, file))
        _take_over_users(old.home.path, new.home.path)
        output.note(f"Writing {counted.nodes:,} nodes and {counted.edges:,} edges to the new one.")
        written = asyncio.run(_in(app.with_source(settings, model), new, file))
        if written != counted:
            raise SetupError(f"The new store holds {written}, expected {counted}: the old one stays.")
    finally:
        shutil.rmtree(root / "compacting", ignore_errors=True)
    swap.swap(root)
    return Compacted(counted, before, size_of(old.home.path))


def _empty(folder: Path) -> Path:
    """The folder, readable by its user only, without what a broken-off run left in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


def _take_over_users(old: Path, new: Path) -> None:
    """Neo4j keeps its users, and their passwords, in a database of their own, which holds nothing that was captured."""
    for part in ("databases", "transactions"):
        shutil.copytree(old / "data" / part / "system", new / "data" / part / "system")


async def _out(settings: Settings, server: LocalServer, file: Path) -> tuple[Census, Source]:
    """Export everything; returns what there is, and the model in force."""
    async with _running(settings, server) as reached, open_database(reached) as database:
        placed = await app.in_force(reached, database)
        await exports.export(Desk(database), file, organization=None, model=placed)
        return await database.read(archives.census), placed.source


async def _in(settings: Settings, server: LocalServer, file: Path) -> Census:
    """Restore everything, and have the same model in force; returns what there is."""
    async with _running(settings, server) as reached, open_database(reached) as database:
        placed = Placed(app.source_of(settings), FIRST)
        await restores.restore(Desk(database), file, model=placed)
        await database.write(lambda tx: spaces.write(tx, Vectorings(1, placed)))
        return await database.read(archives.census)


@asynccontextmanager
async def _running(settings: Settings, server: LocalServer) -> AsyncGenerator[Settings]:
    """Settings that name the server, which runs with its schema for as long as the context lasts."""
    reached = with_address(settings, await asyncio.to_thread(server.start, ANY))
    try:
        await app.prepare(reached)
        yield reached
    finally:
        await asyncio.to_thread(server.stop)
