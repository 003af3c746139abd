"""The operator's backup, as it is called from a shell."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner
from ulid import ULID

from graph_mem.cli import app
from graph_mem.errors import AlreadyThere, InvalidInput, NotFound


def test_an_organization_is_exported_and_not_restored_over_itself(
    neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, file = f"org-{ULID()}", str(tmp_path / "one.gz")

    def run(*given: str) -> str:
        done = CliRunner().invoke(app, [*given, "--data-dir", str(tmp_path)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    run("token", "--org", name, "--user", f"owner@{name}", "--role", "owner", "--create")
    with pytest.raises(NotFound):
        run("export", file, "--org", "nobody")
    assert not list(tmp_path.glob("*.partial")), "an export that never began leaves nothing"
    answer = json.loads(run("export", file, "--org", name, "--json"))
    assert (answer["organizations"], answer["edges"], answer["restarted"]) == ([name], 1, 0)
    assert f"Restored {name}: 2 nodes" in run("restore", file), "an organization that holds nothing gives way"
    run("assign", "create", "--org", name, "--user", f"owner@{name}", "--client", "Acme")
    with pytest.raises(AlreadyThere, match=name):
        run("restore", file)
    run("assign", "remove", "--org", name, "--user", f"owner@{name}", "--client", "Acme")
    run("org", "remove", "--org", name)
    run("restore", file)
    for given in (("restore",), ("restore", file, "--discard")):
        with pytest.raises(InvalidInput, match="either an archive to restore or --discard"):
            run(*given)
    assert run("restore", "--discard").strip() == "No restore was broken off here: nothing to discard."
    assert json.loads(run("restore", "--discard", "--json")) == {"restores": 0, "nodes": 0}
    assert f"Exported {name}: 2 nodes" in run("export", str(tmp_path / "two.gz"), "--org", name, "--without-vectors")
