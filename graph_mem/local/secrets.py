"""Secrets of an instance: made once, kept in its data folder, readable by its user only."""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path


def keep_secret(path: Path, *, size_bytes: int = 32) -> str:
    """The secret in this file, made now if there is none. All who ask at once get the same one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
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
