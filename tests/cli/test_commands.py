"""Every command is found, and each where the table says."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from graph_mem.cli import COMMANDS, app, commands_of


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
