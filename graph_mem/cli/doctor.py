"""`doctor`: what this machine lacks, and how to mend it."""

import asyncio
import shutil
import socket
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from graph_mem.cli.access import complete, open_database
from graph_mem.cli.documents import as_object
from graph_mem.cli.output import DataDirOption, JsonOption, Output, settings_for
from graph_mem.config import Settings
from graph_mem.errors import GraphMemError, PortInUse, SetupError
from graph_mem.local.artifacts import Cache, read_lock
from graph_mem.local.conf import GIB, MIB
from graph_mem.local.folder import DataFolder
from graph_mem.local.java import find_java
from graph_mem.local.server import choose_port
from graph_mem.local.weights import is_sound
from graph_mem.store.server import inspect, require

commands = typer.Typer()

ROOM_GIB = 2
"""An empty instance takes 0.3 GiB; 200,000 records took 1.5 (measured)."""


class State(StrEnum):
    FINE = "FINE"
    NOTE = "NOTE"
    BROKEN = "BROKEN"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `mend` says what to do about it."""

    what: str
    state: State
    found: str
    mend: str | None = None


@commands.command()
def doctor(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """Look at everything an instance needs; status 1 if something is broken."""
    output, settings = Output(as_json=as_json), settings_for(data_dir)
    findings = [*examine_machine(settings), *asyncio.run(collect(settings))]
    document = {"findings": [as_object(finding) for finding in findings]}
    output.show(document, as_table(findings))
    if any(finding.state is State.BROKEN for finding in findings):
        raise typer.Exit(1)


def examine_machine(settings: Settings) -> Generator[Finding]:
    """What can be seen without a database."""
    yield examine_java(settings)
    yield from examine_cache(settings)
    yield examine_room(settings)
    folder = DataFolder(settings.data_dir)
    holder = folder.holder()
    yield Finding("Instance", State.FINE, f"process {holder} on {folder.root}" if holder else "none is running here")
    if holder is None:
        yield from examine_ports(settings)


def examine_java(settings: Settings) -> Finding:
    """Which Java will run Neo4j."""
    try:
        java = find_java(settings.java_home)
    except SetupError as problem:
        return Finding("Java", State.BROKEN, problem.message, "Install a JDK, or set GRAPH_MEM_JAVA_HOME.")
    found = f"{java.version} at {java.executable}"
    if java.has_vector_module:
        return Finding("Java", State.FINE, found)
    return Finding("Java", State.NOTE, f"{found}, without vector module", "A full JDK halves the cost of a search.")


def examine_cache(settings: Settings) -> Generator[Finding]:
    """What must still be downloaded."""
    cache, lock = Cache(settings.cache_dir), read_lock()
    missing = cache.missing(lock.of("lib", "plugin"))
    size = sum(artifact.size for artifact in missing)
    if missing:
        yield Finding("Neo4j", State.NOTE, f"{len(missing)} files are missing", f"`up` fetches {size // MIB} MiB.")
    else:
        yield Finding("Neo4j", State.FINE, f"{lock.neo4j} with GDS {lock.gds}, complete in {cache.folder}")
    folder = cache.folder / "models" / lock.model
    if settings.embedder in ("e5-small-v2", "onnx"):
        whole = all(is_sound(folder, file) for file in lock.model_files)
        found = f"{lock.model}, complete" if whole else f"{lock.model} is missing"
        yield Finding("Model", State.FINE if whole else State.NOTE, found, None if whole else "`up` fetches 24 MiB.")
    else:
        yield Finding("Model", State.FINE, f"{settings.embedder}, chosen by GRAPH_MEM_EMBEDDER")


def examine_room(settings: Settings) -> Finding:
    """Whether the data folder's disk has room, and we may write there."""
    existing = next(path for path in (settings.data_dir, *settings.data_dir.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if not writable(existing):
        return Finding("Data", State.BROKEN, f"{existing} is not writable", "Set GRAPH_MEM_DATA_DIR.")
    state = State.FINE if free > ROOM_GIB * GIB else State.NOTE
    mend = None if state is State.FINE else f"Have {ROOM_GIB} GiB free, or set GRAPH_MEM_DATA_DIR."
    return Finding("Data", state, f"{free / GIB:.1f} GiB free for {settings.data_dir}", mend)


def examine_ports(settings: Settings) -> Generator[Finding]:
    """Whether the ports that `up` would use are free."""
    wanted = {"API": settings.port}
    if settings.neo4j_uri is None:
        wanted |= {"Bolt": settings.neo4j_port, "HTTP": settings.neo4j_http_port}
    for purpose, port in wanted.items():
        try:
            choose_port(port, purpose)
        except PortInUse as problem:
            yield Finding("Port", State.BROKEN, problem.message, "`graph-mem up --help` shows how to choose others.")
        else:
            yield Finding("Port", State.FINE, f"{port or 'any'} for {purpose}")


async def collect(settings: Settings) -> list[Finding]:
    """What can be seen of the database."""
    return [finding async for finding in examine_database(settings)]


async def examine_database(settings: Settings) -> AsyncGenerator[Finding]:
    """Whether Neo4j answers and is enough."""
    if settings.neo4j_uri is None and DataFolder(settings.data_dir).neo4j_home.process() is None:
        yield Finding("Database", State.NOTE, "not running", "`graph-mem up` starts it.")
        return
    try:
        async with open_database(complete(settings)) as database:
            info = await inspect(database)
            require(info)
    except (GraphMemError, socket.gaierror, ValueError) as problem:
        yield Finding("Database", State.BROKEN, str(problem), "See GRAPH_MEM_NEO4J_URI, _USER and _PASSWORD.")
        return
    yield Finding("Database", State.FINE, f"Neo4j {info.version} {info.edition}")
    if info.gds is None:
        yield Finding("GDS", State.NOTE, "not installed", "Centrality is then computed here, which is slower.")
    else:
        yield Finding("GDS", State.FINE, info.gds)


def writable(folder: Path) -> bool:
    """Whether a file can be made there."""
    probe = folder / ".graph-mem-doctor"
    try:
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def as_table(findings: list[Finding]) -> Table:
    """One finding a line, the way out beside it."""
    colour = {State.FINE: "green", State.NOTE: "yellow", State.BROKEN: "red"}
    table = Table(box=None)
    for name in ("", "", "Found", "Mend"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        state = Text(finding.state, style=colour[finding.state])
        table.add_row(state, finding.what, Text(finding.found), Text(finding.mend or ""))
    return table
