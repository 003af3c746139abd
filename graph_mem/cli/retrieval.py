"""Searching from a terminal, and fitting search to an organization's own questions."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from graph_mem.cli.access import LOCAL_ORGANIZATION, LOCAL_USER, OrganizationOption, UserOption, complete
from graph_mem.cli.output import DataDirOption, JsonOption, Output, settings_for

commands = typer.Typer()


@commands.command()
def search(
    text: Annotated[str, typer.Argument(help="The question, or some words.")],
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    client: Annotated[str | None, typer.Option("--client", help="Only this client and what is around it.")] = None,
    deal: Annotated[str | None, typer.Option("--deal", help="Only this deal and what is around it.")] = None,
    first: Annotated[int, typer.Option("--first", min=1, max=100, help="How many results.")] = 10,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Show what answers a question, with tier and score."""
    from graph_mem.cli.searching import Asked, show_results  # models load slowly

    asked = Asked(organization=organization, user=user, client=client, deal=deal, text=text, first=first)
    asyncio.run(show_results(complete(settings_for(data_dir)), asked, Output(as_json=as_json)))


@commands.command()
def sweep(
    labelled: Annotated[
        Path,
        typer.Argument(
            exists=True,
            dir_okay=False,
            metavar="FILE",
            help='JSON Lines: {"query": "...", "relevant": ["mem_...", ...]} in each; '
            'with --gate {"signals": {...}, "keep": true}.',
        ),
    ],
    gate: Annotated[bool, typer.Option("--gate", help="Fit the consolidation gate instead of search.")] = False,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    apply: Annotated[bool, typer.Option("--apply", help="Put the best setting in force.")] = False,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Find the weights, floor and tiers that answer labelled questions best; change nothing without --apply."""
    lines = labelled.read_text(encoding="utf-8").splitlines()
    if gate:
        from graph_mem.cli.gating import show_gate

        show_gate(lines, organization=organization, user=user, apply=apply, data_dir=data_dir, as_json=as_json)
        return
    from graph_mem.cli.searching import show_sweep  # models load slowly

    settings, output = complete(settings_for(data_dir)), Output(as_json=as_json)
    asyncio.run(show_sweep(settings, lines, organization=organization, user=user, apply=apply, output=output))
