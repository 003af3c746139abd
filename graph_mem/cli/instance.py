"""`up`, `down`, `status`, `logs`: a whole instance on this machine."""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.table import Table
from rich.text import Text

from graph_mem.cli.output import DataDirOption, HostOption, JsonOption, Output, PortOption, settings_for
from graph_mem.errors import SetupError
from graph_mem.local.folder import DataFolder
from graph_mem.local.home import has_ended
from graph_mem.local.server import tail

commands = typer.Typer()

DOWN_TIMEOUT_S = 180.0
POLL_S = 0.1
NOT_RUNNING = 3
"""The exit status of a service that does not run, by the Linux Standard Base."""


@commands.command()
def up(
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
    host: HostOption = None,
    port: PortOption = None,
    neo4j_port: Annotated[int | None, typer.Option("--neo4j-port", help="Bolt port; 0 is any free one.")] = None,
    browser_port: Annotated[
        int | None, typer.Option("--browser-port", help="Port of Neo4j Browser; any free one with --neo4j-port 0.")
    ] = None,
) -> None:
    """Start database, API and worker; stay until Ctrl-C.

    With GRAPH_MEM_NEO4J_URI set no database is started and that one is used.
    """
    from graph_mem.cli.foreground import Foreground

    if browser_port is None and neo4j_port == 0:
        browser_port = 0
    settings = settings_for(data_dir, host=host, port=port, neo4j_port=neo4j_port, neo4j_http_port=browser_port)
    output = Output(as_json=as_json)
    folder = DataFolder(settings.data_dir)
    with folder.hold():
        Foreground(settings, output, folder).run()


@commands.command()
def down(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """Stop the instance that works on the data folder, and its database, wherever it was started."""
    output = Output(as_json=as_json)
    folder = DataFolder(settings_for(data_dir).data_dir)
    holder = folder.holder()
    if holder is not None:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            process = psutil.Process(holder)
            os.kill(holder, signal.SIGTERM)
            wait_until_ended(process, folder)
    orphan = folder.neo4j_home.stop()
    stopped = holder is not None or orphan
    output.show({"stopped": stopped}, Text("Stopped." if stopped else f"Nothing runs on {folder.root}."))


@commands.command()
def status(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """Tell what runs on the data folder, and where it listens; ends with status 3 if nothing does, or not yet."""
    output = Output(as_json=as_json)
    folder = DataFolder(settings_for(data_dir).data_dir)
    holder, announced, server = folder.holder(), folder.announced(), folder.neo4j_home.process()
    document = {
        "running": announced is not None,
        "pid": holder,
        "graphql": announced.graphql if announced else None,
        "neo4j": announced.neo4j if announced else None,
        "browser": announced.browser if announced else None,
        "neo4jPid": server.pid if server else None,
        "neo4jMemoryBytes": memory_of(server),
        "dataDir": str(folder.root),
        "diskBytes": size_of(folder.root),
    }
    output.show(document, as_table(document))
    if announced is None:
        raise typer.Exit(NOT_RUNNING)


@commands.command()
def logs(
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines.")] = 50,
    debug: Annotated[bool, typer.Option("--debug", help="Neo4j's own debug log instead of what it printed.")] = False,
) -> None:
    """Show the end of the local Neo4j's log. The API and the worker log to the terminal that `up` runs in."""
    output = Output(as_json=as_json)
    home = DataFolder(settings_for(data_dir).data_dir).neo4j_home
    path = home.path / "logs" / "debug.log" if debug else home.log
    if not path.is_file():
        raise SetupError(f"There is no log yet: {path} does not exist.")
    text = tail(path, lines)
    output.show({"file": str(path), "lines": text.splitlines()}, Text(text))


def wait_until_ended(process: psutil.Process, folder: DataFolder) -> None:
    """Wait for the end of the instance, which first stops its database cleanly."""
    deadline = time.monotonic() + DOWN_TIMEOUT_S
    while not has_ended(process):
        if time.monotonic() > deadline:
            raise SetupError(f"The instance on {folder.root} did not stop within {DOWN_TIMEOUT_S:.0f} s.")
        time.sleep(POLL_S)


def memory_of(process: psutil.Process | None) -> int | None:
    """Resident bytes of the process."""
    try:
        return process.memory_info().rss if process else None
    except psutil.NoSuchProcess:
        return None


def size_of(root: Path) -> int:
    """Bytes on disk under a folder; jars linked from the cache count as the cache's."""
    files = (path.lstat() for path in root.rglob("*") if path.is_file()) if root.is_dir() else ()
    return sum(stat.st_blocks * 512 for stat in files if stat.st_nlink == 1)


def as_table(document: Mapping[str, object]) -> Table:
    """Names and values, one a line."""
    table = Table(show_header=False, box=None)
    for name, value in document.items():
        table.add_row(Text(name, style="bold"), Text("-" if value is None else str(value)))
    return table
