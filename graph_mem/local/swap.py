"""Puts a new store in the place of the old one; a crash anywhere leaves one of them whole and in its place.

The new store is made beside the old one. Once it is whole it says so, and the two change names. A process that ends
before that leaves the old store where it was; one that ends between the names leaves the new one to be put in its
place by whoever works on the folder next.
"""

import os
import shutil
from pathlib import Path

from graph_mem.local.home import Home

_NAME, _NEW, _OLD = "neo4j", "neo4j-new", "neo4j-old"
_WHOLE = "whole"
SECRETS = ("neo4j-password", "jwt-secret")
"""Beside a store, and in a new one that comes with its own."""


def beside(root: Path) -> Path:
    """Where a new store is made, empty."""
    settle(root)
    return root / _NEW


def swap(root: Path) -> None:
    """Let the new store, which is complete and stopped, take the place of the old one, and delete that."""
    (root / _NEW / _WHOLE).touch()
    _sync(root / _NEW)
    (root / _NAME).rename(root / _OLD)
    _sync(root)
    settle(root)


def settle(root: Path) -> None:
    """Finish a swap that was broken off; drop what one left behind."""
    new, old, place = root / _NEW, root / _OLD, root / _NAME
    if new.exists():
        left = Home(new.resolve())
        left.stop()
        left.end_admin()
        if (new / _WHOLE).exists() and not place.exists():
            new.rename(place)
            _sync(root)
        else:
            shutil.rmtree(new)
    if place.exists():
        for name in SECRETS:
            if (place / name).is_file():
                (place / name).replace(root / name)
        (place / _WHOLE).unlink(missing_ok=True)
        if old.exists():
            shutil.rmtree(old)


def _sync(folder: Path) -> None:
    """Have the names in `folder` on disk before anything else happens."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
