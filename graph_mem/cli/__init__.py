"""The commands. Each module of this package has a `commands`; only the one that is called is imported.

A command that gives a token must not wait for what serves an API.
"""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_group

from graph_mem.cli.output import fail, write_error
from graph_mem.errors import GraphMemError, InvalidInput, SetupError

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
    """A group whose commands are imported when they are asked for, and whose usage errors programs can read, too."""

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with _readable():
            return super().make_context(info_name, args, parent=parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _readable():
            return super().invoke(ctx)

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
    """Run a command; an error of ours, or of the system, becomes a sentence and status 1."""
    try:
        app()
    except GraphMemError as problem:
        fail(problem, as_json=_as_json())
    except OSError as problem:
        fail(SetupError(_reason(problem)), as_json=_as_json())


@contextmanager
def _readable() -> Generator[None]:
    """What typer shows people of a wrong option or argument is a document for programs, too; it ends with status 2."""
    try:
        yield
    except TyperException as problem:
        if _as_json():
            write_error(InvalidInput(problem.format_message()))
        raise


def _as_json() -> bool:
    return "--json" in sys.argv


def _reason(problem: OSError) -> str:
    """Which file or folder it is about, and what the system says."""
    about = " to ".join(str(path) for path in (problem.filename, problem.filename2) if path is not None)
    reason = problem.strerror or str(problem) or type(problem).__name__
    return f"{about}: {reason}." if about else f"{reason}."
