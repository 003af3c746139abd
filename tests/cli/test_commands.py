"""Every command is found, and each where the table says."""

import subprocess
import sys

import pytest
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from graph_mem.cli import COMMANDS, app, commands_of
from graph_mem.cli.output import Output


@pytest.mark.parametrize("module", COMMANDS)
def test_the_table_names_exactly_the_commands_of_each_module(module: str) -> None:
    assert tuple(commands_of(module)) == COMMANDS[module]


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert [name for names in COMMANDS.values() for name in names if name not in shown] == []


def test_an_unknown_command_is_refused() -> None:
    assert CliRunner().invoke(app, ["gossip"]).exit_code == 2


def test_a_token_is_given_without_importing_what_serves_an_api() -> None:
    code = (
        "import sys; from graph_mem.cli import commands_of; commands_of('people'); print('strawberry' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def test_what_people_wrote_is_shown_as_they_wrote_it(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("text")
    table.add_row("[/red] closes nothing, [bold] starts nothing")
    output = Output(as_json=False)
    output.show({}, table)
    output.note("a file called [/dim].md")
    shown = capsys.readouterr()
    assert "[/red] closes nothing, [bold] starts nothing" in shown.out
    assert "[/dim].md" in shown.err


def test_a_token_is_shown_whole_on_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    token = "t" * 300
    Output(as_json=False).show({}, Text(token, no_wrap=True, overflow="ignore"))
    assert capsys.readouterr().out == f"{token}\n"
