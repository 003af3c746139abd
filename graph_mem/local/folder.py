"""The data folder of an instance: who works on it now, and what it announced."""

import fcntl
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from graph_mem.errors import SetupError
from graph_mem.local.home import Home
from graph_mem.local.secrets import keep_secret, private_folder
from graph_mem.local.swap import settle

PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a running instance tells the commands beside it. No secrets: those stay in their own files."""

    graphql: str
    neo4j: str
    browser: str | None


class DataFolder:
    """One folder, one instance at a time.

    The lock belongs to the process, so it is free again however that ends.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def neo4j_home(self) -> Home:
        """The home of the instance's own Neo4j."""
        return Home((self.root / "neo4j").resolve())

    def signing_key(self) -> str:
        """The secret that signs this instance's tokens."""
        return keep_secret(self.root / "jwt-secret")

    @contextmanager
    def hold(self) -> Generator[None]:
        """Be the one that works on the folder.

        Errors: SetupError naming the process that does already.
        """
        private_folder(self.root)
        with self._lock.open("a+") as file:
            if not wait_for_lock(file.fileno()):
                raise SetupError(f"{self.root} is in use by process {self._pid()}; `graph-mem down` stops it.")
            self._announced.unlink(missing_ok=True)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            settle(self.root)
            try:
                yield
            finally:
                self._announced.unlink(missing_ok=True)
                file.truncate(0)

    def holder(self) -> int | None:
        """The id of the process that works on the folder now."""
        if not self._lock.is_file():
            return None
        with self._lock.open() as file:
            return None if try_lock(file.fileno()) else self._pid()

    def announce(self, announcement: Announcement) -> None:
        """Tell the commands beside us where we are."""
        self._announced.write_text(json.dumps(asdict(announcement)))

    def announced(self) -> Announcement | None:
        """Where the running instance is; None while none runs or it is still starting."""
        if self.holder() is None or not self._announced.is_file():
            return None
        return Announcement(**json.loads(self._announced.read_text()))

    @property
    def _lock(self) -> Path:
        return self.root / "instance.lock"

    @property
    def _announced(self) -> Path:
        return self.root / "instance.json"

    def _pid(self) -> int | None:
        text = self._lock.read_text().strip()
        return int(text) if text else None


def wait_for_lock(descriptor: int) -> bool:
    """Take the lock; a process that only asks who has it, or is just ending, is waited for."""
    deadline = time.monotonic() + PATIENCE_S
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def try_lock(descriptor: int) -> bool:
    """Take the lock unless another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
