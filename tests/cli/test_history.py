"""`graph-mem fact`, `chain` and `history`, as an operator calls them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from ulid import ULID

from graph_mem.cli import app
from graph_mem.errors import InvalidInput, NotFound


@pytest.fixture
def run(neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("COLUMNS", "200")
    organization = f"org-{ULID()}"

    def command(*given: str) -> str:
        who = ["--org", organization, "--user", "ana", "--data-dir", str(tmp_path)]
        done = CliRunner().invoke(app, [*given, *who], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    command("token", "--role", "owner", "--create", "--json")
    return command


def test_a_changed_fact_is_listed_once_and_its_chain_is_drawn(run: Any) -> None:
    said = [json.loads(run("fact", "add", "Northwind", "rate", f"Northwind pays {n}.", "--json")) for n in range(3)]
    assert [one["outcome"] for one in said] == ["CREATED", "SUPERSEDED", "SUPERSEDED"]
    assert said[2]["revoked"]["id"] == said[1]["fact"]["id"]
    listed = json.loads(run("fact", "list", "--subject", "northwind", "--json"))
    assert [one["statement"] for one in listed] == ["Northwind pays 2."]
    assert len(json.loads(run("fact", "list", "--all", "--json"))) == 3
    drawn = run("chain", said[0]["fact"]["id"])
    assert [drawn.index(f"Northwind pays {n}.") for n in (2, 1, 0)] == sorted(
        drawn.index(f"Northwind pays {n}.") for n in range(3)
    )
    assert "▸ Northwind pays 0.  superseded" in drawn
    assert drawn.count("↓ replaced") == drawn.count("by ana") == 2
    document = json.loads(run("chain", said[0]["fact"]["id"], "--json"))
    assert document["heads"] == [said[2]["fact"]["id"]]
    events = json.loads(run("history", said[0]["fact"]["id"], "--json"))
    assert [event["kind"] for event in events] == ["saved", "superseded"]
    assert "superseded" in run("history", said[0]["fact"]["id"])


def test_what_held_then_can_be_asked(run: Any) -> None:
    run("fact", "add", "Ana", "job", "Ana is CTO.", "--valid-from", "2025-01-01T00:00:00Z")
    run("fact", "add", "Ana", "job", "Ana is CEO.", "--valid-from", "2026-01-01T00:00:00+01:00")
    (then,) = json.loads(run("fact", "list", "--as-of", "2025-06-01T00:00:00Z", "--json"))
    assert (then["statement"], then["validTo"]) == ("Ana is CTO.", "2025-12-31T23:00:00.000Z")


def test_an_unknown_id_and_a_time_without_offset_are_refused(run: Any) -> None:
    for command in ("chain", "history"):
        with pytest.raises(NotFound):
            run(command, "fact_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(InvalidInput, match="offset"):
        run("fact", "add", "Ana", "job", "Ana is CTO.", "--valid-from", "2025-01-01")


@pytest.mark.parametrize("columns", ["40", "80"])
def test_what_the_next_command_needs_is_shown_whole(run: Any, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    older, newer = (json.loads(run("fact", "add", "Northwind", "rate", f"{n} euros.", "--json")) for n in (160, 170))
    ids = [one["fact"]["id"] for one in (older, newer)]
    assert all(id in run("fact", "list", "--all") for id in ids)
    assert ids[1] in run("fact", "add", "Northwind", "rate", "170 euros.")
    event = json.loads(run("history", ids[1], "--json"))[0]
    told = run("history", ids[1])
    assert all(word in told for word in (event["at"], event["by"], ids[0]))
    assert "[" not in told
