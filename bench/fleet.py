"""A Neo4j of the bench's own and any number of API and worker processes on it, each known by its pid.

Nothing of the product runs in the bench's process: what is measured is driven from outside, over HTTP.
"""

import asyncio
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import httpx
import platformdirs
import psutil
from pydantic import SecretStr
from rich.console import Console

from graph_mem.api.tokens import issue
from graph_mem.cli.people import Desk
from graph_mem.config import Settings
from graph_mem.core.model import Role
from graph_mem.local.artifacts import Cache, read_lock
from graph_mem.local.conf import Memory, Ports
from graph_mem.local.home import Address
from graph_mem.local.java import find_java
from graph_mem.local.server import Engine, LocalServer
from graph_mem.services import admin
from graph_mem.signing import token_settings
from graph_mem.store.db import Database, rows

Kind = Literal["serve", "worker"]

START_S = 240.0
STOP_S = 60.0
_MIB = 2**20
_PAGE_CACHE_MIB = 256
_JOBS = re.compile(r"^graph_mem_jobs_done_total\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a token, and where what they save becomes current at once."""

    organization: str
    org_id: str
    user: str
    role: Role
    token: str
    place: Mapping[str, Any]
    """The part of a mutation's input that says where: scope, or private."""

    @property
    def scope(self) -> Any:
        return self.place.get("scope", {})


@dataclass(slots=True)
class Part:
    """One process of the product."""

    name: str
    child: subprocess.Popen[str]
    url: str = ""

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def resident_mib(self) -> float:
        return psutil.Process(self.pid).memory_info().rss / _MIB


@dataclass(slots=True)
class Fleet:
    """What runs. `environment` is every process's, over what the fleet sets by itself."""

    folder: Path
    heap_mib: int = 1024
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    apis: list[Part] = field(default_factory=list[Part])
    workers: list[Part] = field(default_factory=list[Part])
    _server: LocalServer | None = None
    _address: Address | None = None
    _secret: str = field(default_factory=lambda: secrets.token_hex(32))
    _started: int = 0

    @property
    def home(self) -> Path:
        """Where Neo4j keeps its data."""
        return self.folder / "neo4j"

    @property
    def server(self) -> LocalServer:
        if self._server is None:
            cache = Cache(platformdirs.user_cache_path("graph-mem"), console=Console(stderr=True))
            memory = Memory(self.heap_mib, _PAGE_CACHE_MIB)
            self._server = LocalServer(self.home, Engine(read_lock(), cache, find_java(), memory))
        return self._server

    @property
    def settings(self) -> Settings:
        """How the bench itself reaches database and tokens."""
        assert self._address
        return Settings(
            data_dir=self.folder / "data",
            neo4j_uri=self._address.uri,
            neo4j_password=SecretStr(self._address.password),
            jwt_secret=SecretStr(self._secret),
        )

    async def start_neo4j(self) -> None:
        """Have Neo4j running, after its first start always on the same ports."""
        server = self.server
        again = self._address is not None
        self._address = await asyncio.to_thread(
            server.restart if again else lambda: server.start(Ports(bolt=0, http=0))
        )

    async def kill_neo4j(self) -> None:
        """End Neo4j as a power cut would."""
        running = self.server.home.process()
        assert running
        running.kill()
        await asyncio.to_thread(self.server.stop)

    async def start(self, kind: Kind, count: int, *, environment: Mapping[str, str] | None = None) -> list[Part]:
        """`count` processes more, once each says that it is ready. `environment`: theirs alone."""
        new = [self._spawn(kind, environment or {}) for _ in range(count)]
        (self.apis if kind == "serve" else self.workers).extend(new)
        for part in new:
            said = await asyncio.wait_for(asyncio.to_thread(_first_answer, part), START_S)
            part.url = said["graphql" if kind == "serve" else "metrics"].rpartition("/")[0]
        return new

    def environment_of_all(self) -> dict[str, str]:
        """What every process of the product is started with, a command of the operator's too."""
        assert self._address
        own = {
            "GRAPH_MEM_NEO4J_URI": self._address.uri,
            "GRAPH_MEM_NEO4J_USER": self._address.user,
            "GRAPH_MEM_NEO4J_PASSWORD": self._address.password,
            "GRAPH_MEM_JWT_SECRET": self._secret,
            "GRAPH_MEM_DATA_DIR": str(self.folder / "data"),
            "GRAPH_MEM_EMBEDDER": "onnx",
            "GRAPH_MEM_PORT": "0",
            "GRAPH_MEM_WORKER_PORT": "0",
            "GRAPH_MEM_LOG_FORMAT": "json",
        }
        return {**os.environ, **own, **self.environment}

    def _spawn(self, kind: Kind, environment: Mapping[str, str]) -> Part:
        self._started += 1
        name = f"{kind}-{self._started}"
        command = [str(Path(sys.executable).with_name("graph-mem")), kind, "--json"]
        with self.log(name).open("w") as log:
            child = subprocess.Popen(
                command,
                env={**self.environment_of_all(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        return Part(name, child)

    def log(self, name: str) -> Path:
        """Where a process logs to."""
        return self.folder / f"{name}.log"

    async def stop(self, part: Part, *, sent: signal.Signals = signal.SIGTERM) -> None:
        """End one process, and forget it."""
        for group in (self.apis, self.workers):
            if part in group:
                group.remove(part)
        if part.child.poll() is None:
            os.kill(part.pid, sent)
            try:
                await asyncio.to_thread(part.child.wait, STOP_S)
            except subprocess.TimeoutExpired:
                part.child.kill()
                part.child.wait()
        if part.child.stdout:
            part.child.stdout.close()

    async def close(self) -> None:
        """End everything."""
        await asyncio.gather(*(self.stop(part) for part in [*self.apis, *self.workers]))
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)

    def resident(self) -> dict[str, float]:
        """Resident memory of each process in MiB."""
        found = {part.name: round(part.resident_mib, 1) for part in [*self.apis, *self.workers]}
        neo4j = self.server.home.process()
        return found if neo4j is None else {**found, "neo4j": round(neo4j.memory_info().rss / _MIB, 1)}

    def disk(self) -> dict[str, float]:
        """MiB that the database takes: its store and, of that, its indexes; and its transaction logs."""
        data = self.home / "data"
        parts = {"store": "databases/neo4j", "indexes": "databases/neo4j/schema", "logs": "transactions/neo4j"}
        return {name: round(_size(data / folder) / _MIB, 1) for name, folder in parts.items()}

    async def jobs_done(self) -> dict[str, float]:
        """How many jobs each living worker says it has done."""
        done: dict[str, float] = {}
        async with httpx.AsyncClient(timeout=30) as client:
            for worker in self.workers:
                told = (await client.get(f"{worker.url}/metrics")).text
                done[worker.name] = sum(float(number) for number in _JOBS.findall(told))
        return done

    @asynccontextmanager
    async def database(self) -> AsyncIterator[Database]:
        """The bench's own way to Neo4j: to make people, and to count afterwards."""
        settings = self.settings
        assert settings.neo4j_uri
        assert settings.neo4j_password
        database = Database.connect(
            settings.neo4j_uri,
            user=settings.neo4j_user,
            password=settings.neo4j_password.get_secret_value(),
            database=settings.neo4j_database,
            timeout_s=120.0,
        )
        try:
            yield database
        finally:
            await database.close()

    async def count(self, statement: Any, **parameters: Any) -> list[dict[str, Any]]:
        """Rows of a statement of the bench."""
        async with self.database() as database:
            found = await database.read(lambda tx: rows(tx, statement, **parameters))
        return [dict(one) for one in found]

    async def people(self, organizations: int) -> list[Caller]:
        """Two owners, a project manager, a solutions engineer and a member in each of some organizations."""
        made: list[Caller] = []
        async with self.database() as database:
            for number in range(organizations):
                for user, role, place in _STAFF:
                    made.append(await self._person(Desk(database), f"bench {number}", user, role, place))
        return made

    async def _person(self, desk: Desk, organization: str, user: str, role: Role, place: str) -> Caller:
        names = {"client": "acme"} if place == "clientId" else {"client": "acme", "deal": "renewal"}
        given = names if place in ("clientId", "dealId") else {}
        enrolled = await admin.ensure_principal(desk, organization=organization, user=user, role=role, **given)
        token = issue(
            token_settings(self.settings),
            org_id=enrolled.org_id,
            user_id=enrolled.user_id,
            now=datetime.now(UTC) - timedelta(hours=2),
            lifetime=timedelta(days=1),
        )
        scopes = {
            "clientId": {"scope": {"clientId": enrolled.client_id}},
            "dealId": {"scope": {"dealId": enrolled.deal_id}},
        }
        where = scopes.get(place, {"private": True} if place == "private" else {})
        return Caller(organization, enrolled.org_id, user, role, token, where)


_STAFF = (
    ("ana", Role.OWNER, "shared"),
    ("ben", Role.OWNER, "shared"),
    ("cleo", Role.PROJECT_MANAGER, "clientId"),
    ("dov", Role.SOLUTIONS_ENGINEER, "dealId"),
    ("eve", Role.MEMBER, "private"),
)


def _first_answer(part: Part) -> dict[str, Any]:
    """The line by which a process says that it is ready."""
    assert part.child.stdout
    for line in part.child.stdout:
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit(f"{part.name} ended before it was ready; its log is beside the database")


def _size(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


@asynccontextmanager
async def fleet(*, apis: int, workers: int, heap_mib: int = 1024, **environment: str) -> AsyncIterator[Fleet]:
    """A running fleet in a temporary folder; everything ends with the context."""
    with tempfile.TemporaryDirectory(prefix="gm-fleet-", ignore_cleanup_errors=True) as folder:
        made = Fleet(Path(folder), heap_mib=heap_mib, environment=environment)
        try:
            await made.start_neo4j()
            await made.start("serve", apis)
            await made.start("worker", workers)
            yield made
        finally:
            await made.close()


def note(text: str) -> None:
    """Say how far the bench is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
