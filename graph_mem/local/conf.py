"""neo4j.conf of a local instance, and its memory."""

from dataclasses import dataclass
from pathlib import Path

import psutil

LOOPBACK = "127.0.0.1"
GIB = 1 << 30
MIB = 1 << 20

EVERYWHERE = {
    "server.https.enabled": "false",
    "db.lock.acquisition.timeout": "10s",
    "db.transaction.timeout": "60s",
    "db.tx_log.rotation.retention_policy": "1 days 512M",
    "db.tx_log.rotation.size": "32M",
    "db.query.default_language": "CYPHER_25",
    "dbms.security.auth_enabled": "true",
    "dbms.security.procedures.unrestricted": "gds.*",
    "dbms.usage_report.enabled": "false",
    "client.allow_telemetry": "false",
}
"""What any Neo4j of ours is set to; docker-compose.yml says the same, and a test compares.

Each of two databases takes the room of one whole file of its transaction log in advance, so that no commit needs new
room there: 32 MiB of it, where Neo4j's 256 would make an empty database a tenfold larger.
"""

HERE = {
    "internal.dbms.bolt.netty_server_shutdown_quiet_period": "0",
    "internal.dbms.bolt.netty_server_shutdown_timeout": "1",
}
"""Stops in one second instead of 13: nothing is lost, for the databases are closed before the connectors' wait."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the server may use, in MiB."""

    heap_mib: int
    pagecache_mib: int

    @classmethod
    def for_machine(cls, total_bytes: int | None = None) -> "Memory":
        """An eighth of the machine for the heap and a sixteenth for the page cache, within sane bounds.

        Lucene's files live in the system's own file cache, which needs room too. 512 MiB of heap served 200,000
        vectors at half the speed of 2 GiB (measured), more than that gained nothing.
        """
        total_mib = (psutil.virtual_memory().total if total_bytes is None else total_bytes) // MIB
        return cls(
            heap_mib=min(max(total_mib // 8, 512), 4096),
            pagecache_mib=min(max(total_mib // 16, 128), 2048),
        )


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the server listens; zero means any free port."""

    bolt: int
    http: int


def render(*, ports: Ports, memory: Memory, java_options: tuple[str, ...]) -> str:
    """The text of neo4j.conf. Unknown keys would stop the server, so `neo4j-admin` validates this in the tests.

    The memory of the JVM itself is given on its command line as well: the server is started without the launcher
    that would read it from here.
    """
    lines = {
        "server.default_listen_address": LOOPBACK,
        "server.bolt.listen_address": f"{LOOPBACK}:{ports.bolt}",
        "server.bolt.advertised_address": f"{LOOPBACK}:{ports.bolt}",
        "server.http.listen_address": f"{LOOPBACK}:{ports.http}",
        "server.http.advertised_address": f"{LOOPBACK}:{ports.http}",
        "server.memory.heap.initial_size": f"{memory.heap_mib}m",
        "server.memory.heap.max_size": f"{memory.heap_mib}m",
        "server.memory.pagecache.size": f"{memory.pagecache_mib}m",
        "dbms.memory.transaction.total.max": f"{memory.heap_mib // 2}m",
        "db.memory.transaction.max": f"{memory.heap_mib // 4}m",
        **EVERYWHERE,
        **HERE,
    }
    jvm = [f"server.jvm.additional={option}" for option in java_options]
    return "\n".join([*(f"{key}={value}" for key, value in lines.items()), *jvm, ""])


def read_ports(conf: Path) -> Ports | None:
    """The ports written in a neo4j.conf, or None if there is none."""
    if not conf.is_file():
        return None
    lines = dict(line.split("=", 1) for line in conf.read_text().splitlines() if "=" in line)
    bolt, http = lines["server.bolt.listen_address"], lines["server.http.listen_address"]
    return Ports(bolt=int(bolt.rpartition(":")[2]), http=int(http.rpartition(":")[2]))
