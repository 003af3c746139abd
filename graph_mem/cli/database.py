"""`db dump`, `db load`, `db compact`: the files of an instance on this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from graph_mem.cli.access import local_server
from graph_mem.cli.output import DataDirOption, JsonOption, Output, settings_for
from graph_mem.config import Settings
from graph_mem.errors import SetupError
from graph_mem.local.dump import dump, load
from graph_mem.local.folder import DataFolder

commands = typer.Typer()
database = typer.Typer(help="Files of the local database, while it is stopped.", no_args_is_help=True)
commands.add_typer(database, name="db")


@database.command("dump")
def dump_command(
    target: Annotated[Path, typer.Argument(help="A new folder for the dump.")],
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Write the stopped instance, with its two secrets, into a folder that only you can read."""
    output, settings = Output(as_json=as_json), settings_for(data_dir)
    require_own_database(settings)
    with DataFolder(settings.data_dir).hold():
        size = dump(local_server(settings, output), target.resolve())
    output.show({"folder": str(target.resolve()), "bytes": size}, Text(f"Dumped {size:,} bytes into {target}."))


@database.command("load")
def load_command(
    source: Annotated[Path, typer.Argument(help="The folder of a dump.")],
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Drop what the instance holds now.")] = False,
) -> None:
    """Make the stopped instance what the dump holds; its tokens count again."""
    output, settings = Output(as_json=as_json), settings_for(data_dir)
    require_own_database(settings)
    with DataFolder(settings.data_dir).hold():
        load(local_server(settings, output), source.resolve(), replace=replace)
    output.show({"loaded": str(source.resolve())}, Text(f"Loaded {source} into {settings.data_dir}."))


@database.command("compact")
def compact_command(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """Write the stopped instance's database anew: no file, log or dump of it then holds what was erased."""
    from graph_mem.cli.compacting import compact

    output, settings = Output(as_json=as_json), settings_for(data_dir)
    require_own_database(settings)
    with DataFolder(settings.data_dir).hold():
        done = compact(settings, output)
    document = {
        "nodes": done.census.nodes,
        "edges": done.census.edges,
        "bytesBefore": done.bytes_before,
        "bytesAfter": done.bytes_after,
    }
    said = f"{done.census.nodes:,} nodes, {done.census.edges:,} edges; {done.bytes_before:,} bytes before,"
    output.show(document, Text(f"{said} {done.bytes_after:,} now. Dumps and exports made before are as they were."))


def require_own_database(settings: Settings) -> None:
    """These commands work on files; a Neo4j elsewhere is backed up by its own means, or by `graph-mem export`."""
    if settings.neo4j_uri is not None:
        raise SetupError("GRAPH_MEM_NEO4J_URI names a Neo4j elsewhere: use its own backup, or `graph-mem export`.")
