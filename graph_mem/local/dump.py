"""Backup of a stopped instance, and its return: both databases and the two secrets that belong to them."""

import json
import os
import shutil
from pathlib import Path

from graph_mem.errors import SetupError
from graph_mem.local.conf import Ports
from graph_mem.local.home import DATABASE
from graph_mem.local.server import LocalServer

DATABASES = ("system", DATABASE)
SECRETS = ("neo4j-password", "jwt-secret")
MANIFEST = "manifest.json"
FORMAT = 1
UNRECOVERED = "Active logical log detected"


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
    (target / MANIFEST).write_text(json.dumps({"format": FORMAT, "neo4j": server.version, "databases": DATABASES}))
    return sum(path.stat().st_size for path in target.iterdir())


def load(server: LocalServer, source: Path, *, replace: bool) -> None:
    """Make the instance what the dump holds.

    Errors: SetupError if the server runs, the folder is not a dump, or there is data and not `replace`.
    """
    require_stopped(server)
    manifest = source / MANIFEST
    if not manifest.is_file() or json.loads(manifest.read_text()).get("format") != FORMAT:
        raise SetupError(f"{source} is not a dump of format {FORMAT}: it has no such {MANIFEST}.")
    if server.home.has_data and not replace:
        raise SetupError(f"{server.home.path} holds a database already; --replace puts the dump in its place.")
    server.prepare()
    server.configure(Ports(bolt=0, http=0))
    for name in DATABASES:
        server.admin("database", "load", name, f"--from-path={source}", "--overwrite-destination=true")
    for name in SECRETS:
        copy_secret(source / name, server.home.path.parent / name)


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
