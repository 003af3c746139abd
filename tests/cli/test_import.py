"""`graph-mem import`, as an operator calls it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result
from ulid import ULID

from graph_mem.cli import app

Importing = Callable[[Path], tuple[Result, Any]]


@pytest.fixture
def imported(neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Importing:
    """Imports a file or folder for a fresh owner: how it ended, and the document it gave."""
    monkeypatch.setenv("COLUMNS", "300")
    who = ["--org", f"org-{ULID()}", "--user", "ana", "--data-dir", str(tmp_path / "data")]
    CliRunner().invoke(app, ["token", "--role", "owner", "--create", *who], catch_exceptions=False)

    def run(path: Path) -> tuple[Result, Any]:
        given = ["import", str(path), "--no-wait", "--json", *who]
        done = CliRunner().invoke(app, given, catch_exceptions=False)
        return done, json.loads(done.stdout.splitlines()[-1])

    return run


def test_what_is_skipped_and_what_does_not_fit_is_named_once(imported: Importing, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref")
    (folder / "offer.docx").write_bytes(b"PK")
    (folder / "rates.md").write_text("Northwind pays 185 euros.")
    (folder / "rows.jsonl").write_text('{"text": "fine"}\n7\n')
    done, document = imported(folder)
    assert done.exit_code == 1
    assert (document["read"], document["skipped"]) == (1, ["notes/offer.docx"])
    message = "1 of 2 rows cannot be read: line 2 is a number, expected an object."
    assert document["failed"] == [{"file": "notes/rows.jsonl", "message": message}]
    assert f"notes/rows.jsonl: {message}" in done.stderr.splitlines()
    assert any(line.startswith("notes/offer.docx: skipped") for line in done.stderr.splitlines())


def test_a_row_that_cannot_be_stored_is_named_before_any_is(imported: Importing, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"text": f"Note {number}."} for number in range(1, 301)]
    rows[249] = {"text": "broken \ud800"}
    rows[250] = {"text": "fine", "label": "no such label"}
    rows[251] = {"text": "fine", "importance": 7}
    rows[252] = {"text": "fine", "title": "two\nlines"}
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows))
    done, document = imported(file)
    assert (done.exit_code, document["read"]) == (1, 0)
    (failed,) = document["failed"]
    assert failed["message"].startswith("4 of 300 rows cannot be stored: line 250: Position 7 holds the lone surrogate")
    assert "line 251: " in failed["message"]
    assert "line 252: The importance is 7.0, expected 0 to 1. And 1 more." in failed["message"]
    (tmp_path / "note.md").write_text("\0")
    (failed,) = imported(tmp_path / "note.md")[1]["failed"]
    assert failed["message"] == "Position 0 holds a NUL character, expected text without one."
