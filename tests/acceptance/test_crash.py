"""The product as a stranger runs it: one command, killed without warning, started again on the same folder."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest

from graph_mem.local.folder import DataFolder
from graph_mem.local.server import Engine
from tests.commands import COMMAND, elsewhere

READY_S = 120
STOPPED_S = 60


class Instance:
    """A `graph-mem up`, known by the line it prints once it is ready."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.log = log

    @cached_property
    def info(self) -> dict[str, Any]:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def ask(self, query: str, **variables: Any) -> Any:
        answer = httpx.post(
            self.info["graphql"],
            json={"query": query, "variables": variables},
            headers={"authorization": f"Bearer {self.info['token']}", "accept": "application/graphql-response+json"},
            timeout=60,
        ).json()
        assert "errors" not in answer, answer
        (value,) = answer["data"].values()
        return value

    def capture(self, text: str) -> str:
        query = "mutation($t: String!) { captureMemory(input: {text: $t}) { memory { id } errors { message } } }"
        return self.ask(query, t=text)["memory"]["id"]

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> int:
        """The exit status after SIGTERM; one that does not end says in its log what every thread of it is at."""
        self.process.terminate()
        try:
            return self.process.wait(STOPPED_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            raise


@contextmanager
def up(folder: Path) -> Iterator[Instance]:
    """An instance on `folder`, which may not fetch anything."""
    environment = elsewhere(
        GRAPH_MEM_EMBEDDER="onnx", GRAPH_MEM_MAVEN_MIRROR="http://127.0.0.1:9/nothing", PYTHONFAULTHANDLER="1"
    )
    command = [*COMMAND, "up", "--json", "--data-dir", str(folder), "--port", "0", "--neo4j-port", "0"]
    with (folder / "up.log").open("a") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, start_new_session=True
        )
    assert process.stdout
    instance = Instance(process, folder / "up.log")
    try:
        yield instance
    finally:
        if process.poll() is None:
            instance.stop()
        process.stdout.close()
        print(instance.log.read_text())


def test_nothing_acknowledged_is_lost_when_everything_is_killed(engine: Engine, tmp_path: Path) -> None:
    with up(tmp_path) as first:
        ids = [first.capture(f"Acknowledged note number {i}, okapi{i}.") for i in range(50)]
        first.kill()
    with up(tmp_path) as second:
        assert second.info["token"]
        assert ready(second, ids) == set(ids)
        search = "query($t: String!) { search(input: {text: $t}) { mode hits { node { id } } } }"
        page = second.ask(search, t="okapi37")
        assert page["hits"][0]["node"]["id"] == ids[37]
        assert second.stop() == 0


def test_an_instance_told_to_stop_while_its_database_is_started_again_leaves_none_behind(
    engine: Engine, tmp_path: Path
) -> None:
    home = DataFolder(tmp_path).neo4j_home
    with up(tmp_path) as instance:
        assert instance.info
        database = home.process()
        assert database is not None
        database.kill()
        said_in(instance.log, "starting it again")
        assert instance.stop() == 0
    assert home.process() is None


def test_an_instance_told_to_stop_before_it_is_ready_leaves_nothing_behind(engine: Engine, tmp_path: Path) -> None:
    """Told so while its Neo4j starts, while it prepares that one, and while its API and worker start."""
    home = DataFolder(tmp_path).neo4j_home
    console = home.path / "logs" / "console.log"
    for log, moment in ((console, "Starting"), (console, "Started."), (tmp_path / "up.log", "Application startup")):
        with up(tmp_path) as instance:
            said_in(log, moment)
            assert instance.stop() == 0
        assert home.process() is None
        assert "never retrieved" not in instance.log.read_text()
        log.unlink()


def said_in(log: Path, text: str) -> None:
    """Return once the log says so."""
    end = time.monotonic() + READY_S
    while not log.is_file() or text not in log.read_text():
        assert time.monotonic() < end
        time.sleep(0.05)


def ready(instance: Instance, ids: list[str]) -> set[str]:
    """Those of `ids` that become READY in time."""
    query = "query($ids: [ID!]!) { nodes(ids: $ids) { id ... on Memory { processing } } }"
    end = time.monotonic() + READY_S
    while True:
        done = {node["id"] for node in instance.ask(query, ids=ids) if node["processing"] == "READY"}
        if len(done) == len(ids) or time.monotonic() > end:
            return done
        time.sleep(0.5)


@pytest.mark.parametrize("arguments", [["serve"], ["import", "README.md"], ["search", "anything"]])
def test_a_command_without_an_instance_says_how_to_start_one(tmp_path: Path, arguments: list[str]) -> None:
    answer = subprocess.run(
        [*COMMAND, *arguments, "--json", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        env=elsewhere(),
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert answer.returncode == 1
    error = json.loads(answer.stdout.splitlines()[-1])["error"]
    assert (error["code"], "graph-mem up" in error["message"]) == ("SETUP", True)
