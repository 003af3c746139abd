"""Secrets of an instance: made once, kept in its data folder, readable by its user only."""

import os
import secrets
from pathlib import Path

OWNER_ONLY = 0o600


def keep_secret(path: Path, *, size_bytes: int = 32) -> str:
    """The secret in this file, made now if there is none. Two processes that ask at once get the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "w") as file:
            file.write(secrets.token_urlsafe(size_bytes))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()
