"""`reembed`: moves a running instance to another embedding model."""

import asyncio
from typing import Annotated

import typer
from rich.text import Text

from graph_mem.cli.access import complete, open_database, require_suitable
from graph_mem.cli.output import DataDirOption, JsonOption, Output, settings_for
from graph_mem.cli.people import Desk
from graph_mem.config import Settings
from graph_mem.errors import InvalidInput

commands = typer.Typer()


@commands.command()
def reembed(
    model: Annotated[str, typer.Argument(help="The new model, as GRAPH_MEM_EMBEDDER names one.", metavar="MODEL")],
    dimension: Annotated[int | None, typer.Option("--dimension", help="Of its vectors, if not known.")] = None,
    url: Annotated[str | None, typer.Option("--url", help="Of the endpoint, for MODEL `openai`.")] = None,
    endpoint_model: Annotated[str | None, typer.Option("--endpoint-model", help="Model to ask it for.")] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Move to another embedding model while captures and searches go on; run it again if it was broken off."""
    from graph_mem import app
    from graph_mem.services import vectorings

    output, settings = Output(as_json=as_json), complete(settings_for(data_dir))
    chosen = settings.model_copy(
        update={
            "embedder": model,
            "embedder_dimension": dimension,
            "embedder_url": url or settings.embedder_url,
            "embedder_model": endpoint_model or settings.embedder_model,
        }
    )

    if model == "openai" and None in (chosen.embedder_url, chosen.embedder_model):
        raise InvalidInput("MODEL `openai` needs --url and --endpoint-model.", path=("MODEL",))

    async def main(known: Settings) -> vectorings.Moved:
        wanted = app.source_of(chosen)
        embedder = app.embedder_of(chosen, wanted)
        embedder.start()
        try:
            await require_suitable(known)
            await vectorings.require_usable(embedder)  # before the schema is prepared, too
            await app.prepare(known)
            async with open_database(known) as database:
                return await vectorings.reembed(
                    Desk(database),
                    embedder,
                    known=app.source_of(known),
                    wanted=wanted,
                    tell=lambda done: output.note(f"{done:,} embedded"),
                )
        finally:
            await embedder.aclose()

    done = asyncio.run(main(settings))
    said = f"{done.embedded:,} passages and facts embedded with {model}, which is in force in every process now."
    output.show({"embedded": done.embedded, "was": done.was.model, "model": model}, Text(said))
