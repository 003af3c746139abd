"""Archive files: gzipped JSON Lines behind a header, closed by a footer that tells a cut or altered one."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph_mem.core.archive import Edge, Footer, Header, Line, Node, read, written
from graph_mem.errors import ArchiveDamaged


@dataclass(slots=True)
class _Count:
    """What the footer will say of the lines so far."""

    nodes: int = 0
    edges: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, line: Line, raw: bytes) -> None:
        self.digest.update(raw)
        self.nodes += isinstance(line, Node)
        self.edges += isinstance(line, Edge)

    @property
    def footer(self) -> Footer:
        return Footer(self.nodes, self.edges, self.digest.hexdigest())


def write(path: Path, header: Header, body: Iterable[Node | Edge]) -> Footer:
    """Make the archive at `path`, readable by its user only, whole or not at all."""
    draft = path.with_name(f"{path.name}.writing")
    count = _Count()
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as disk:
        with gzip.GzipFile(fileobj=disk, mode="wb", mtime=0, filename="") as file:
            for line in _opened(header, body):
                raw = _bytes(line)
                file.write(raw)
                count.add(line, raw)
            file.write(_bytes(count.footer))
        disk.flush()
        os.fsync(disk.fileno())
    draft.replace(path)
    return count.footer


def lines(path: Path) -> Iterator[Line]:
    """Every line in order, the footer last.

    Errors: ArchiveUnsupported, ArchiveDamaged. The last line alone tells whether those before it were whole.
    """
    count, first = _Count(), True
    for raw in _raw(path):
        line = read(raw)
        if isinstance(line, Header) != first:
            raise ArchiveDamaged(f"{path} does not begin with one header.")
        first = False
        if isinstance(line, Footer):
            if line != count.footer:
                raise ArchiveDamaged(f"{path} was altered: its checksum or counts are not those in its last line.")
            yield line
            return
        count.add(line, raw)
        yield line
    raise ArchiveDamaged(f"{path} was cut off: it has no last line.")


def _opened(header: Header, body: Iterable[Node | Edge]) -> Iterator[Line]:
    yield header
    yield from body


def _bytes(line: Line) -> bytes:
    return f"{written(line)}\n".encode()


def _raw(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            yield from file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ArchiveDamaged(f"{path} is no whole gzip file: {error}.") from error
