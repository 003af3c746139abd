"""`export` and `restore`: organizations in a file, while the service runs."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.text import Text

from graph_mem.cli.access import complete, open_database, require_suitable
from graph_mem.cli.output import DataDirOption, JsonOption, Output, settings_for
from graph_mem.cli.people import Desk
from graph_mem.config import Settings
from graph_mem.core.text import how_many
from graph_mem.core.vectors import Placed
from graph_mem.errors import InvalidInput, SetupError

commands = typer.Typer()

T = TypeVar("T")


@commands.command()
def export(
    target: Annotated[Path, typer.Argument(dir_okay=False, help="A new file: gzipped JSON Lines.", metavar="FILE")],
    organization: Annotated[
        str | None, typer.Option("--org", help="Name or id of the organization; without it, all.", show_default=False)
    ] = None,
    without_vectors: Annotated[
        bool, typer.Option("--without-vectors", help="A quarter of the size; a restore makes them anew.")
    ] = False,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Write organizations into a file while they are in use; run it again if it was broken off."""
    from graph_mem.services import exports

    async def work(desk: Desk, model: Placed) -> exports.Exported:
        return await exports.export(
            desk, target.absolute(), organization=organization, model=model, vectors=not without_vectors
        )

    try:
        done = _with_database(complete(settings_for(data_dir)), work)
    except sqlite3.Error as problem:
        raise SetupError(
            f"{target}.partial cannot be used ({problem}); remove it, or export to another file."
        ) from None
    names = list(done.header.organizations.values())
    document = {
        "file": str(target),
        "organizations": names,
        "nodes": done.footer.nodes,
        "edges": done.footer.edges,
        "bytes": target.stat().st_size,
        "vectors": done.header.model is not None,
        "restarted": done.restarted,
    }
    said = f"Exported {', '.join(names)}: {done.footer.nodes:,} nodes, {done.footer.edges:,} edges into {target}."
    again = f" Something was erased {done.restarted} times meanwhile, so it began anew." if done.restarted else ""
    Output(as_json=as_json).show(document, Text(said + again))


@commands.command()
def restore(
    source: Annotated[
        Path | None,
        typer.Argument(exists=True, dir_okay=False, help="What `export` wrote.", metavar="FILE", show_default=False),
    ] = None,
    discard: Annotated[
        bool, typer.Option("--discard", help="Instead: remove what broken-off restores have brought in. Needs no file.")
    ] = False,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Bring organizations of an export back, where they do not exist; run it again if it was broken off."""
    if discard == (source is not None):
        raise InvalidInput("Expected either an archive to restore or --discard.", path=("FILE",))
    settings, output = complete(settings_for(data_dir)), Output(as_json=as_json)
    if source is None:
        _discard(settings, output)
    else:
        _restore(settings, output, source)


def _discard(settings: Settings, output: Output) -> None:
    from graph_mem.services import discards

    async def work(desk: Desk, _: Placed) -> discards.Discarded:
        return await discards.discard(desk)

    done = _with_database(settings, work)
    taken = f"Discarded {how_many(done.restores, 'unfinished restore')}: {how_many(done.nodes, 'node')}."
    said = taken if done.restores else "No restore was broken off here: nothing to discard."
    output.show({"restores": done.restores, "nodes": done.nodes}, Text(said))


def _restore(settings: Settings, output: Output, source: Path) -> None:
    from graph_mem import app
    from graph_mem.services import restores

    async def work(desk: Desk, model: Placed) -> restores.Restored:
        await require_suitable(settings)
        await app.prepare(settings)
        return await restores.restore(desk, source, model=model)

    done = _with_database(settings, work)
    names = list(done.header.organizations.values())
    document = {
        "organizations": names,
        "nodes": done.footer.nodes,
        "edges": done.footer.edges,
        "resumedAt": done.resumed_at,
        "toEmbed": done.to_embed,
    }
    said = f"Restored {', '.join(names)}: {done.footer.nodes:,} nodes, {done.footer.edges:,} edges."
    left = f" The worker makes the vectors of {done.to_embed:,} records; words find them now." if done.to_embed else ""
    output.show(document, Text(said + left))


def _with_database(settings: Settings, work: Callable[[Desk, Placed], Awaitable[T]]) -> T:
    """The result of `work`, with a pool on the database and the model whose vectors it holds; none is loaded."""
    from graph_mem import app

    async def act() -> T:
        async with open_database(settings) as database:
            return await work(Desk(database), await app.in_force(settings, database))

    return asyncio.run(act())
