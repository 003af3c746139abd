"""The home of a local Neo4j: its folders, its process, its address. Needs neither Java nor jars.

The process is known by its command line, which names the home: no pid file can be stale, and a server left behind
by a killed `graph-mem up` is found again.
"""

import signal
from dataclasses import dataclass
from pathlib import Path

import psutil

from graph_mem.errors import SetupError
from graph_mem.local.conf import LOOPBACK, Ports, read_ports
from graph_mem.local.secrets import keep_secret

USER = "neo4j"
DATABASE = "neo4j"
SERVER_CLASS = "org.neo4j.server.Neo4jCommunity"
ADMIN_CLASS = "org.neo4j.server.startup.Neo4jAdminCommand"
STOP_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Address:
    """How to reach a running server."""

    uri: str
    browser: str
    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Home:
    """A folder laid out like the ordinary distribution."""

    path: Path

    @property
    def conf(self) -> Path:
        """The server's configuration, written anew at every start."""
        return self.path / "conf" / "neo4j.conf"

    @property
    def log(self) -> Path:
        """What the server printed since it was started."""
        return self.path / "logs" / "console.log"

    @property
    def mark(self) -> str:
        """The argument by which this home's server is known among all processes."""
        return f"--home-dir={self.path}"

    @property
    def has_data(self) -> bool:
        """Whether a server has ever been started, or a dump loaded, here."""
        return (self.path / "data" / "databases" / "system").exists()

    def password(self) -> str:
        """Made once, and kept beside the home."""
        return keep_secret(self.path.parent / "neo4j-password", size_bytes=24)

    @property
    def admin_mark(self) -> str:
        """The argument by which `neo4j-admin` at work on this home is known."""
        return f"-Dapp.home={self.path}"

    def process(self) -> psutil.Process | None:
        """The process that serves this home now, whoever started it."""
        return _running(SERVER_CLASS, self.mark)

    def address(self) -> Address:
        """Where the server listens, or did when it last ran.

        Errors: SetupError if it never ran.
        """
        ports = read_ports(self.conf)
        if ports is None:
            raise SetupError(f"No Neo4j was ever started in {self.path}.")
        return address_at(ports, self.password())

    def stop(self) -> bool:
        """Stop the server cleanly and wait for its end; False if it was not running."""
        running = self.process()
        if running is not None:
            stop_process(running)
        return running is not None

    def end_admin(self) -> None:
        """End a `neo4j-admin` that is at work here: it goes on when the command that wanted it is killed."""
        while (left := _running(ADMIN_CLASS, self.admin_mark)) is not None:
            stop_process(left)


def _running(*wanted: str) -> psutil.Process | None:
    """A process with these arguments that has not ended."""
    for process in psutil.process_iter(["cmdline", "status"]):
        if {*wanted} <= set(process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE:
            return process
    return None


def address_at(ports: Ports, password: str) -> Address:
    """The address of a local server on these ports."""
    return Address(
        uri=f"bolt://{LOOPBACK}:{ports.bolt}",
        browser=f"http://{LOOPBACK}:{ports.http}/browser/",
        user=USER,
        password=password,
    )


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
