"""What people copy out of a table stands whole in it."""

import io

import pytest
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from graph_mem.cli.tables import fitted

ID, AT, BY = "fact_01M8P4W67F6SRWHV0B6D1E0DTT", "2026-11-30T09:00:00.000Z", "usr_01M8P4W67F6SRWHV0B6D1E0DTT"
PROSE = "Northwind pays 185 euros an hour, and travel is billed apart from it."


def drawn(*, width: int, terminal: bool, grouped: bool = False) -> str:
    table = Table("what it says", "id", "when", "by", "no words")
    table.add_row(Text(PROSE), ID, AT, Text(BY), "時" * 60)
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    view = Group("saved", table) if grouped else table
    fitted(view, console)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("width", [20, 80, 120, 200])
def test_ids_and_instants_are_whole_at_any_width(width: int, grouped: bool) -> None:
    shown = drawn(width=width, terminal=True, grouped=grouped)
    assert all(word in shown for word in (ID, AT, BY))


def test_prose_gives_way_to_them() -> None:
    assert PROSE not in drawn(width=160, terminal=True)
    assert max(map(len, drawn(width=160, terminal=True).splitlines())) <= 160


def test_a_pipe_has_no_edge() -> None:
    assert any(
        all(word in line for word in (PROSE, ID, AT, BY)) for line in drawn(width=80, terminal=False).splitlines()
    )
