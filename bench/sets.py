"""The public sets, as they lie in a folder: corpus, queries, what is relevant."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LEFT_OUT = "adversarial"
"""Questions of LoCoMo that have no answer."""


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    text: str
    title: str | None
    group: str | None
    meta: Mapping[str, Any]

    @property
    def at(self) -> datetime | None:
        return datetime.fromisoformat(self.meta["time"]).replace(tzinfo=UTC) if "time" in self.meta else None

    @property
    def session(self) -> str:
        """What the document is a part of: a session of a conversation, or itself."""
        session = self.meta.get("session")
        return f"{self.group}/{session}" if session else self.id


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    category: str
    group: str | None
    as_of: datetime | None
    relevant: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]

    @property
    def are_facts(self) -> bool:
        return all("relation" in document.meta for document in self.documents)


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def load(folder: Path) -> DataSet:
    """The set in `folder`; questions without a relevant document are left out."""
    relevant: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        relevant.setdefault(question, {})[document] = int(grade)
    documents = tuple(
        Document(one["id"], one["text"], one.get("title"), one.get("group"), one.get("meta") or {})
        for one in _lines(folder / "corpus.jsonl")
    )
    questions = tuple(
        Question(
            one["id"],
            one["text"],
            one.get("category", ""),
            one.get("group"),
            datetime.fromisoformat(one["as_of"]).replace(tzinfo=UTC) if one.get("as_of") else None,
            relevant[one["id"]],
        )
        for one in _lines(folder / "queries.jsonl")
        if one.get("category") != LEFT_OUT and one["id"] in relevant
    )
    return DataSet(folder.name, documents, questions)
