"""The commands. Each module of this package has a `commands`; only the one that is called is imported.

A command that gives a token must not wait for what serves an API.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperGroup
from typer.main import get_group

from graph_mem.cli.output import fail
from graph_mem.errors import GraphMemError

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "instance": ("up", "down", "status", "logs"),
    "processes": ("serve", "worker", "migrate", "fetch"),
    "doctor": ("doctor",),
    "database": ("db",),
    "people": ("token", "org", "user", "assign", "key"),
    "data": ("import",),
    "backup": ("export", "restore"),
    "reembedding": ("reembed",),
    "retrieval": ("search", "sweep"),
    "history": ("history", "chain", "fact"),
    "context": ("context", "run-trace"),
    "housekeeping": (
        "consolidate",
        "review",
        "archive",
        "validate",
        "trust",
        "rehearsals",
        "erase",
        "export-pairs",
    ),
}
"""The commands of each module, in the order in which help lists them."""

_MODULE_OF = {name: module for module, names in COMMANDS.items() for name in names}


class Lazy(TyperGroup):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 # click's signature
        return list(_MODULE_OF)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 # click's signature
        module = _MODULE_OF.get(cmd_name)
        return None if module is None else commands_of(module).get(cmd_name)


def commands_of(module: str) -> Mapping[str, Any]:
    """What `graph_mem.cli.<module>` defines, by name."""
    found = cast("typer.Typer", import_module(f"graph_mem.cli.{module}").commands)
    return get_group(found).commands


app = typer.Typer(
    cls=Lazy,
    name="graph-mem",
    help="Institutional memory kept true: memories, facts and supersession on Neo4j, served over GraphQL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Makes this a group though no command is registered here."""


def main() -> None:
    """Run a command; an error of ours becomes a sentence and status 1."""
    try:
        app()
    except GraphMemError as problem:
        fail(problem, as_json="--json" in sys.argv)
