"""`graph-mem context` and `graph-mem run-trace`, as an operator calls them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from ulid import ULID

from graph_mem.cli import app


@pytest.fixture
def run(neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    organization = f"org-{ULID()}"

    def command(*given: str) -> str:
        who = ["--org", organization, "--user", "ana", "--data-dir", str(tmp_path)]
        done = CliRunner().invoke(app, [*given, *who], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    command("token", "--role", "owner", "--create", "--json")
    return command


def test_what_is_printed_can_be_printed_again_byte_for_byte(run: Any) -> None:
    shown = run("context", "Write the offer.", "--run", "r1")
    assert shown.startswith("# Institutional context\nScope: organization.\n")
    assert run("run-trace", "r1") == shown
    document = json.loads(run("run-trace", "r1", "--json"))
    assert (document["state"], document["prefix"] + "\n") == ("EXACT", shown)
    other = json.loads(run("context", "Something else.", "--json"))
    assert (other["prefixHash"], other["tail"]) == (document["prefixHash"], None)
