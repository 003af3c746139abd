"""What commands show to people and to programs."""

import json

import pytest
from rich.table import Table
from rich.text import Text

from graph_mem.cli.output import Output

HOSTILE = "a\x1b[2J\x1b]0;owned\x07b\x9b31mc\rd\te"


def test_what_somebody_saved_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("what")
    table.add_row(Text(HOSTILE))
    Output(as_json=False).show({}, table, HOSTILE, Text(HOSTILE))
    shown = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\x9b", "\r"} & set(shown)
    assert shown.count("a[2J]0;ownedb31mcd") == 3
    assert len({len(line) for line in shown.splitlines()[:5]}) == 1


def test_programs_get_it_as_it_was_saved(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).show({"text": HOSTILE})
    assert json.loads(capsys.readouterr().out) == {"text": HOSTILE}
