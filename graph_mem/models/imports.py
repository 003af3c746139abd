"""Imports that can be given up: importing torch may take a minute that nobody waits for."""

import threading
from importlib.abc import MetaPathFinder


class Imports(MetaPathFinder):
    """On `sys.meta_path`: lets the thread that made it import modules until it is to give up.

    Nothing is raised anywhere but at an import statement, so what is raised is never swallowed by a destructor.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._given_up = False

    def give_up(self) -> None:
        """End the thread at its next import, by SystemExit."""
        self._given_up = True

    def find_spec(self, *_: object) -> None:
        """Leave every module to the finders after this one."""
        if self._given_up and threading.get_ident() == self._thread:
            raise SystemExit
