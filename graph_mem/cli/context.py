"""What an agent would see before a run, and what one saw."""

import asyncio
from typing import Annotated
from uuid import uuid4

import typer

from graph_mem.cli.access import LOCAL_ORGANIZATION, LOCAL_USER, OrganizationOption, UserOption, complete
from graph_mem.cli.output import DataDirOption, JsonOption, Output, settings_for

commands = typer.Typer()


@commands.command("context")
def context_(
    instruction: Annotated[str, typer.Argument(help="What the run is to do.")],
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    client: Annotated[str | None, typer.Option("--client", help="Name of the client it works for.")] = None,
    deal: Annotated[str | None, typer.Option("--deal", help="Name of the deal it works on.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Names the run; a new name if left out.")] = None,
    budget: Annotated[int, typer.Option("--budget", help="Tokens for both parts.")] = 4000,
    search: Annotated[bool, typer.Option("--search", help="Search for the instruction too.")] = False,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Print what an agent sees before a run, and keep its account."""
    from graph_mem.cli.assembly import Asked, assemble

    asked = Asked(
        organization=organization,
        user=user,
        client=client,
        deal=deal,
        run_id=run or f"cli-{uuid4()}",
        instruction=instruction,
        budget_tokens=budget,
        search=search,
    )
    asyncio.run(assemble(complete(settings_for(data_dir)), asked, Output(as_json=as_json)))


@commands.command("run-trace")
def run_trace(
    run: Annotated[str, typer.Argument(help="The run.")],
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Print the prefix that a run saw, byte for byte, from the versions that its account names."""
    from graph_mem.cli.assembly import show_run

    settings, output = complete(settings_for(data_dir)), Output(as_json=as_json)
    asyncio.run(show_run(settings, organization=organization, user=user, run_id=run, output=output))
