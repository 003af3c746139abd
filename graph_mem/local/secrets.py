"""Secrets of an instance: made once, kept in its data folder; file and folder are for its user only."""

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o700


def private_folder(path: Path) -> None:
    """Have this folder, for its user only. One that is somebody else's, or shared as /tmp is, stays as it is."""
    path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    found = path.stat()
    if found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX and stat.S_IMODE(found.st_mode) != PRIVATE:
        path.chmod(PRIVATE)


def keep_secret(path: Path, *, size_bytes: int = 32) -> str:
    """The secret in this file, made now if there is none. All who ask at once get the same one."""
    if not path.exists():
        path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        # mkstemp's files are their user's alone; a link appears whole, and never in the place of another.
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(size_bytes))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
        Path(draft).unlink()
    return path.read_text()
