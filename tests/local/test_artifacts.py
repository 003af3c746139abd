"""Downloads against a real HTTP server on the loopback, which counts what it was asked for."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from graph_mem.errors import ChecksumMismatch, SetupError
from graph_mem.local import artifacts
from graph_mem.local.artifacts import Artifact, Cache, read_lock

UNREACHABLE = "http://127.0.0.1:9/maven2"
CONTENT = bytes(range(256)) * 4000


@dataclass
class Repository:
    """A Maven repository that serves `content` for every path."""

    content: bytes = CONTENT
    address: str = ""
    ranges: list[str | None] = field(default_factory=list)


@pytest.fixture
def repository() -> Iterator[Repository]:
    served = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            served.ranges.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(served.content) - start))
            self.end_headers()
            self.wfile.write(served.content[start:])

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        served.address = f"http://127.0.0.1:{server.server_address[1]}/maven2"
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "PAUSE_S", 0.0)


@pytest.fixture
def artifact() -> Artifact:
    return Artifact(
        coordinate="org.example:thing:1.0:linux",
        role="lib",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
    )


def test_a_complete_cache_needs_no_network(tmp_path: Path, repository: Repository, artifact: Artifact) -> None:
    Cache(tmp_path, mirror=repository.address).ensure([artifact])
    Cache(tmp_path, mirror=UNREACHABLE).ensure([artifact])
    assert Cache(tmp_path).path(artifact).read_bytes() == CONTENT
    assert repository.ranges == [None]


def test_a_damaged_cache_entry_is_fetched_again(tmp_path: Path, repository: Repository, artifact: Artifact) -> None:
    cache = Cache(tmp_path, mirror=repository.address)
    cache.ensure([artifact])
    cache.path(artifact).write_bytes(CONTENT[:-1] + b"?")
    assert cache.missing([artifact]) == [artifact]
    cache.ensure([artifact])
    assert cache.missing([artifact]) == []
    assert cache.path(artifact).read_bytes() == CONTENT


def test_an_interrupted_download_goes_on_where_it_ended(
    tmp_path: Path, repository: Repository, artifact: Artifact
) -> None:
    cache = Cache(tmp_path, mirror=repository.address)
    part = cache.path(artifact).with_name(artifact.filename + ".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:1000])
    cache.ensure([artifact])
    assert repository.ranges == ["bytes=1000-"]
    assert cache.path(artifact).read_bytes() == CONTENT


def test_a_damaged_beginning_is_not_kept(tmp_path: Path, repository: Repository, artifact: Artifact) -> None:
    cache = Cache(tmp_path, mirror=repository.address)
    part = cache.path(artifact).with_name(artifact.filename + ".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * 1000)
    cache.ensure([artifact])
    assert repository.ranges == ["bytes=1000-", None]
    assert cache.path(artifact).read_bytes() == CONTENT


def test_other_bytes_than_were_locked_are_refused(tmp_path: Path, repository: Repository, artifact: Artifact) -> None:
    repository.content = CONTENT[:-1] + b"?"
    cache = Cache(tmp_path, mirror=repository.address)
    with pytest.raises(ChecksumMismatch, match=r"org\.example:thing:1\.0:linux: found 1024000 bytes .* expected"):
        cache.ensure([artifact])
    assert not cache.path(artifact).exists()


def test_a_repository_out_of_reach_is_named_with_the_way_out(tmp_path: Path, artifact: Artifact) -> None:
    with pytest.raises(SetupError, match=r"could not be downloaded from .*127\.0\.0\.1:9.*GRAPH_MEM_MAVEN_MIRROR"):
        Cache(tmp_path, mirror=UNREACHABLE).ensure([artifact])


def test_the_lock_names_each_file_once_and_no_address() -> None:
    lock = read_lock()
    for role in ("lib", "plugin"):
        names = [artifact.filename for artifact in lock.of(role)]
        assert len(names) == len(set(names)) > 100
    assert "://" not in Path(artifacts.__file__).with_suffix(".json").read_text()


def test_no_plugin_brings_what_the_server_has() -> None:
    lock = read_lock()
    served = {artifact.coordinate.rpartition(":")[0] for artifact in lock.of("lib")}
    assert not served & {artifact.coordinate.rpartition(":")[0] for artifact in lock.of("plugin")}
