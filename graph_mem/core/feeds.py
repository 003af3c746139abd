"""What people already have, as texts to remember: Markdown and plain text, JSON Lines, chat transcripts.

A feed is a file's bytes and its name; an item is one text of it. Positions in messages are line numbers from 1, or of
elements of a list; the name is not in them, for whoever gave it puts it before.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import PurePath
from typing import Any, TypeVar, cast

from graph_mem.core.kinds import kind_of
from graph_mem.core.model import SourceKind
from graph_mem.core.segments import segments
from graph_mem.core.text import how_many
from graph_mem.errors import InvalidInput

T = TypeVar("T")

SUFFIXES = frozenset({".md", ".markdown", ".txt", ".text", ".jsonl", ".ndjson", ".json"})
_HEADING = re.compile(r"\A\s*#{1,6}[ \t]+(?P<title>\S.*?)[ \t#]*$", re.MULTILINE)
_TEXT = ("text", "content", "body", "message")
_TIME = ("occurredAt", "occurred_at", "time", "timestamp", "date", "created_at")
_SPEAKER = ("speaker", "name", "author", "from", "role")
_SESSION = ("session", "thread", "conversation", "channel")
_MAX_TITLE = 200
_WRONG_SHOWN = 3
_LAST_SECOND = 10**11
"""A number above this counts milliseconds."""


@dataclass(frozen=True, slots=True)
class Item:
    """One text to import. `group` names what belongs together and apart from the rest, such as one conversation.

    `where` it stands in its file, if that holds several.
    """

    text: str
    kind: SourceKind
    uri: str
    title: str | None = None
    label: str | None = None
    group: str | None = None
    occurred_at: datetime | None = None
    importance: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    where: str = ""


def items(content: bytes, name: str, *, zone: tzinfo) -> Iterator[Item]:
    """The texts of a file called `name`; times without an offset are taken to be in `zone`.

    Errors: InvalidInput that says how many rows do not fit and which are the first; no item of such a file is given.
    """
    match PurePath(name).suffix.lower():
        case ".jsonl" | ".ndjson":
            return _lines(_decoded(content), name, zone)
        case ".json":
            return _json(_decoded(content), name, zone)
        case _:
            return iter((_document(_decoded(content), name),))


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start} is not UTF-8, which is expected.") from None


def _document(text: str, name: str) -> Item:
    """A file as one text: a transcript if most of it is speakers' turns, else a document."""
    found = segments(text)
    turns = sum(segment.speaker is not None for segment in found)
    if turns >= 3 and 2 * turns >= len(found):
        return Item(text, SourceKind.TRANSCRIPT, name, title=PurePath(name).stem, label="transcript")
    heading = _HEADING.search(text)
    title = (heading["title"] if heading else PurePath(name).stem)[:_MAX_TITLE]
    return Item(text, SourceKind.DOCUMENT, name, title=title, label="document")


def _lines(text: str, name: str, zone: tzinfo) -> Iterator[Item]:
    def read(number: int, line: str) -> Item:
        where = f"line {number}"
        return _row(_loaded(line, where), name, number, where, zone)

    return _all([(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()], read)


def _json(text: str, name: str, zone: tzinfo) -> Iterator[Item]:
    """A chat as a list of messages becomes one transcript; any other list, one text for each element."""
    parsed: object = _loaded(text, "the file")
    if isinstance(parsed, dict):
        parsed = cast("dict[str, Any]", parsed).get("messages", [parsed])
    if not isinstance(parsed, list):
        raise InvalidInput(f"found {kind_of(parsed)}, expected a list or an object.")
    rows = cast("list[object]", parsed)
    if len(rows) > 1 and all(_is_turn(row) for row in rows):
        return iter((_transcript(cast("list[dict[str, Any]]", rows), name, zone),))

    def read(number: int, row: object) -> Item:
        return _row(row, name, number, f"element {number}", zone)

    return _all(enumerate(rows, start=1), read)


def _all(rows: Iterable[tuple[int, T]], read: Callable[[int, T], Item]) -> Iterator[Item]:
    """What `read` makes of each row. Errors: InvalidInput if a row does not fit, after all were looked at."""
    found: list[Item] = []
    wrong: list[str] = []
    for number, row in rows:
        try:
            found.append(read(number, row))
        except InvalidInput as problem:
            wrong.append(problem.message)
    if wrong:
        raise refused(wrong, of=len(found) + len(wrong), verb="read")
    return iter(found)


def refused(wrong: Sequence[str], *, of: int, verb: str) -> InvalidInput:
    """What is said of a file some of whose rows do not fit: how many, and the first of them."""
    more = f" And {len(wrong) - _WRONG_SHOWN} more." if len(wrong) > _WRONG_SHOWN else ""
    shown = " ".join(wrong[:_WRONG_SHOWN])
    return InvalidInput(f"{len(wrong)} of {how_many(of, 'row')} cannot be {verb}: {shown}{more}")


def _is_turn(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    turn = cast("dict[str, Any]", row)
    return bool(_first(turn, _SPEAKER)) and isinstance(_first(turn, _TEXT), str)


def _transcript(rows: list[dict[str, Any]], name: str, zone: tzinfo) -> Item:
    turns = (f"{_first(row, _SPEAKER)}: {_first(row, _TEXT)}" for row in rows)
    return Item(
        "\n".join(turns),
        SourceKind.TRANSCRIPT,
        name,
        title=PurePath(name).stem[:_MAX_TITLE],
        label="transcript",
        occurred_at=_time(_first(rows[0], _TIME), "element 1", zone),
    )


def _loaded(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise InvalidInput(f"{where} is not JSON: {error.msg} at {line}column {error.colno}.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{where} holds a number that is too long, or nests too deeply.") from None


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} is {kind_of(value)}, expected an object.")
    return cast("dict[str, Any]", value)


def _row(value: object, name: str, number: int, where: str, zone: tzinfo) -> Item:
    row = _object(value, where)
    text = _first(row, _TEXT)
    if not isinstance(text, str):
        raise InvalidInput(f"{where} has no text under any of {', '.join(_TEXT)}.")
    meta = _object(row.get("meta") or row.get("metadata") or {}, f"the metadata of {where}")
    known = {**meta, **row}
    group, session, id = _name(row.get("group")), _name(_first(known, _SESSION)), _name(row.get("id"))
    speaker = _name(_first(known, _SPEAKER))
    return Item(
        text,
        SourceKind.TRANSCRIPT if session and speaker else SourceKind.IMPORT,
        _name(_first(row, ("uri", "url", "sourceUri", "source"))) or _uri(name, group, session, id or str(number)),
        title=_name(row.get("title")),
        label=_name(row.get("label")),
        group=group,
        occurred_at=_time(_first(known, _TIME), where, zone),
        importance=_number(row.get("importance")),
        metadata={**meta, "id": id} if id else meta,
        where=where,
    )


def _uri(name: str, group: str | None, session: str | None, id: str) -> str:
    """Where a row comes from: its session, which it shares with the rows before and after it; else itself."""
    return "/".join(part for part in (name, group, session) if part) if session else f"{name}#{id}"


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _name(value: object) -> str | None:
    return str(value) if isinstance(value, (str, int)) and str(value).strip() else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _time(value: object, where: str, zone: tzinfo) -> datetime | None:
    if value is None:
        return None
    try:
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value / 1000 if value > _LAST_SECOND else value, zone)
        at = datetime.fromisoformat(str(value))
        return at if at.tzinfo else at.replace(tzinfo=zone)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(
            f"{where} has the time {json.dumps(value, ensure_ascii=False)[:40]}, expected ISO 8601."
        ) from None
