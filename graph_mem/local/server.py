"""Starts the Neo4j server of a home, without a container engine and without Neo4j's own launcher."""

import os
import shutil
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
from graph_mem.local.home import ADMIN_CLASS, DATABASE, SERVER_CLASS, Address, Home, has_ended, stop_process
from graph_mem.local.java import Java
from graph_mem.local.secrets import private_folder

FOLDERS = ("conf", "data", "import", "lib", "licenses", "logs", "plugins", "run")
START_TIMEOUT_S = 180.0
START_HEAP_MIB = 512
POLL_S = 0.1
LAST_LINES = 15
LONG_RUNNING = ("-XX:+UseG1GC",)
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Half the CPU until the first answer, less speed in the long run: for tools and tests."""
ADMIN_NOISE = ("Files: ", "Done: ", "WARNING: Using incubator modules", "Run with '--verbose'")


@dataclass(frozen=True, slots=True)
class Engine:
    """What a server is made of: the locked jars in a cache, a Java, its share of memory and the JVM's manners."""

    lock: Lock
    cache: Cache
    java: Java
    memory: Memory
    tuning: tuple[str, ...] = LONG_RUNNING

    def artifacts(self) -> tuple[Artifact, ...]:
        """The jars of server and plugins."""
        return self.lock.of("lib", "plugin")


class LocalServer:
    """The Neo4j server of one home."""

    def __init__(self, home: Path, engine: Engine) -> None:
        self.home = Home(home.resolve())
        self._engine = engine
        self._child: subprocess.Popen[bytes] | None = None

    def at(self, home: Path) -> "LocalServer":
        """A server of the same make, of another home."""
        return LocalServer(home, self._engine)

    @property
    def version(self) -> str:
        """The version of Neo4j."""
        return self._engine.lock.neo4j

    def prepare(self) -> None:
        """Fetch what is missing, lay out the home and link the jars into it.

        Errors: SetupError, ChecksumMismatch as `Cache.ensure`.
        """
        self._engine.cache.ensure(self._engine.artifacts())
        private_folder(self.home.path)
        for folder in FOLDERS:
            (self.home.path / folder).mkdir(parents=True, exist_ok=True)
        self._link("lib", self._engine.lock.of("lib"))
        self._link("plugins", self._engine.lock.of("plugin"))

    def start(self, wanted: Ports) -> Address:
        """Have the server running and answering; takes over one that still runs here as it is wanted.

        Errors: PortInUse if a wanted port is taken; SetupError with the last lines of the log if it does not come up.
        """
        self.prepare()
        with exclusive(self.home.path / "run" / "start.lock"):
            running = self.home.process()
            if running is not None and self._is_as_wanted(running, wanted):
                self._await_ready(running)
                return self.home.address()
            if running is not None:
                stop_process(running)
            if self._child is not None:
                self._child.wait()
            ports = Ports(bolt=choose_port(wanted.bolt, "Bolt"), http=choose_port(wanted.http, "HTTP"))
            self.configure(ports)
            if not self.home.has_data:
                self.admin("dbms", "set-initial-password", "--", self.home.password())  # it may begin with a dash
            self._await_ready(self._spawn())
            return self.home.address()

    def configure(self, ports: Ports) -> None:
        """Write the configuration that the next start and `admin` go by."""
        self.home.conf.write_text(self._render(ports))

    def restart(self) -> Address:
        """Have the server running again after it ended by itself, where it listened before."""
        return self.start(read_ports(self.home.conf) or Ports(bolt=0, http=0))

    def stop(self) -> bool:
        """Stop the server cleanly and wait for its end; False if it was not running."""
        child = self._child  # not one that a thread of ours may start right after
        stopped = self.home.stop()
        if child is not None:
            child.wait()
        return stopped

    def admin(self, *arguments: str) -> str:
        """What `neo4j-admin` says to these arguments.

        Errors: SetupError with its message if it fails.
        """
        home = self.home.path
        command = [
            str(self._engine.java.executable), *self._engine.java.options, *SHORT_LIVED, f"-Xmx{START_HEAP_MIB}m",
            "-cp", f"{home}/lib/*", f"-Dbasedir={home}", self.home.admin_mark, ADMIN_CLASS, *arguments,
        ]  # fmt: skip
        places = {"NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf")}
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **places}, check=False)
        if done.returncode != 0:
            said = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
            telling = dict.fromkeys(line for line in said if not line.startswith(ADMIN_NOISE))
            cause = "\n".join([*telling][-LAST_LINES:])
            raise SetupError(f"neo4j-admin {' '.join(arguments[:2])} failed: {cause}")
        return done.stdout

    def _render(self, ports: Ports) -> str:
        return render(ports=ports, memory=self._engine.memory, java_options=self._engine.java.options)

    def _link(self, folder: str, artifacts: Sequence[Artifact]) -> None:
        wanted = {artifact.filename: self._engine.cache.path(artifact) for artifact in artifacts}
        target = self.home.path / folder
        for path in target.iterdir():
            if path.name not in wanted or not same_file(path, wanted[path.name]):
                path.unlink()
        for name, source in wanted.items():
            if not (target / name).exists():
                link_or_copy(source, target / name)

    def _command(self) -> list[str]:
        home, memory = self.home.path, self._engine.memory
        return [
            str(self._engine.java.executable), *self._engine.java.options,
            f"-Xms{min(START_HEAP_MIB, memory.heap_mib)}m", f"-Xmx{memory.heap_mib}m",
            *self._engine.tuning, "-XX:+ExitOnOutOfMemoryError", "-Dfile.encoding=UTF-8",
            "-cp", f"{home}/plugins/*:{home}/conf/*:{home}/lib/*",
            SERVER_CLASS, self.home.mark, f"--config-dir={home}/conf", "--console-mode",
        ]  # fmt: skip

    def _is_as_wanted(self, process: psutil.Process, wanted: Ports) -> bool:
        ports = read_ports(self.home.conf)
        if ports is None or (wanted.bolt or ports.bolt, wanted.http or ports.http) != (ports.bolt, ports.http):
            return False
        return self.home.conf.read_text() == self._render(ports) and process.cmdline() == self._command()

    def _spawn(self) -> psutil.Process:
        # A session of its own: Ctrl-C in a terminal reaches graph-mem alone, which then stops the server last.
        with self.home.log.open("w") as log:
            self._child = subprocess.Popen(
                self._command(),
                cwd=self.home.path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return psutil.Process(self._child.pid)

    def _await_ready(self, process: psutil.Process) -> None:
        address, log = self.home.address(), self.home.log
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(address):
            if has_ended(process):
                raise SetupError(f"Neo4j ended while starting. The end of {log}:\n{tail(log, LAST_LINES)}")
            if time.monotonic() > deadline:
                stop_process(process)
                raise SetupError(f"Neo4j did not answer within {START_TIMEOUT_S:.0f} s; see {log}.")
            time.sleep(POLL_S)


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
