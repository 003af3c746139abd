"""Views whose ids, instants and addresses stay whole: what people copy is neither cut nor broken."""

import re

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

_WORD = re.compile(r"[!-~]+")
_LONGEST_WORD = 72
_LONGEST_LINE = 100_000
"""Characters of a line in a file or pipe; rich takes a width for a page, and there is none."""


def fitted(view: RenderableType, console: Console) -> None:
    """Make room for `view` on `console`.

    No column of a table becomes narrower than the longest word in it; prose gives way. What is still wider than the
    terminal runs over its edge, and a pipe or a file has no edge.
    """
    room = console.width if console.is_terminal else _LONGEST_LINE
    tables = _tables(view)
    for table in tables:
        _fit(table, console, room)
    widest = _width(view if room == _LONGEST_LINE else Group(*tables), console)
    console.width = max(console.width, widest)


def _fit(table: Table, console: Console, room: int) -> None:
    """Give each column its longest word, and share what is left of `room` among those that need more."""
    lines, words = [_longest_line(one) for one in table.columns], [_longest_word(one) for one in table.columns]
    for column, width in zip(table.columns, lines, strict=True):
        column.width = width
    left = room - _width(table, console)
    for column in sorted(range(len(lines)), key=lambda i: lines[i] - words[i], reverse=True):
        if left < 0:
            given = min(-left, lines[column] - words[column])
            table.columns[column].width = lines[column] - given
            left += given


def _width(view: RenderableType, console: Console) -> int:
    return Measurement.get(console, console.options.update(max_width=_LONGEST_LINE), view).maximum


def _tables(view: RenderableType) -> list[Table]:
    if isinstance(view, Group):
        return [table for part in view.renderables for table in _tables(part)]
    return [view] if isinstance(view, Table) else []


def _longest_line(column: Column) -> int:
    return max((cell_len(line.expandtabs()) for cell in _cells(column) for line in cell.splitlines()), default=0)


def _longest_word(column: Column) -> int:
    """Of the words that are no prose: a script that is written without spaces may be broken anywhere."""
    longest = max((len(word) for cell in _cells(column) for word in _WORD.findall(cell)), default=0)
    return min(longest, _LONGEST_WORD, _longest_line(column))


def _cells(column: Column) -> list[str]:
    return [cell.plain if isinstance(cell, Text) else str(cell) for cell in (column.header, *column.cells)]
