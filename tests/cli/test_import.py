"""`graph-mem import`, as an operator calls it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner
from ulid import ULID

from graph_mem.cli import app


def test_what_is_skipped_and_what_does_not_fit_is_named_once(
    neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    who = ["--org", f"org-{ULID()}", "--user", "ana", "--data-dir", str(tmp_path / "data")]
    CliRunner().invoke(app, ["token", "--role", "owner", "--create", *who], catch_exceptions=False)
    folder = tmp_path / "notes"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref")
    (folder / "offer.docx").write_bytes(b"PK")
    (folder / "rates.md").write_text("Northwind pays 185 euros.")
    (folder / "rows.jsonl").write_text('{"text": "fine"}\n7\n')
    done = CliRunner().invoke(app, ["import", str(folder), "--no-wait", "--json", *who], catch_exceptions=False)
    assert done.exit_code == 1
    document = json.loads(done.stdout.splitlines()[-1])
    assert (document["read"], document["skipped"]) == (1, ["notes/offer.docx"])
    message = "1 of 2 rows cannot be read: line 2 is a number, expected an object."
    assert document["failed"] == [{"file": "notes/rows.jsonl", "message": message}]
    assert f"notes/rows.jsonl: {message}" in done.stderr.splitlines()
    assert any(line.startswith("notes/offer.docx: skipped") for line in done.stderr.splitlines())
