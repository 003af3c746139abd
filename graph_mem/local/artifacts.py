"""The jars and model weights that a local instance runs on: locked, downloaded, verified.

`artifacts.json` is written by `scripts/lock_artifacts.py` and holds coordinates and checksums but no address: the
repository is jgo's constant or the caller's mirror.
"""

import fcntl
import hashlib
import json
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import Literal, TypeAlias

import httpx
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from graph_mem.errors import ChecksumMismatch, SetupError

Role: TypeAlias = Literal["lib", "plugin", "model"]
Advance: TypeAlias = Callable[[int], None]

CONNECTIONS = 8
ATTEMPTS = 3
PAUSE_S = 1.0
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Artifact:
    """One locked file of a Maven repository."""

    coordinate: str
    role: Role
    sha256: str
    size: int

    @property
    def path(self) -> str:
        """Where a repository keeps it, relative to its root."""
        group, name, version, *classifier = self.coordinate.split(":")
        return "/".join([*group.split("."), name, version, "-".join([name, version, *classifier]) + ".jar"])

    @property
    def filename(self) -> str:
        """Unique within one role."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of the default model, inside the model's jar."""

    target: str
    member: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Lock:
    """What this release of graph-mem was tested with."""

    neo4j: str
    gds: str
    model: str
    artifacts: tuple[Artifact, ...]
    model_files: tuple[ModelFile, ...]

    def of(self, *roles: Role) -> tuple[Artifact, ...]:
        """The artifacts with one of these roles."""
        return tuple(artifact for artifact in self.artifacts if artifact.role in roles)


def read_lock() -> Lock:
    """The lock that is part of the package."""
    raw = json.loads((resources.files("graph_mem.local") / "artifacts.json").read_text())
    return Lock(
        neo4j=raw["neo4j"],
        gds=raw["gds"],
        model=raw["model"]["name"],
        artifacts=tuple(Artifact(**entry) for entry in raw["artifacts"]),
        model_files=tuple(ModelFile(target=name, **entry) for name, entry in raw["model"]["files"].items()),
    )


class Cache:
    """The user's cache of artifacts, laid out like a Maven repository.

    Every file is verified each time it is asked for, so a damaged cache mends itself where there is a network, and a
    complete one needs none.
    """

    def __init__(self, folder: Path, *, mirror: str | None = None, console: Console | None = None) -> None:
        self.folder = folder
        self._mirror = mirror
        self._console = console

    @property
    def repository(self) -> str:
        """Where downloads come from."""
        from jgo.constants import MAVEN_CENTRAL_URL  # noqa: PLC0415 brings its whole resolver, for one constant

        return (self._mirror or MAVEN_CENTRAL_URL).rstrip("/")

    def path(self, artifact: Artifact) -> Path:
        """Where the artifact is, or will be."""
        return self.folder / "maven" / artifact.path

    def missing(self, artifacts: Sequence[Artifact]) -> list[Artifact]:
        """Those which are absent or not what was locked."""
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            sound = list(pool.map(is_sound, map(self.path, artifacts), artifacts))
        return [artifact for artifact, good in zip(artifacts, sound, strict=True) if not good]

    def ensure(self, artifacts: Sequence[Artifact]) -> None:
        """Have all of them, verified. Safe when several processes ask at once.

        Errors: ChecksumMismatch if a repository serves other bytes than were locked; SetupError if it serves none.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with exclusive(self.folder / "download.lock"):
            missing = self.missing(artifacts)
            if missing:
                self._download(missing)

    def _download(self, artifacts: Sequence[Artifact]) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS)
        timeout = httpx.Timeout(30, connect=10)
        with (
            httpx.Client(follow_redirects=True, limits=limits, timeout=timeout) as client,
            progress_bar(artifacts, self._console) as advance,
            ThreadPoolExecutor(CONNECTIONS) as pool,
        ):
            futures = [pool.submit(self._fetch, client, artifact, advance) for artifact in artifacts]
            try:
                for future in futures:
                    future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _fetch(self, client: httpx.Client, artifact: Artifact, advance: Advance) -> None:
        target = self.path(artifact)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        for attempt in range(1, ATTEMPTS + 1):
            try:
                receive(client, f"{self.repository}/{artifact.path}", part, advance)
                verify(part, artifact)
            except (httpx.HTTPError, ChecksumMismatch) as problem:
                if attempt == ATTEMPTS:
                    raise self._explained(artifact, problem) from problem
                time.sleep(PAUSE_S * attempt)
            else:
                part.replace(target)
                return

    def _explained(self, artifact: Artifact, problem: Exception) -> SetupError:
        if isinstance(problem, ChecksumMismatch):
            return problem
        return SetupError(
            f"{artifact.coordinate} could not be downloaded from {self.repository}: {problem}. A Maven repository must "
            "be reachable the first time; GRAPH_MEM_MAVEN_MIRROR names another one."
        )


def receive(client: httpx.Client, url: str, part: Path, advance: Advance) -> None:
    """Append to `part` what it lacks; start over if the server ignores ranges."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return
        response.raise_for_status()
        resumed = response.status_code == HTTPStatus.PARTIAL_CONTENT
        if resumed:
            advance(have)
        with part.open("ab" if resumed else "wb") as file:
            for block in response.iter_bytes():
                file.write(block)
                advance(len(block))


def verify(part: Path, artifact: Artifact) -> None:
    """Raise ChecksumMismatch, and drop the file, unless it is the one that was locked."""
    found = sha256(part)
    if found != artifact.sha256:
        size = part.stat().st_size
        part.unlink()
        raise ChecksumMismatch(
            f"{artifact.coordinate}: found {size} bytes with SHA-256 {found}, "
            f"expected {artifact.size} bytes with {artifact.sha256}."
        )


def is_sound(path: Path, artifact: Artifact) -> bool:
    """Whether the file is the one that was locked."""
    return path.is_file() and path.stat().st_size == artifact.size and sha256(path) == artifact.sha256


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def exclusive(path: Path) -> Generator[None]:
    """Hold a lock file while the block runs; the system frees it when the process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def progress_bar(artifacts: Sequence[Artifact], console: Console | None) -> Generator[Advance]:
    """A bar over all bytes, on a terminal; a silent counter elsewhere."""
    if console is None or not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        total = sum(artifact.size for artifact in artifacts)
        task = progress.add_task(f"Downloading {len(artifacts)} files", total=total)
        yield lambda received: progress.advance(task, received)
