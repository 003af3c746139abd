"""`serve`, `worker`, `migrate`: the parts of an instance, each as a process of its own."""

from contextlib import nullcontext
from enum import StrEnum
from socket import socket
from typing import Annotated

import typer
from rich.text import Text

from graph_mem.cli import serving
from graph_mem.cli.access import complete, require_suitable
from graph_mem.cli.output import DataDirOption, HostOption, JsonOption, Output, PortOption, settings_for
from graph_mem.cli.telemetry import observed
from graph_mem.local.artifacts import Cache, read_lock
from graph_mem.local.weights import default_weights
from graph_mem.models.folder import complete_model_folder

commands = typer.Typer()


class Part(StrEnum):
    NEO4J = "neo4j"
    GDS = "gds"
    MODEL = "model"


@commands.command()
def serve(
    as_json: JsonOption = False, data_dir: DataDirOption = None, host: HostOption = None, port: PortOption = None
) -> None:
    """Serve the API alone, on the given Neo4j or the one of the running instance; any number may."""
    from graph_mem import app

    output = Output(as_json=as_json)
    settings = complete(settings_for(data_dir, host=host, port=port))

    async def main(listener: socket) -> None:
        url = f"{serving.url_of(listener)}/graphql"
        await require_suitable(settings)
        await app.prepare(settings)
        async with serving.started(app.build(settings), listener) as running:
            await serving.warmed(settings)
            output.show({"graphql": url}, Text(f"Serving {url}; Ctrl-C stops."))
            await serving.until_any(running)

    with serving.bind(settings.host, settings.port) as listener, observed(settings):
        serving.run(serving.until_stopped(main(listener)))


@commands.command()
def worker(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """Work on jobs alone, on the given Neo4j or the one of the running instance; any number may."""
    from graph_mem import app

    output = Output(as_json=as_json)
    settings = complete(settings_for(data_dir))

    async def main(listener: socket | None) -> None:
        await require_suitable(settings)
        await app.prepare(settings)
        if listener is None:
            output.show({"working": True}, Text("Working; Ctrl-C stops."))
            await app.run_worker(settings)
            return
        url = serving.url_of(listener)
        async with serving.started(app.build_worker(settings), listener) as running:
            output.show({"working": True, "metrics": f"{url}/metrics"}, Text(f"Working, see {url}; Ctrl-C stops."))
            await serving.until_any(running)

    port = settings.worker_port
    with nullcontext() if port is None else serving.bind(settings.host, port) as listener, observed(settings):
        serving.run(serving.until_stopped(main(listener)))


@commands.command()
def migrate(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """Bring the schema of the database up to date; safe while others do the same."""
    from graph_mem import app

    output = Output(as_json=as_json)
    settings = complete(settings_for(data_dir))

    async def main() -> list[str]:
        await require_suitable(settings)
        return await app.prepare(settings)

    applied = serving.run(main())
    output.show({"applied": applied}, Text(f"Applied: {', '.join(applied)}" if applied else "Nothing to apply."))


@commands.command()
def fetch(
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
    only: Annotated[Part | None, typer.Option("--only", help="Fetch this part alone.", show_default=False)] = None,
) -> None:
    """Download what an instance needs, so that the first `up` needs no network: for images and closed networks."""
    output, settings = Output(as_json=as_json), settings_for(data_dir)
    cache, lock = Cache(settings.cache_dir, mirror=settings.maven_mirror, console=output.notes), read_lock()
    if only in (None, Part.NEO4J):
        cache.ensure(lock.of("lib"))
    if only in (None, Part.NEO4J, Part.GDS):
        cache.ensure(lock.of("plugin"))
    if only in (None, Part.MODEL):
        complete_model_folder(default_weights(cache, lock))
    output.show({"cache": str(cache.folder)}, Text(f"Complete in {cache.folder}."))
