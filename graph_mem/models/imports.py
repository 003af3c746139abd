"""Imports that can be given up: importing torch may take a minute that nobody waits for."""

import sys
import threading
from importlib.abc import MetaPathFinder


class Imports(MetaPathFinder):
    """A context in which a thread imports modules until it is to give up.

    Nothing is raised anywhere but at an import statement, so what is raised is never swallowed by a destructor.
    """

    def __init__(self) -> None:
        self._thread: int | None = None
        self._given_up = False

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def give_up(self) -> None:
        """End the thread at its next import, by SystemExit."""
        self._given_up = True

    def find_spec(self, *_: object) -> None:
        """Leave every module to the finders after this one."""
        if self._given_up and threading.get_ident() == self._thread:
            raise SystemExit
