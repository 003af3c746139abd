"""Trusted documents: operations that the owner of a client has committed, named by the SHA-256 of their bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import orjson

PREFIX = "sha256:"
PERSISTED_QUERY_NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Documents by the hexadecimal SHA-256 of their bytes, as GraphQL Codegen's `persistedDocuments` has them."""

    documents: Mapping[str, str] = field(default_factory=dict[str, str])

    def find(self, document_id: str) -> str | None:
        """The document called `sha256:<hex>`, or `<hex>` as Apollo clients say."""
        return self.documents.get(document_id.removeprefix(PREFIX))

    def holds(self, text: str) -> bool:
        """Whether `text` is one of the documents, byte for byte."""
        return digest(text) in self.documents


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def load_manifest(path: Path) -> Manifest:
    """The manifest at `path`; ValueError if it is no such file or a text does not have its hash."""
    found = orjson.loads(path.read_bytes())
    if not isinstance(found, dict):
        raise ValueError(f"{path.name}: expected an object of documents by hash")  # noqa: TRY004 # a bad file, not a bad argument
    documents = {str(key).removeprefix(PREFIX): str(text) for key, text in found.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] # JSON
    wrong = [key for key, text in documents.items() if digest(text) != key]
    if wrong:
        raise ValueError(f"{path.name}: {wrong[0]} is not the SHA-256 of its document")
    return Manifest(documents)


def render_manifest(folder: Path) -> bytes:
    """The manifest of every `*.graphql` file in `folder`: one document a file, byte for byte, in order of name."""
    texts = [path.read_bytes().decode() for path in sorted(folder.glob("*.graphql"))]
    return orjson.dumps({digest(text): text for text in texts}, option=orjson.OPT_INDENT_2) + b"\n"
