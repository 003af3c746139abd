"""What every command shares: its options, its settings, and how it answers people and programs."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from graph_mem.cli.tables import fitted
from graph_mem.config import Settings
from graph_mem.errors import GraphMemError, InvalidInput, SetupError

JsonOption = Annotated[bool, typer.Option("--json", help="Answer with one JSON document, on the last line.")]
DataDirOption = Annotated[
    Path | None, typer.Option("--data-dir", help="Where the instance keeps its state.", show_default=False)
]

HostOption = Annotated[str | None, typer.Option("--host", help="Address the API listens on.", show_default=False)]
PortOption = Annotated[
    int | None, typer.Option("--port", help="Port of the API; 0 is any free one.", show_default=False)
]


_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


@dataclass(frozen=True, slots=True)
class Harmless:
    """A view without control characters: what somebody saved must not move the cursor, or colour what stands beside."""

    view: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.view, options):
            yield Segment(text.translate(_CONTROLS), style, control)


class Output:
    """Tables for people on stdout, or one JSON document for programs; everything else goes to stderr."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.notes = Console(stderr=True, markup=False)

    def note(self, text: str) -> None:
        """Say something that is not the answer."""
        self.notes.print(text, highlight=False)

    def show(self, document: object, *views: RenderableType) -> None:
        """The answer: `document` for programs, `views` for people. A bare text is never broken: it may be a token."""
        if self.as_json:
            print(json.dumps(document, default=str), flush=True)
        else:
            for view in views:
                console = Console(markup=False)
                fitted(view, console)
                console.print(Harmless(view), highlight=False, soft_wrap=isinstance(view, Text))


def settings_for(data_dir: Path | None = None, **chosen: Any) -> Settings:
    """The environment's settings, with what the command line chose instead.

    Errors: SetupError naming the setting; never its value, which may be a secret.
    """
    given: dict[str, Any] = {
        name: value for name, value in {"data_dir": data_dir, **chosen}.items() if value is not None
    }
    try:
        return Settings(**given)
    except ValidationError as problem:
        wrong = problem.errors(include_input=False, include_url=False, include_context=False)
        places = [f"GRAPH_MEM_{'_'.join(map(str, error['loc'])).upper()}: {error['msg']}" for error in wrong]
        raise SetupError("; ".join(places)) from None


def write_error(problem: GraphMemError) -> None:
    """The error as programs read it."""
    print(json.dumps({"error": {"code": problem.code, "message": _said(problem)}}), flush=True)


def _said(problem: GraphMemError) -> str:
    """The message, with the name of the value that it is about unless it tells that itself."""
    path = problem.path if isinstance(problem, InvalidInput) else ()
    told = any(name.casefold() in problem.message.casefold() for name in path)
    return problem.message if told or not path else f"{'.'.join(path)}: {problem.message}"


def fail(problem: GraphMemError, *, as_json: bool) -> None:
    """Answer with the error and end with status 1."""
    if as_json:
        write_error(problem)
    Console(stderr=True).print(Harmless(Text.assemble((problem.code, "red"), " ", _said(problem))))
    sys.exit(1)
