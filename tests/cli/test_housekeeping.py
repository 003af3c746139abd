"""The commands that keep the base healthy, as an operator calls them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from ulid import ULID

from graph_mem.cli import app, proving
from graph_mem.errors import Conflict, InvalidInput


@pytest.fixture
def run(neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("COLUMNS", "200")
    organization = f"org-{ULID()}"

    def command(*given: str, answers: str = "", status: int = 0, user: str = "ana") -> str:
        who = ["--org", organization, "--user", user, "--data-dir", str(tmp_path)]
        done = CliRunner().invoke(app, [*given, *who], input=answers, catch_exceptions=False)
        assert done.exit_code == status, done.output
        return done.stdout

    command("token", "--role", "owner", "--create", "--json")
    command("token", "--role", "agent", "--create", "--json", user="robo")
    return command


def said(run: Any, statement: str, *, user: str = "ana") -> str:
    return json.loads(run("fact", "add", "Northwind", "rate", statement, "--json", user=user))["fact"]["id"]


def test_the_queue_is_gone_through_with_the_evidence_beside(run: Any) -> None:
    active = said(run, "Northwind pays 185.")
    wanted = [said(run, f"Northwind pays {n}.", user="robo") for n in (190, 210, 220)]
    assert "Northwind / rate: Northwind pays 190." in run("review", "--list")
    shown = run("review", answers="x\nr\ns\nk\n")
    assert "promote fact" in shown
    assert "says now  fact  " + active in shown
    assert "Northwind pays 220." in shown
    assert "2 decided, 1 left" in shown
    left = json.loads(run("review", "--json"))
    assert [one["subjectIds"] for one in left] == [[wanted[1]]]
    kept = json.loads(run("review", "--list", "--state", "KEPT", "--json"))
    assert "REVERTED" in run("review", "--revert", kept[0]["id"])
    assert [one["id"] for one in json.loads(run("fact", "list", "--json"))] == [active]
    trust = json.loads(run("trust", "--json"))
    assert trust == [{"kind": "PROMOTE_FACT", "shape": "fact", "kept": 0, "reverted": 2, "autoKeep": False}]


def test_archive_restore_and_validate_say_how_the_record_stands(run: Any) -> None:
    id = said(run, "Northwind pays 185.")
    assert f"{id} is ARCHIVED" in run("archive", id, "--reason", "old")
    with pytest.raises(Conflict):
        run("archive", id)
    assert json.loads(run("archive", "--undo", id, "--json"))["standing"] == "CURRENT"
    assert f"{id} is CURRENT" in run("validate", id)
    run("validate", id, "--refuted")
    assert [one["kind"] for one in json.loads(run("review", "--json"))] == ["ARCHIVE"]
    assert json.loads(run("rehearsals", "--all", "--json")) == []


def test_erase_counts_first_asks_and_proves(run: Any) -> None:
    words = f"Northwind pays {ULID()} doubloons."
    id = said(run, words)
    planned = json.loads(run("erase", id, "--dry-run", "--json"))
    assert (planned["erasedIds"], planned["counts"]["facts"], planned["dryRun"]) == ([id], 1, True)
    run("erase", id, answers="n\n", status=1)
    assert [one["id"] for one in json.loads(run("fact", "list", "--json"))] == [id]
    done = json.loads(run("erase", id, "--yes", "--verify", "--json"))
    assert done["proof"] == {"remnants": [], "files": [], "unread": [], "clean": True}
    assert json.loads(run("fact", "list", "--json")) == []


def test_words_alone_are_looked_for_in_database_and_dumps(run: Any, tmp_path: Path) -> None:
    words = f'Northwind pays {ULID()} "doubloons"\nand more.'
    (tmp_path / "words.txt").write_text(words, encoding="utf-8")
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "clean.jsonl").write_text(json.dumps({"text": "something else"}))
    looked = ("erase", "--verify", "--words", str(tmp_path / "words.txt"), "--dump", str(dump), "--json")
    assert json.loads(run(*looked))["proof"]["clean"]
    with gzip.open(dump / "export.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text": words}))
    (dump / "neo4j.dump").write_bytes(b"DZV1....")
    found = json.loads(run(*looked, status=1))["proof"]
    assert found["files"] == [str(dump / "export.jsonl.gz")]
    assert found["unread"] == [str(dump / "neo4j.dump")]
    with pytest.raises(InvalidInput):
        run("erase", "--verify")


def test_words_are_found_across_the_blocks_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "_BLOCK", 7)
    file = tmp_path / "store"
    file.write_bytes(b"." * 12 + b"the secret words" + b"." * 9)
    assert proving.holds(file, ["secret words"])
    assert not proving.holds(file, ["secret worlds"])


def test_the_cycle_runs_on_demand_and_kept_knowledge_becomes_pairs(run: Any, tmp_path: Path) -> None:
    id = said(run, "Northwind pays 185.")
    said(run, "Northwind pays 300.", user="robo")
    assert json.loads(run("consolidate", "--json"))["filed"] == 0
    assert "proposals filed" in run("consolidate")
    assert json.loads(run("export-pairs", str(tmp_path / "pairs.jsonl"), "--json"))["pairs"] == 1
    (line,) = (tmp_path / "pairs.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "prompt": "What is the rate of Northwind?",
        "completion": "Northwind pays 185.",
        "source": id,
        "kind": "fact",
    }
    with pytest.raises(InvalidInput, match="exists already"):
        run("export-pairs", str(tmp_path / "pairs.jsonl"))
    assert (tmp_path / "pairs.jsonl").read_text().splitlines() == [line]
    run("export-pairs", str(tmp_path / "pairs.jsonl"), "--replace")
    assert (tmp_path / "pairs.jsonl").read_text().splitlines() == [line]
