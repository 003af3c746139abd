"""What programs read from commands is named as in the API."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner
from ulid import ULID

from graph_mem.cli import app
from graph_mem.cli.searching import falls

DATA = frozenset({"counts", "detail"})
"""Fields whose own names are data."""


def names(document: object) -> set[str]:
    if isinstance(document, list):
        return {name for one in cast("list[object]", document) for name in names(one)}
    if not isinstance(document, dict):
        return set()
    fields = cast("dict[str, object]", document)
    return set(fields) | {name for key, value in fields.items() if key not in DATA for name in names(value)}


def test_every_field_is_in_camel_case(neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    who = ["--org", f"org-{ULID()}", "--user", "ana"]
    notes = tmp_path / "notes.md"
    notes.write_text("# Rates\n\nNorthwind pays 185 euros an hour.")
    found: dict[str, Any] = {}

    def run(*given: str, anyone: bool = False) -> Any:
        asked = [*given, *([] if anyone else who), "--json", "--data-dir", str(tmp_path / "data")]
        done = CliRunner().invoke(app, asked, catch_exceptions=False)
        found[" ".join(given)] = json.loads(done.stdout.splitlines()[-1])
        return found[" ".join(given)]

    run("token", "--role", "owner", "--create")
    run("import", str(notes), "--no-wait")
    id = run("fact", "add", "Northwind", "rate", "Northwind pays 160 euros.")["fact"]["id"]
    run("fact", "add", "Northwind", "rate", "Northwind pays 170 euros.")
    run("fact", "list", "--all")
    run("chain", id)
    run("history", id)
    assert run("search", "what does Northwind pay")["hits"]
    run("context", "Write the offer.", "--run", "r1")
    run("run-trace", "r1")
    run("consolidate")
    run("review", "--list")
    run("trust")
    run("rehearsals")
    run("erase", id, "--dry-run")
    run("export-pairs", str(tmp_path / "pairs.jsonl"))
    run("status", anyone=True)
    run("doctor", anyone=True)
    assert {name: odd for name, one in found.items() if (odd := {key for key in names(one) if "_" in key})} == {}


def test_a_page_whose_scores_do_not_fall_is_told_from_one_whose_do() -> None:
    assert falls([])
    assert falls([0.9, 0.5, 0.50001, 0.1])
    assert not falls([0.9, 0.5, 0.6])
