"""The proof of an erasure: where the words still are, in the database and in files made of it."""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table

from graph_mem.cli.documents import as_object
from graph_mem.services import Deps, erasure
from graph_mem.services.erasure import Erased
from graph_mem.store.remnants import Remnant

_BLOCK = 1 << 22
_GZIP = b"\x1f\x8b"
_COMPRESSED = (b"DZV1", b"\x28\xb5\x2f\xfd")
"""Zstandard, as `neo4j-admin database dump` writes it: its bytes tell nothing, the dump has to be loaded to be read."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What still holds the words; files that could not be read as they are, which the proof does not cover."""

    remnants: tuple[Remnant, ...]
    files: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return not self.remnants and not self.files


def needles(words: Path | None) -> tuple[str, ...]:
    """The text of a file, whole and by its paragraphs."""
    text = words.read_text(encoding="utf-8").strip() if words else ""
    parts = [part.strip() for part in text.split("\n\n")]
    return tuple(dict.fromkeys(part for part in (text, *parts) if part))


async def prove(deps: Deps, wanted: Sequence[str], dumps: Sequence[Path]) -> Proof:
    """Look for `wanted` in every property of every node and relationship, and in every file of `dumps`."""
    files = [file for path in dumps for file in _files(path)]
    unread = [str(file) for file in files if _head(file).startswith(_COMPRESSED)]
    readable = [file for file in files if str(file) not in unread]
    return Proof(
        remnants=tuple(await erasure.remnants(deps, wanted)),
        files=tuple(str(file) for file in readable if holds(file, wanted)),
        unread=tuple(unread),
    )


def _files(path: Path) -> Iterator[Path]:
    yield from sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def holds(path: Path, wanted: Sequence[str]) -> bool:
    """Whether a file, compressed by gzip or not, has one of `wanted` in it: as it is, as JSON, or in UTF-16."""
    forms = {form for text in wanted for form in _forms(text)}
    overlap = max(map(len, forms), default=1) - 1
    with gzip.open(path, "rb") if _head(path).startswith(_GZIP) else path.open("rb") as file:
        tail = b""
        while block := file.read(_BLOCK):
            window = tail + block
            if any(form in window for form in forms):
                return True
            tail = window[-overlap:] if overlap else b""
    return False


def _forms(text: str) -> Iterator[bytes]:
    yield text.encode()
    yield json.dumps(text)[1:-1].encode()
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode()
    yield text.encode("utf-16-le")
    yield text.encode("utf-16-be")


def shown(done: Erased | None, proof: Proof | None) -> tuple[dict[str, object], RenderableType]:
    """What was erased and what the proof found, for programs and for people."""
    document: dict[str, object] = {}
    views: list[RenderableType] = []
    if done is not None:
        document |= {"erasedIds": list(done.ids), "counts": done.counts, "dryRun": done.dry_run}
        document |= {"elsewhere": [as_object(one) for one in done.elsewhere]}
        counts = Table("what", "would be touched" if done.dry_run else "touched")
        for name, number in done.counts.items():
            counts.add_row(name, str(number))
        views += [counts, f"{'Would erase' if done.dry_run else 'Erased'} {', '.join(done.ids)}"]
        views += [f"{one.what} {one.id} says the same, as `{one.property}`, and stays" for one in done.elsewhere]
    if proof is not None:
        document |= {"proof": {**as_object(proof), "clean": proof.clean}}
        views.append(_verdict(proof))
    return document, Group(*views)


def _verdict(proof: Proof) -> RenderableType:
    lines = [f"{one.what} {one.id} still holds the words, as `{one.property}`" for one in proof.remnants]
    lines += [f"{file} still holds the words" for file in proof.files]
    lines += [f"{file} is compressed: load it elsewhere and verify there" for file in proof.unread]
    if lines:
        return "\n".join(lines)
    return (
        "No property of any node or relationship holds the words. Bytes that Neo4j has freed may, and so may raw dumps:"
        " `graph-mem db compact` writes the files anew."
    )
