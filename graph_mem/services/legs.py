"""Runs the legs of a search side by side, widening what a filter thins out, and says how each fared."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from graph_mem.core.model import Principal, RecordId
from graph_mem.core.retrieval import Leg, LegState, Query, RetrievalMode, held_then
from graph_mem.errors import IndexUnavailable, OperationTimeout
from graph_mem.models.embedder import EMBEDDING_ERRORS
from graph_mem.services import Deps
from graph_mem.services.spans import Told, span, spanned
from graph_mem.store import search
from graph_mem.store.found import Found
from graph_mem.store.search import Surroundings, Where
from graph_mem.store.words import Wording, needle, plain, wording

VECTOR = "vector"
LEXICAL = "lexical"
SUBSTRING = "substring"

LEG_TIMEOUT_S = 5.0
_LEAST_WORDS = 30
"""What is further down shares little words with the query only. Measured: bench/README.md."""

_LEAST_MEANING = 50
"""The vector index finds too little of what is there when it is asked for fewer."""

_WIDEST = 3_200
_EMBEDDED_CHARS = 8_000
"""Characters of a query that the embedding model is given; it reads far fewer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with its filters resolved. `depth`: units each leg looks at, at least; `wanted`: records a full page
    needs; `now`: what ended by then does not answer what is asked of today.
    """

    query: Query
    where: Where
    depth: int
    wanted: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Harvest:
    """What the legs brought. A leg that did not run has None; `exhausted`: no leg could have brought more; `over`:
    how many records were left out because they held until a day that is over.
    """

    words: Sequence[Found] | None
    meaning: Sequence[Found] | None
    wording: Wording | None
    surroundings: Surroundings
    legs: tuple[Leg, ...]
    exhausted: bool
    over: int = 0

    @property
    def mode(self) -> RetrievalMode:
        if any(leg.name == SUBSTRING for leg in self.legs):
            return RetrievalMode.SUBSTRING
        if self.meaning is None:
            return RetrievalMode.LEXICAL
        return RetrievalMode.VECTOR if self.words is None else RetrievalMode.HYBRID

    @property
    def degraded_reason(self) -> str | None:
        """Why the mode is not HYBRID."""
        if self.mode is RetrievalMode.HYBRID:
            return None
        return " ".join(leg.reason for leg in self.legs if leg.state is not LegState.RAN and leg.reason) or None


@dataclass(frozen=True, slots=True)
class _Leg:
    leg: Leg
    found: Sequence[Found] | None = None
    full: bool = False
    over: frozenset[RecordId] = frozenset()


_UNKNOWN = Surroundings(0, 0)


@dataclass(frozen=True, slots=True)
class _Words:
    leg: _Leg
    surroundings: Surroundings = _UNKNOWN


async def run(deps: Deps, principal: Principal, asked: Asked) -> Harvest:
    """Both legs at once; substring search if neither could run."""
    words = wording(asked.query.text)
    lexical, vector = await asyncio.gather(_lexical(deps, principal, asked, words), _vector(deps, principal, asked))
    legs = [vector.leg, lexical.leg.leg]
    found, full, over = lexical.leg.found, lexical.leg.full or vector.full, lexical.leg.over | vector.over
    if vector.found is None and found is None:
        last = await _substring(deps, principal, asked)
        legs.append(last.leg)
        found, full, over = last.found, last.full, last.over
    return Harvest(
        words=found,
        meaning=vector.found,
        wording=words,
        surroundings=lexical.surroundings,
        legs=tuple(legs),
        exhausted=not full,
        over=len(over),
    )


def _told(done: _Leg) -> Told:
    return {"graph_mem.state": done.leg.state.value, "graph_mem.candidates": done.leg.candidates}


def _told_words(done: _Words) -> Told:
    return _told(done.leg)


@spanned("leg lexical", _told_words)
async def _lexical(deps: Deps, principal: Principal, asked: Asked, words: Wording | None) -> _Words:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(LEG_TIMEOUT_S):
            done = await _worded(deps, principal, asked, words)
    except (IndexUnavailable, OperationTimeout, TimeoutError) as error:
        return _Words(_failed(LEXICAL, _why("full-text", error), started))
    leg = replace(
        done.leg.leg, took_ms=_ms_since(started), reason=done.leg.leg.reason or (words.cut if words else None)
    )
    return replace(done, leg=replace(done.leg, leg=leg))


async def _worded(deps: Deps, principal: Principal, asked: Asked, words: Wording | None) -> _Words:
    if words is None:
        around = await deps.db.glance(lambda tx: search.surroundings(tx, principal, asked.where))
        return _Words(_Leg(Leg(LEXICAL, LegState.SKIPPED, "No word of the query could be in the index.")), around)
    around = _UNKNOWN

    async def find(limit: int) -> list[Found]:
        nonlocal around
        found, around = await deps.db.glance(
            lambda tx: search.words(tx, principal, asked.where, wording=words, limit=limit)
        )
        return found

    leg = await _widened(LEXICAL, find, asked, least=_LEAST_WORDS)
    return _Words(leg, around)


@spanned("leg vector", _told)
async def _vector(deps: Deps, principal: Principal, asked: Asked) -> _Leg:
    started = time.perf_counter()
    encoding = deps.embedder.in_force
    try:
        with span("embed"):
            vector = await encoding.embedder.query(plain(asked.query.text[:_EMBEDDED_CHARS]))
    except EMBEDDING_ERRORS as error:
        return _failed(VECTOR, error.message, started)

    async def find(limit: int) -> list[Found]:
        return await deps.db.glance(
            lambda tx: search.meaning(tx, principal, asked.where, vector=vector, space=encoding.space, limit=limit)
        )

    try:
        async with asyncio.timeout(LEG_TIMEOUT_S):
            done = await _widened(VECTOR, find, asked, least=_LEAST_MEANING)
    except (IndexUnavailable, OperationTimeout, TimeoutError) as error:
        return _failed(VECTOR, _why("vector", error), started)
    return replace(done, leg=replace(done.leg, took_ms=_ms_since(started)))


@spanned("leg substring", _told)
async def _substring(deps: Deps, principal: Principal, asked: Asked) -> _Leg:
    started = time.perf_counter()
    wanted = needle(asked.query.text)

    async def find(limit: int) -> list[Found]:
        if not wanted:
            return []
        return await deps.db.read(lambda tx: search.substring(tx, principal, asked.where, needle=wanted, limit=limit))

    done = await _widened(SUBSTRING, find, asked, least=_LEAST_WORDS)
    return replace(done, leg=replace(done.leg, took_ms=_ms_since(started)))


async def _widened(name: str, find: Callable[[int], Awaitable[list[Found]]], asked: Asked, *, least: int) -> _Leg:
    """What `find` finds, looking deeper while chunks of the same records, or a clock, leave too few."""
    limit = max(least, asked.depth)
    while True:
        found = await find(limit)
        in_time = [one for one in found if _held(one, asked.query)]
        over = frozenset(one.record_id for one in in_time if _over(one, asked))
        held = [one for one in in_time if one.record_id not in over]
        full = len(found) >= limit
        enough = len(_records(held)) >= asked.wanted
        if enough or not full or limit >= _WIDEST:
            return _Leg(Leg(name, LegState.RAN, candidates=len(held)), held, full, over)
        limit *= 4


def _records(found: Sequence[Found]) -> set[RecordId]:
    return {one.record_id for one in found}


def _held(found: Found, query: Query) -> bool:
    if query.known_at is None:
        return found.in_time
    return found.in_time and held_then(
        found.interval, as_of=query.as_of, known_at=query.known_at, stated_to=found.stated_to
    )


def _over(found: Found, asked: Asked) -> bool:
    """Whether this held until a day that is over, where today is asked about."""
    return not asked.query.is_audit and found.interval.valid_to <= asked.now


def _failed(name: str, reason: str, started: float) -> _Leg:
    return _Leg(Leg(name, LegState.FAILED, reason, took_ms=_ms_since(started)))


def _why(index: str, error: Exception) -> str:
    if isinstance(error, IndexUnavailable):
        return f"The {index} index is missing or not online."
    return f"The {index} index gave no answer in time."


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
