"""A real Neo4j, started, killed, started again, dumped and loaded. A start takes seconds, so the facts share them."""

import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import httpx
import pytest
from neo4j import Driver, GraphDatabase
from neo4j.exceptions import DriverError, Neo4jError

from graph_mem.errors import PortInUse, SetupError
from graph_mem.local.artifacts import Cache
from graph_mem.local.conf import MIB, Memory, Ports
from graph_mem.local.dump import dump, load
from graph_mem.local.home import Address
from graph_mem.local.server import Engine, LocalServer

UNREACHABLE = "http://127.0.0.1:9/maven2"
FREE = Ports(bolt=0, http=0)
KILL_AFTER = 200


@dataclass(frozen=True)
class Survivor:
    """A server that was killed while it was written to, and started again."""

    server: LocalServer
    before: Address
    after: Address
    acknowledged: int


@pytest.fixture(scope="module")
def offline(engine: Engine) -> Engine:
    """The engine with its cache filled and its repository out of reach."""
    cache = Cache(engine.cache.folder, mirror=UNREACHABLE)
    return replace(engine, cache=cache, memory=Memory(heap_mib=512, pagecache_mib=64))


@pytest.fixture(scope="module")
def survivor(offline: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survivor]:
    server = LocalServer(tmp_path_factory.mktemp("survivor") / "neo4j", offline)
    try:
        before = server.start(FREE)
        acknowledged = write_until_killed(server, before)
        yield Survivor(server, before, server.start(FREE), acknowledged)
    finally:
        server.stop()


def connect(address: Address) -> Driver:
    return GraphDatabase.driver(
        address.uri, auth=(address.user, address.password), max_transaction_retry_time=0, connection_timeout=5
    )


def write_until_killed(server: LocalServer, address: Address) -> int:
    """Commit one node after another and kill the server meanwhile; returns how many it acknowledged."""
    process = server.home.process()
    assert process is not None
    with connect(address) as driver:
        for number in count():
            if number == KILL_AFTER:
                os.kill(process.pid, signal.SIGKILL)
            try:
                driver.execute_query("CREATE (:Written {number: $number})", number=number, database_="neo4j")
            except (DriverError, Neo4jError):
                return number
    raise AssertionError("the server outlived its kill")


def written(address: Address) -> int:
    with connect(address) as driver:
        found = driver.execute_query("MATCH (n:Written) RETURN count(n) AS found", database_="neo4j")
    return found.records[0]["found"]


def test_a_killed_server_loses_nothing_it_acknowledged(survivor: Survivor) -> None:
    assert survivor.acknowledged >= KILL_AFTER
    # One more may have been committed whose answer the kill cut off.
    assert survivor.acknowledged <= written(survivor.after) <= survivor.acknowledged + 1


@pytest.mark.skipif(sys.platform != "linux", reason="Neo4j takes room in advance on Linux only")
def test_commits_need_no_new_room_in_the_transaction_log(survivor: Survivor) -> None:
    newest = max((survivor.server.home.path / "data/transactions/neo4j").glob("neostore.transaction.db.*"))
    assert newest.stat().st_blocks * 512 >= 32 * MIB


def test_the_password_is_made_once_and_readable_by_its_user_only(survivor: Survivor) -> None:
    kept = survivor.server.home.path.parent / "neo4j-password"
    assert survivor.before.password == survivor.after.password == kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_its_home_is_for_its_user_only(survivor: Survivor) -> None:
    assert stat.S_IMODE(survivor.server.home.path.stat().st_mode) == 0o700


def test_a_server_that_runs_already_is_taken_over(survivor: Survivor, offline: Engine) -> None:
    process = survivor.server.home.process()
    assert LocalServer(survivor.server.home.path, offline).start(FREE) == survivor.after
    assert survivor.server.home.process() == process


def test_the_server_listens_on_loopback_only(survivor: Survivor) -> None:
    process = survivor.server.home.process()
    assert process is not None
    listening = [found.laddr.ip for found in process.net_connections() if found.status == "LISTEN"]
    assert len(listening) >= 2
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_the_server_advertises_the_ports_it_listens_on(survivor: Survivor) -> None:
    shown = httpx.get(survivor.after.browser.removesuffix("browser/")).json()
    assert shown["bolt_direct"] == survivor.after.uri
    assert httpx.get(survivor.after.browser).status_code == 200


def test_the_server_speaks_cypher_25_has_gds_and_tells_nobody(survivor: Survivor) -> None:
    with connect(survivor.after) as driver:
        gds = driver.execute_query("RETURN gds.version() AS version", database_="neo4j").records[0]["version"]
        shown = driver.execute_query("SHOW SETTINGS YIELD name, value RETURN name, value", database_="neo4j").records
    settings = {record["name"]: record["value"] for record in shown}
    assert gds == "2.26.0"
    assert settings["db.query.default_language"] == "CYPHER_25"
    assert settings["client.allow_telemetry"] == settings["dbms.usage_report.enabled"] == "false"


def test_a_running_server_is_not_dumped(survivor: Survivor, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is running"):
        dump(survivor.server, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_a_port_in_use_is_said_before_anything_is_started(offline: Engine, tmp_path: Path) -> None:
    server = LocalServer(tmp_path / "neo4j", offline)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortInUse, match=f"Port {port} for Bolt is taken by another program"):
            server.start(Ports(bolt=port, http=0))
    assert server.home.process() is None


def test_a_dump_of_a_killed_server_runs_beside_its_original(
    survivor: Survivor, offline: Engine, tmp_path: Path
) -> None:
    process = survivor.server.home.process()
    assert process is not None
    process.kill()
    survivor.server.stop()
    dump(survivor.server, tmp_path / "backup")
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700

    copy = LocalServer(tmp_path / "copy" / "neo4j", offline)
    load(copy, tmp_path / "backup", replace=False)
    with pytest.raises(SetupError, match="--replace"):
        load(copy, tmp_path / "backup", replace=False)
    try:
        original, restored = survivor.server.start(FREE), copy.start(FREE)
        assert original.uri != restored.uri
        assert original.password == restored.password
        assert written(original) == written(restored) >= survivor.acknowledged
    finally:
        copy.stop()
