"""How every command ends that cannot do what it was asked: a sentence for people, one document for programs."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from ulid import ULID

from graph_mem.cli import main
from graph_mem.local.folder import Announcement, DataFolder

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def here(neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that names the Neo4j of this run and a data folder."""
    monkeypatch.setenv("GRAPH_MEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("GRAPH_MEM_JWT_SECRET", raising=False)


def ended(monkeypatch: pytest.MonkeyPatch, *command: str) -> Any:
    """The status with which the command ends."""
    monkeypatch.setattr(sys, "argv", ["graph-mem", *command])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def document(capsys: Captured) -> Any:
    return json.loads(capsys.readouterr().out.splitlines()[-1])["error"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("org", "create", "X"), "--owner"),
        (("key", "revoke", "k"), "--org"),
        (("token", "--org", "o", "--user", "u", "--role", "king"), "king"),
        (("org", "invent"), "invent"),
        (("reembed",), "MODEL"),
        (("reembed", "m", "--dimension", "many"), "--dimension"),
        (("status", "--no-such-option"), "--no-such-option"),
        (("no-such-command",), "no-such-command"),
    ],
)
def test_a_usage_error_is_one_document_for_programs_and_ends_as_before(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, command: tuple[str, ...], said: str
) -> None:
    assert ended(monkeypatch, *command) == 2
    shown = capsys.readouterr()
    assert (shown.out, "Usage:" in shown.err) == ("", True)
    assert ended(monkeypatch, *command, "--json") == 2
    error = document(capsys)
    assert (error["code"], said in error["message"]) == ("BAD_USER_INPUT", True)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "path"),
    [
        (("export", "FOLDER/nope/x.gz"), "FOLDER/nope/x.gz.partial"),
        (("up", "--data-dir", "FOLDER/file/x"), "FOLDER/file/x"),
        (("up", "--data-dir", "/proc/x"), "/proc/x"),
        (("token", "--org", "o", "--user", "u", "--role", "owner", "--data-dir", "/proc/x"), "/proc/x"),
    ],
)
def test_what_the_system_refuses_is_said_with_its_path_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path, command: tuple[str, ...], path: str
) -> None:
    (tmp_path / "file").touch()
    asked = [part.replace("FOLDER", str(tmp_path)) for part in command]
    assert ended(monkeypatch, *asked, "--json") == 1
    error = document(capsys)
    assert error["code"] == "SETUP"
    assert error["message"].startswith(f"{path.replace('FOLDER', str(tmp_path))}: ")
    assert ended(monkeypatch, *asked) == 1
    assert "Traceback" not in capsys.readouterr().err


REACHING = (
    ("search", "x"),
    ("export", "FOLDER/all.gz"),
    ("import", "FOLDER/file"),
    ("migrate",),
    ("serve", "--port", "0"),
    ("worker",),
    ("up", "--port", "0"),
    ("org", "list"),
    ("fact", "add", "Ana", "role", "Ana leads."),
    ("context", "Write."),
    ("review",),
    ("reembed", "onnx"),
)
"""One command of each module that reaches the database."""


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", REACHING, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("URI", "ftp://localhost", "The address of Neo4j cannot be used: "),
        ("URI", "bolt://localhost:many", "The address of Neo4j cannot be used: "),
        ("USER", "nobody", "Neo4j refuses the user or password it was given: "),
    ],
)
def test_a_neo4j_that_cannot_be_used_is_said_by_every_command(
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    tmp_path: Path,
    command: tuple[str, ...],
    setting: str,
    value: str,
    said: str,
) -> None:
    (tmp_path / "file").touch()
    once = f"-{ULID()}" if setting == "USER" else ""  # whom Neo4j refuses too often it does not listen to
    monkeypatch.setenv(f"GRAPH_MEM_NEO4J_{setting}", value + once)
    assert ended(monkeypatch, *(part.replace("FOLDER", str(tmp_path)) for part in command), "--json") == 1
    error = document(capsys)
    assert (error["code"], error["message"].startswith(said)) == ("SETUP", True), error


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ("nope/none",),
            "does not know the embedding model 'nope/none': say the dimension of its vectors by --dimension",
        ),
        (
            ("nope/none", "--dimension", "384"),
            "The embedding model 'nope/none' cannot be used, and nothing was changed",
        ),
        (("openai",), "needs --url and --endpoint-model"),
        (
            ("openai", "--url", "http://127.0.0.1:9", "--endpoint-model", "text-embedding-3-small"),
            "The embedding model 'text-embedding-3-small' cannot be used, and nothing was changed: ",
        ),
    ],
)
def test_a_model_that_cannot_be_used_is_not_moved_to(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, command: tuple[str, ...], said: str
) -> None:
    assert ended(monkeypatch, "reembed", *command, "--json") == 1
    assert said in document(capsys)["message"]


@pytest.mark.usefixtures("here")
def test_a_spool_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "x.gz.partial").write_text("This was never a spool, and is longer than nothing." * 100)
    assert ended(monkeypatch, "export", str(tmp_path / "x.gz"), "--json") == 1
    assert "x.gz.partial cannot be used" in document(capsys)["message"]


@pytest.mark.usefixtures("here")
def test_a_name_that_is_not_there_is_told_by_its_kind(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path
) -> None:
    org = f"org-{ULID()}"
    assert ended(monkeypatch, "token", "--org", org, "--user", "ana", "--role", "owner", "--create") == 0
    capsys.readouterr()
    create = " --create makes what is missing."
    who = ("--org", org, "--user", "ana")
    for command, said in (
        (("user", "list", "--org", "nope"), "No organization has the name or id 'nope'."),
        (("export", str(tmp_path / "nope.gz"), "--org", "nope"), "No organization has the name or id 'nope'."),
        (("assign", "list", "--org", org, "--user", "nope"), f"No member of '{org}' has the name or id 'nope'."),
        (("search", "x", "--org", org, "--user", "nope"), f"No member of '{org}' has the name or id 'nope'."),
        (("assign", "remove", *who, "--client", "nope"), f"No client of '{org}' has the name or id 'nope'."),
        (("assign", "remove", *who, "--deal", "nope"), f"No deal of '{org}' has the name or id 'nope'."),
        (("key", "revoke", "nope", "--org", org), f"No key of '{org}' has the name or id 'nope'."),
        (
            ("token", "--org", "nope", *who[2:], "--role", "owner"),
            f"No organization has the name or id 'nope'.{create}",
        ),
        (
            ("token", *who[:2], "--user", "bob", "--role", "owner"),
            f"No member of '{org}' has the name or id 'bob'.{create}",
        ),
    ):
        assert ended(monkeypatch, *command, "--json") == 1
        assert document(capsys) == {"code": "NOT_FOUND", "message": said}


@pytest.mark.usefixtures("here")
def test_a_value_that_cannot_be_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    org = f"org-{ULID()}"
    assert ended(monkeypatch, "token", "--org", org, "--user", "ana", "--role", "owner", "--create") == 0
    capsys.readouterr()
    for number, name in enumerate(("subject", "relation", "statement")):
        given = ["x", "y", "z"]
        given[number] = ""
        assert ended(monkeypatch, "fact", "add", *given, "--org", org, "--user", "ana", "--json") == 1
        error = document(capsys)
        assert (error["code"], error["message"].partition(":")[0]) == ("BAD_USER_INPUT", name)
        assert ended(monkeypatch, "fact", "add", *given, "--org", org, "--user", "ana") == 1
        assert name in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_status_of_what_does_not_run_is_3(monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path) -> None:
    assert ended(monkeypatch, "status", "--json") == 3
    assert json.loads(capsys.readouterr().out)["running"] is False
    folder = DataFolder(tmp_path / "data")
    with folder.hold():
        folder.announce(Announcement("g", "n", None))
        assert ended(monkeypatch, "status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["running"] is True
