"""A dump comes back whole, or the instance stays what it was. Every start takes seconds, so one instance is dumped."""

import json
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import pytest
from neo4j import GraphDatabase

from graph_mem.errors import SetupError
from graph_mem.local.artifacts import sha256
from graph_mem.local.conf import Ports
from graph_mem.local.dump import dump, load
from graph_mem.local.folder import DataFolder
from graph_mem.local.home import Address
from graph_mem.local.server import Engine, LocalServer
from tests.commands import COMMAND, elsewhere

ANY = Ports(bolt=0, http=0)


@dataclass(frozen=True)
class Dumped:
    """An instance that was killed with a node in it, and its dump."""

    server: LocalServer
    folder: Path


@pytest.fixture(scope="module")
def dumped(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    root = tmp_path_factory.mktemp("dumped")
    server = LocalServer(root / "instance" / "neo4j", engine)
    address = server.start(ANY)
    run(address, "CREATE (:Written)")
    process = server.home.process()
    assert process is not None
    process.kill()
    server.stop()
    (root / "instance" / "jwt-secret").write_text("signs the dumped one")
    dump(server, root / "dump")
    return Dumped(server, root / "dump")


@pytest.fixture
def folder(dumped: Dumped, tmp_path: Path) -> Path:
    """A copy of the dump, to be harmed."""
    return shutil.copytree(dumped.folder, tmp_path / "dump")


def run(address: Address, query: LiteralString) -> int:
    with GraphDatabase.driver(address.uri, auth=(address.user, address.password)) as driver:
        return len(driver.execute_query(query, database_="neo4j").records)


def damage(path: Path) -> None:
    """Flip some bytes in the middle; done again, the file is what it was."""
    found = path.read_bytes()
    middle = slice(len(found) // 2, len(found) // 2 + 512)
    path.write_bytes(found[: middle.start] + bytes(byte ^ 0xFF for byte in found[middle]) + found[middle.stop :])


def without_hashes(folder: Path) -> None:
    """Make the manifest one of an earlier release, which nothing can be compared with."""
    manifest = folder / "manifest.json"
    said = json.loads(manifest.read_text())
    assert sorted(said.pop("files")) == ["jwt-secret", "neo4j-password", "neo4j.dump", "system.dump"]
    manifest.write_text(json.dumps(said))


def content(root: Path) -> dict[str, str]:
    """Every file below, but what is linked from the cache."""
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".jar")
    return {str(path.relative_to(root)): sha256(path) for path in files}


def test_a_damaged_dump_leaves_a_new_folder_for_the_good_one(engine: Engine, folder: Path, tmp_path: Path) -> None:
    copy = LocalServer(tmp_path / "copy" / "neo4j", engine)
    damage(folder / "neo4j.dump")
    with pytest.raises(SetupError, match=r"neo4j\.dump is damaged: found \d+ bytes with SHA-256 .*, expected \d+"):
        load(copy, folder, replace=False)
    assert not (tmp_path / "copy").exists(), "refused before anything is touched"
    without_hashes(folder)
    with pytest.raises(SetupError, match="Load failed for databases: 'neo4j'") as failed:
        load(copy, folder, replace=False)
    assert "Failed to load database 'neo4j': " in failed.value.message, "the cause"
    assert "Files:" not in failed.value.message
    assert len(failed.value.message.splitlines()) < 8
    assert list((tmp_path / "copy").iterdir()) == []

    damage(folder / "neo4j.dump")
    load(copy, folder, replace=False)
    try:
        assert run(copy.start(ANY), "MATCH (n:Written) RETURN n") == 1
    finally:
        copy.stop()
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"jwt-secret", "neo4j", "neo4j-password"}


def test_an_instance_keeps_what_it_held_when_the_load_in_its_place_fails(dumped: Dumped, folder: Path) -> None:
    root = dumped.server.home.path.parent
    for name in ("neo4j-password", "jwt-secret"):
        (folder / name).write_text("of the dump")
    without_hashes(folder)
    before = content(root)
    damage(folder / "neo4j.dump")
    with pytest.raises(SetupError, match="Load failed"):
        load(dumped.server, folder, replace=True)
    assert content(root) == before
    damage(folder / "neo4j.dump")
    (folder / "system.dump").unlink()
    with pytest.raises(SetupError, match=r"system\.dump is damaged: found no file, expected one"):
        load(dumped.server, folder, replace=True)
    assert content(root) == before


@pytest.mark.parametrize("name", ["neo4j.dump", "system.dump", "neo4j-password", "jwt-secret"])
def test_a_dump_with_a_missing_file_is_refused(name: str, engine: Engine, folder: Path, tmp_path: Path) -> None:
    (folder / name).unlink()
    with pytest.raises(SetupError, match=rf"{name} is damaged: found no file, expected \d+ bytes with SHA-256"):
        load(LocalServer(tmp_path / "copy" / "neo4j", engine), folder, replace=False)
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("said", ["", "[]", '{"format": 2, "neo4j": "1", "databases": []}'])
def test_a_manifest_that_cannot_be_read_is_refused(said: str, dumped: Dumped, folder: Path) -> None:
    (folder / "manifest.json").write_text(said)
    with pytest.raises(SetupError, match="is not a dump of format 1"):
        load(dumped.server, folder, replace=True)


def test_a_killed_load_leaves_no_database_and_hinders_no_other(dumped: Dumped, engine: Engine, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    command = [*COMMAND, "db", "load", str(dumped.folder), "--data-dir", str(root)]
    with subprocess.Popen(command, env=elsewhere()) as loading:
        while not (root / "neo4j-new" / "data" / "databases" / "system").exists():
            assert loading.poll() is None
            time.sleep(0.01)
        loading.kill()  # and not its `neo4j-admin`, which goes on
    copy = LocalServer(root / "neo4j", engine)
    with DataFolder(root).hold():
        assert not copy.home.has_data
        load(copy, dumped.folder, replace=False)
        load(copy, dumped.folder, replace=True)
    assert (root / "jwt-secret").read_text() == "signs the dumped one"
    assert {path.name for path in root.iterdir()} == {"instance.lock", "jwt-secret", "neo4j", "neo4j-password"}
