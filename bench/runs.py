"""The product's own search and the raw legs of the same indexes, question by question."""

import asyncio
from collections.abc import Mapping, Sequence

from bench.loading import Loaded
from bench.measures import Answered
from bench.sets import Question
from graph_mem.core.model import Principal, RecordId, Standing
from graph_mem.core.retrieval import Query, RetrievalMode, SearchPage
from graph_mem.core.vectors import FIRST
from graph_mem.services import Deps, recall
from graph_mem.store import search
from graph_mem.store.found import Found
from graph_mem.store.search import Where
from graph_mem.store.words import wording

TOP = 10
_DEPTH = 50
_PAUSE_S = 0.5


async def product(deps: Deps, loaded: Loaded) -> list[Answered]:
    """What `search` answers in its default configuration."""
    documents = loaded.documents
    answers: list[Answered] = []
    for question in loaded.set.questions:
        query = Query(question.text, as_of=question.as_of)
        page = await _whole(deps, loaded.principal(question.group), query)
        found = [documents.get(hit.record.id, hit.record.id) for hit in page.hits]
        answers.append(Answered(question, found, [hit.tier for hit in page.hits]))
    return answers


async def _whole(deps: Deps, principal: Principal, query: Query) -> SearchPage:
    """The page once both legs ran: on a busy machine a leg may time out, and this is about quality."""
    while True:
        page = await recall.search_page(deps, principal, query, first=TOP)
        if page.trace.mode is RetrievalMode.HYBRID:
            return page
        await asyncio.sleep(_PAUSE_S)


async def raw_legs(deps: Deps, loaded: Loaded) -> Mapping[str, list[Answered]]:
    """The vector leg alone, the words leg alone, and both stretched to 0..1 and added up: no product logic."""
    runs: dict[str, list[Answered]] = {"vector leg": [], "words leg": [], "both, min-max": []}
    for question in loaded.set.questions:
        principal = loaded.principal(question.group)
        vector = await _vector(deps, principal, question)
        words = await _words(deps, principal, question)
        both = _added(_stretched(words), _stretched(vector))
        for name, scores in zip(runs, (vector, words, both), strict=True):
            runs[name].append(Answered(question, _documents(loaded, scores)))
    return runs


def _where(principal: Principal, question: Question) -> Where:
    standings = (Standing.CURRENT, Standing.SUPERSEDED) if question.as_of else (Standing.CURRENT,)
    return Where(principal.scopes, standings=standings, held_at=question.as_of)


async def _vector(deps: Deps, principal: Principal, question: Question) -> dict[RecordId, float]:
    vector = await deps.embedder.query(question.text)
    where = _where(principal, question)
    return _best(
        await deps.db.glance(lambda tx: search.meaning(tx, principal, where, vector=vector, space=FIRST, limit=_DEPTH))
    )


async def _words(deps: Deps, principal: Principal, question: Question) -> dict[RecordId, float]:
    asked = wording(question.text)
    if asked is None:
        return {}
    where = _where(principal, question)
    found, _ = await deps.db.glance(lambda tx: search.words(tx, principal, where, wording=asked, limit=_DEPTH))
    return _best([one for one in found if one.in_time])


def _best(found: Sequence[Found]) -> dict[RecordId, float]:
    scores: dict[RecordId, float] = {}
    for one in found:
        scores[one.record_id] = max(one.raw, scores.get(one.record_id, one.raw))
    return scores


def _stretched(scores: Mapping[RecordId, float]) -> dict[RecordId, float]:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=1.0)
    return {id: (score - low) / (high - low) if high > low else 1.0 for id, score in scores.items()}


def _added(words: Mapping[RecordId, float], vector: Mapping[RecordId, float]) -> dict[RecordId, float]:
    return {id: 0.4 * words.get(id, 0.0) + 0.6 * vector.get(id, 0.0) for id in {*words, *vector}}


def _documents(loaded: Loaded, scores: Mapping[RecordId, float]) -> list[str]:
    documents = loaded.documents
    ordered = sorted(scores, key=lambda id: (-scores[id], id))[:TOP]
    return [documents.get(id, id) for id in ordered]
