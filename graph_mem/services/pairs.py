"""Kept knowledge as training pairs: what a distillation into a model can start from."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from graph_mem.core.candidates import Seen
from graph_mem.core.model import Fact, Place, Principal, RecordId, Scope
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.services import Deps
from graph_mem.store import candidates as store
from graph_mem.store.candidates import Cursor
from graph_mem.store.db import Tx

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and what the organization holds to be its answer; `source` is the record, `kind` its label."""

    prompt: str
    completion: str
    source: RecordId
    kind: str


async def pairs(deps: Deps, principal: Principal, *, promoted_label: str) -> AsyncGenerator[Pair, None]:
    """A pair for each current shared fact, position, protected memory and one that was promoted to `promoted_label`.

    Nothing private, provisional, superseded, archived or erased is among them.
    """
    vocabulary = await deps.settings.vocabulary(principal.org_id)
    partition = Place(principal.org_id, Scope()).partition_token
    cursor = Cursor()
    while facts := await _facts(deps, principal, partition, cursor):
        cursor = store.behind(facts[-1])
        for fact in facts:
            yield Pair(f"What is the {fact.relation} of {fact.subject}?", fact.statement, fact.id, "fact")
    cursor = Cursor()
    while page := await _memories(deps, principal, partition, cursor):
        cursor = store.behind(page[-1].memory)
        kept = [one for one in page if _kept(one, vocabulary, promoted_label)]
        words = await _texts(deps, principal, kept)
        for one in kept:
            if (text := words.get(one.memory.id)) is not None:
                yield Pair(_question(one, text), text, one.memory.id, one.memory.label)


def _kept(one: Seen, vocabulary: Vocabulary, promoted_label: str) -> bool:
    label = vocabulary.labels.get(one.memory.label)
    return one.memory.position or one.memory.label == promoted_label or (label is not None and label.protected)


def _question(one: Seen, text: str) -> str:
    """What the text answers: its title, or its first line's topic, as a request a person could make."""
    kind = one.memory.label.replace("_", " ")
    topic = one.memory.title or text.strip().splitlines()[0][:80]
    return f"State the {kind} on: {topic}"


async def _facts(deps: Deps, principal: Principal, partition: str, cursor: Cursor) -> list[Fact]:
    async def work(tx: Tx) -> list[Fact]:
        return await store.current_facts(tx, principal, partition=partition, after=cursor, limit=_PAGE)

    return await deps.db.read(work)


async def _memories(deps: Deps, principal: Principal, partition: str, cursor: Cursor) -> list[Seen]:
    async def work(tx: Tx) -> list[Seen]:
        return await store.memories(tx, principal, partition=partition, after=cursor, limit=_PAGE)

    return await deps.db.read(work)


async def _texts(deps: Deps, principal: Principal, kept: Sequence[Seen]) -> dict[RecordId, str]:
    async def work(tx: Tx) -> dict[RecordId, str]:
        return await store.texts(tx, principal, [one.memory.id for one in kept])

    return await deps.db.read(work) if kept else {}
