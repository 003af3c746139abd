"""The commands. Each module of this package has a `commands` that is mounted here without a prefix."""

import sys

import typer

from graph_mem.cli import (
    context,
    data,
    database,
    doctor,
    history,
    housekeeping,
    instance,
    people,
    processes,
    retrieval,
)
from graph_mem.cli.output import fail
from graph_mem.errors import GraphMemError

app = typer.Typer(
    name="graph-mem",
    help="Institutional memory kept true: memories, facts and supersession on Neo4j, served over GraphQL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _module in (instance, processes, doctor, database, people, data, retrieval, history, context, housekeeping):
    app.add_typer(_module.commands)


def main() -> None:
    """Run a command; an error of ours becomes a sentence and status 1."""
    try:
        app()
    except GraphMemError as problem:
        fail(problem, as_json="--json" in sys.argv)
