"""Backup of a stopped instance, and its return: both databases and the two secrets that belong to them."""

import os
import shutil
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from graph_mem.errors import SetupError
from graph_mem.local import swap
from graph_mem.local.artifacts import sha256
from graph_mem.local.conf import Ports
from graph_mem.local.home import DATABASE
from graph_mem.local.secrets import private_folder
from graph_mem.local.server import LocalServer
from graph_mem.local.swap import SECRETS

DATABASES = ("system", DATABASE)
MANIFEST = "manifest.json"
FORMAT = 1
UNRECOVERED = "Active logical log detected"
NEEDED = (*(f"{name}.dump" for name in DATABASES), "neo4j-password")


class DumpedFile(BaseModel):
    """What a file of a dump was when it was written."""

    size: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.size} bytes with SHA-256 {self.sha256}"


class Manifest(BaseModel):
    """What a dump says of itself; one made by an earlier release names no files."""

    format: Literal[1]
    neo4j: str
    databases: tuple[str, ...]
    files: dict[str, DumpedFile] = {}


def dump(server: LocalServer, target: Path) -> int:
    """Write the instance into a new folder, readable by its user only; returns its bytes.

    Errors: SetupError if the server runs, has no data, or the folder is not empty.
    """
    require_stopped(server)
    if not server.home.has_data:
        raise SetupError(f"There is nothing to dump: {server.home.path} holds no database.")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise SetupError(f"{target} is not empty; a dump needs a folder of its own.")
    server.prepare()
    for name in DATABASES:
        dump_database(server, name, target)
    for name in SECRETS:
        copy_secret(server.home.path.parent / name, target / name)
    files = {path.name: described(path) for path in sorted(target.iterdir())}
    manifest = Manifest(format=FORMAT, neo4j=server.version, databases=DATABASES, files=files)
    (target / MANIFEST).write_text(manifest.model_dump_json())
    return sum(path.stat().st_size for path in target.iterdir())


def load(server: LocalServer, source: Path, *, replace: bool) -> None:
    """Make the instance what the dump holds; if that fails it is what it was.

    The dump is loaded into a new store beside the old one, and they change places once it is whole.
    Errors: SetupError if the server runs, the folder is not a whole dump, or there is data and not `replace`.
    """
    require_stopped(server)
    if server.home.has_data and not replace:
        raise SetupError(f"{server.home.path} holds a database already; --replace puts the dump in its place.")
    verify(source)
    root = server.home.path.parent
    new = server.at(swap.beside(root))
    try:
        new.prepare()
        new.configure(Ports(bolt=0, http=0))
        for name in DATABASES:
            new.admin("database", "load", name, f"--from-path={source}", "--overwrite-destination=true")
        for name in SECRETS:
            copy_secret(source / name, new.home.path / name)
        private_folder(server.home.path)
        os.sync()  # the names change after what they name is on disk
        swap.swap(root)
    finally:
        swap.settle(root)


def verify(source: Path) -> None:
    """Find the dump whole, byte for byte as far as its manifest tells.

    Errors: SetupError naming the file, what was found and what was expected.
    """
    try:
        manifest = Manifest.model_validate_json((source / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValidationError) as problem:
        raise SetupError(f"{source} is not a dump of format {FORMAT}: it has no such {MANIFEST}.") from problem
    for name in sorted({*NEEDED, *manifest.files}):
        path, expected = source / name, manifest.files.get(name)
        found = described(path) if path.is_file() else None
        if found is None or expected not in (None, found):
            raise SetupError(f"{path} is damaged: found {found or 'no file'}, expected {expected or 'one'}.")


def described(path: Path) -> DumpedFile:
    """Size and hash of a file."""
    return DumpedFile(size=path.stat().st_size, sha256=sha256(path))


def dump_database(server: LocalServer, name: str, target: Path) -> None:
    """Dump one database; one that was killed is recovered first, by starting and stopping it."""
    try:
        server.admin("database", "dump", name, f"--to-path={target}")
    except SetupError as problem:
        if UNRECOVERED not in problem.message:
            raise
        server.start(Ports(bolt=0, http=0))
        server.stop()
        server.admin("database", "dump", name, f"--to-path={target}", "--overwrite-destination=true")


def require_stopped(server: LocalServer) -> None:
    """Community has no backup of a running database."""
    process = server.home.process()
    if process is not None:
        raise SetupError(f"Neo4j is running (process {process.pid}); `graph-mem down` stops it.")


def copy_secret(source: Path, target: Path) -> None:
    """Copy a secret if there is one, with its mode, whole or not at all."""
    if source.is_file():
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copy(source, draft)
        draft.replace(target)
