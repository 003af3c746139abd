"""A Neo4j server on this machine, without a container engine: its home, its process, its end.

The process is known by its command line, which names the home: no pid file can be stale, and a server left behind
by a killed `graph-mem up` is found again.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import httpx
import psutil

from graph_mem.errors import PortInUse, SetupError
from graph_mem.local.artifacts import Artifact, Cache, Lock, exclusive
from graph_mem.local.conf import LOOPBACK, Memory, Ports, read_ports, render
from graph_mem.local.java import Java
from graph_mem.local.secrets import keep_secret

USER = "neo4j"
DATABASE = "neo4j"
FOLDERS = ("conf", "data", "import", "lib", "licenses", "logs", "plugins", "run")
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 120.0
POLL_S = 0.1
LAST_LINES = 15
SERVER_CLASS = "org.neo4j.server.Neo4jCommunity"
ADMIN_CLASS = "org.neo4j.server.startup.Neo4jAdminCommand"


@dataclass(frozen=True, slots=True)
class Address:
    """How to reach a running server."""

    uri: str
    browser: str
    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Engine:
    """What a server is made of: the locked jars in a cache, a Java, and its share of memory."""

    lock: Lock
    cache: Cache
    java: Java
    memory: Memory

    def artifacts(self) -> tuple[Artifact, ...]:
        """The jars of server and plugins."""
        return self.lock.of("lib", "plugin")


class LocalServer:
    """The Neo4j server whose home is one folder."""

    def __init__(self, home: Path, engine: Engine) -> None:
        self.home = home.resolve()
        self._engine = engine
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What the server printed."""
        return self.home / "logs" / "console.log"

    @property
    def password(self) -> str:
        """Made once for each home."""
        return keep_secret(self.home.parent / "neo4j-password", size_bytes=24)

    def process(self) -> psutil.Process | None:
        """The process that serves this home now, whoever started it."""
        return find_process(self.home)

    def address(self) -> Address:
        """Where the server listens, or would."""
        ports = read_ports(self._conf)
        if ports is None:
            raise SetupError(f"{self.home} has never been started.")
        return Address(
            uri=f"bolt://{LOOPBACK}:{ports.bolt}",
            browser=f"http://{LOOPBACK}:{ports.http}/browser/",
            user=USER,
            password=self.password,
        )

    def start(self, wanted: Ports) -> Address:
        """Have the server running and answering; takes over one that still runs here as it is wanted.

        Errors: PortInUse if a wanted port is taken; SetupError with the last lines of the log if it does not come up.
        """
        self._prepare()
        with exclusive(self.home / "run" / "start.lock"):
            running = self.process()
            if running is not None and self._is_as_wanted(running, wanted):
                self._await_ready(running)
                return self.address()
            if running is not None:
                stop_process(running)
            ports = Ports(bolt=choose_port(wanted.bolt, "Bolt"), http=choose_port(wanted.http, "HTTP"))
            self._conf.write_text(self._render(ports))
            if not (self.home / "data" / "dbms").exists():
                self.admin("dbms", "set-initial-password", self.password)
            self._await_ready(self._spawn())
            return self.address()

    def stop(self) -> bool:
        """Stop the server cleanly and wait for its end; False if it was not running."""
        running = self.process()
        if running is not None:
            stop_process(running)
        if self._child is not None:
            self._child.wait()
        return running is not None

    def admin(self, *arguments: str) -> str:
        """What `neo4j-admin` says to these arguments.

        Errors: SetupError with its message if it fails.
        """
        command = [
            str(self._engine.java.executable), *self._engine.java.options, "-Xmx512m", "-cp", f"{self.home}/lib/*",
            f"-Dbasedir={self.home}", f"-Dapp.home={self.home}", ADMIN_CLASS, *arguments,
        ]  # fmt: skip
        places = {"NEO4J_HOME": str(self.home), "NEO4J_CONF": str(self.home / "conf")}
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **places}, check=False)
        if done.returncode != 0:
            raise SetupError(f"neo4j-admin {' '.join(arguments[:2])} failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    @property
    def _conf(self) -> Path:
        return self.home / "conf" / "neo4j.conf"

    def _render(self, ports: Ports) -> str:
        return render(ports=ports, memory=self._engine.memory, java_options=self._engine.java.options)

    def _prepare(self) -> None:
        """The layout of the ordinary distribution, its jars linked from the cache."""
        self._engine.cache.ensure(self._engine.artifacts())
        for folder in FOLDERS:
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        self._link("lib", self._engine.lock.of("lib"))
        self._link("plugins", self._engine.lock.of("plugin"))

    def _link(self, folder: str, artifacts: Sequence[Artifact]) -> None:
        wanted = {artifact.filename: self._engine.cache.path(artifact) for artifact in artifacts}
        for path in (self.home / folder).iterdir():
            if path.name not in wanted or not same_file(path, wanted[path.name]):
                path.unlink()
        for name, source in wanted.items():
            if not (self.home / folder / name).exists():
                link_or_copy(source, self.home / folder / name)

    def _command(self) -> list[str]:
        home = self.home
        return [
            str(self._engine.java.executable),
            *self._engine.java.options,
            f"-Xms{min(512, self._engine.memory.heap_mib)}m", f"-Xmx{self._engine.memory.heap_mib}m",
            "-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError", "-Dfile.encoding=UTF-8",
            "-cp", f"{home}/plugins/*:{home}/conf/*:{home}/lib/*",
            SERVER_CLASS, f"--home-dir={home}", f"--config-dir={home}/conf", "--console-mode",
        ]  # fmt: skip

    def _is_as_wanted(self, process: psutil.Process, wanted: Ports) -> bool:
        ports = read_ports(self._conf)
        if ports is None or (wanted.bolt or ports.bolt, wanted.http or ports.http) != (ports.bolt, ports.http):
            return False
        return self._conf.read_text() == self._render(ports) and process.cmdline() == self._command()

    def _spawn(self) -> psutil.Process:
        # A session of its own: Ctrl-C in a terminal reaches graph-mem alone, which then stops the server last.
        with self.log.open("w") as log:
            self._child = subprocess.Popen(
                self._command(), cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        return psutil.Process(self._child.pid)

    def _await_ready(self, process: psutil.Process) -> None:
        address = self.address()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(address):
            if has_ended(process):
                raise SetupError(f"Neo4j ended while starting. The end of {self.log}:\n{tail(self.log, LAST_LINES)}")
            if time.monotonic() > deadline:
                stop_process(process)
                raise SetupError(f"Neo4j did not answer within {START_TIMEOUT_S:.0f} s; see {self.log}.")
            time.sleep(POLL_S)


def find_process(home: Path) -> psutil.Process | None:
    """The server process of this home. Another user's processes are never looked at."""
    marks = {SERVER_CLASS, f"--home-dir={home}"}
    for process in psutil.process_iter(["cmdline", "status"]):
        if marks <= set(process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE:
            return process
    return None


def stop_process(process: psutil.Process) -> None:
    """End the server by SIGTERM and wait for the process, not the port; SIGKILL only if it hangs."""
    try:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_TIMEOUT_S)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired:
        process.kill()
        process.wait()


def has_ended(process: psutil.Process) -> bool:
    """Whether the process is gone, or only waits to be reaped."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def answers(address: Address) -> bool:
    """Whether the server is up and knows our password.

    Asked with a method that the query endpoint does not have: who is known is told so, and no query is compiled.
    """
    url = address.browser.removesuffix("browser/") + f"db/{DATABASE}/query/v2"
    try:
        reply = httpx.get(url, auth=(address.user, address.password), timeout=5)
    except httpx.HTTPError:
        return False
    if reply.status_code == HTTPStatus.UNAUTHORIZED:
        raise SetupError("Neo4j refused the password kept in the data folder; it was changed by someone else.")
    return reply.status_code == HTTPStatus.METHOD_NOT_ALLOWED


def choose_port(wanted: int, purpose: str) -> int:
    """`wanted` if it is free, any free one if it is zero.

    Errors: PortInUse.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError as problem:
            raise PortInUse(
                f"Port {wanted} for {purpose} is taken by another program ({problem.strerror}); "
                "choose another one, or 0 for any free one."
            ) from problem
        return probe.getsockname()[1]


def same_file(path: Path, source: Path) -> bool:
    """Whether `path` is a link to `source`, or a copy made where links are impossible."""
    ours, theirs = path.stat(), source.stat()
    return path.samefile(source) or (ours.st_size, ours.st_mtime_ns) == (theirs.st_size, theirs.st_mtime_ns)


def link_or_copy(source: Path, target: Path) -> None:
    """A hard link, or a copy across file systems."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def tail(path: Path, lines: int) -> str:
    """The last lines of a text file."""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
