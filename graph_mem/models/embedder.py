"""Embeddings for an event loop: loaded in the background, batched, timed, and off while they fail."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TypeAlias

import numpy as np

from graph_mem.core.vectors import FIRST, Space, Vector, Vectors
from graph_mem.errors import DimensionMismatch, EmbedderUnavailable, InvalidInput
from graph_mem.models.encoder import Encoder, Kind, checked
from graph_mem.models.imports import Imports
from graph_mem.models.lane import Lane
from graph_mem.models.profile import ModelProfile

EMBEDDING_ERRORS = (EmbedderUnavailable, DimensionMismatch)
"""What `query` and `passages` raise, and search answers by doing without vectors."""

EmbeddingError: TypeAlias = EmbedderUnavailable | DimensionMismatch

CHARACTERS_PER_TOKEN = 16
"""No text has longer tokens on average: what is beyond the model's last token is not even looked at."""

PROBE = "Does the embedding model answer?"


class EmbedderState(StrEnum):
    LOADING = "LOADING"
    READY = "READY"
    DEGRADED = "DEGRADED"
    FAILED = "FAILED"
    CLOSED = "CLOSED"


@dataclass(frozen=True, kw_only=True)
class EmbedderStatus:
    """How the embedder is, and why when it is not READY."""

    model: str
    state: EmbedderState
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class EmbedderLimits:
    """Times and sizes of an `Embedder`.

    A model that fails is asked again every `probe_every_s`, in the background; until it answers, queries are
    refused at once. One that could not be loaded is tried again every `reload_every_s`.
    """

    query_timeout_s: float = 1.0
    probe_every_s: float = 2.0
    reload_every_s: float = 10.0
    cached_queries: int = 1024
    passage_width: int = 16
    passage_threads: int = 1


class Embedder:
    """Vectors of texts, or the reason why there are none.

    Queries and passages have threads of their own, so that no import delays a search.
    """

    def __init__(
        self, load: Callable[[], Encoder], *, profile: ModelProfile, limits: EmbedderLimits | None = None
    ) -> None:
        self.profile = profile
        self._load = load
        self._limits = limits = limits or EmbedderLimits()
        self._state = EmbedderState.LOADING
        self._trouble: EmbeddingError | None = None
        self._encoder: Encoder | None = None
        self._imports = Imports()
        self._settled = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._probing = False
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="embed-load")
        self._queries = Lane(partial(self._encode, kind="query"), name="embed-query", width=limits.passage_width)
        self._passages = Lane(
            partial(self._encode, kind="passage"),
            name="embed-passage",
            width=limits.passage_width,
            threads=limits.passage_threads,
        )

    @property
    def in_force(self) -> "Encoding":
        """Itself, where no other model can follow it."""
        return Encoding(self, FIRST)

    @property
    def status(self) -> EmbedderStatus:
        """How the embedder is now, for health and for the reason of a degraded search."""
        state, reason = self._state, self._trouble.message if self._trouble else None
        if state is EmbedderState.LOADING:
            reason = f"The embedding model {self.profile.name} is being loaded."
        elif state is EmbedderState.CLOSED:
            reason = "The embedder is shut down."
        elif state is EmbedderState.READY and reason is not None:
            state = EmbedderState.DEGRADED
        return EmbedderStatus(model=self.profile.name, state=state, reason=reason)

    def start(self) -> None:
        """Begin to load, in the background."""
        self._spawn(self._bring_up())

    async def settled(self) -> EmbedderStatus:
        """The status once the first attempt to load has ended."""
        await self._settled.wait()
        return self.status

    async def aclose(self) -> None:
        """Refuse what waits, finish what runs, give up a load, free the model."""
        self._state = EmbedderState.CLOSED
        self._settled.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(self._queries.aclose(), self._passages.aclose())
        self._loader.shutdown(wait=False, cancel_futures=True)
        self._imports.give_up()
        if self._encoder is not None:
            self._encoder.close()

    async def query(self, text: str) -> Vector:
        """The vector of a query, within `query_timeout_s`.

        Errors: EMBEDDING_ERRORS, at once while the model loads or is known to fail.
        """
        text = text[: self.profile.max_tokens * CHARACTERS_PER_TOKEN]
        if (known := self._cache.get(text)) is not None:
            self._cache.move_to_end(text)
            return known
        self._require_loaded()
        if self._trouble is not None:
            raise _again(self._trouble)
        vector = (await self._answer(self._queries, [text], timeout_s=self._limits.query_timeout_s))[0]
        self._remember(text, vector)
        return vector

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of `texts`, one row each. Waits while the model loads; tries a model that failed before.

        Errors: EMBEDDING_ERRORS.
        """
        await self._settled.wait()
        self._require_loaded()
        width = self._limits.passage_width
        ahead = asyncio.Semaphore(self._limits.passage_threads + 1)  # so that a long text leaves room for others

        async def part(start: int) -> Vectors:
            async with ahead:
                return await self._answer(self._passages, texts[start : start + width])

        parts = await _all([part(start) for start in range(0, len(texts), width)])
        return np.concatenate(parts) if parts else np.empty((0, self.profile.dimension), np.float32)

    def _require_loaded(self) -> None:
        if self._state is EmbedderState.FAILED and self._trouble is not None:
            raise _again(self._trouble)
        if self._state is not EmbedderState.READY:
            raise EmbedderUnavailable(self.status.reason or "The embedder is not loaded.")

    def _encode(self, texts: list[str], *, kind: Kind) -> Vectors:
        """Runs in a lane's thread."""
        if self._encoder is None:
            raise EmbedderUnavailable("The embedding model is not loaded.")
        return checked(self._encoder.encode(texts, kind=kind), texts=len(texts), profile=self.profile)

    async def _answer(self, lane: Lane, texts: Sequence[str], *, timeout_s: float | None = None) -> Vectors:
        """What `lane` answers; success or failure decides whether queries are let through from now on."""
        answer = asyncio.create_task(lane.run(texts))
        try:
            await asyncio.wait({answer}, timeout=timeout_s)
            if not answer.done():
                raise self._failed(EmbedderUnavailable(f"{self.profile.name} gave no answer within {timeout_s} s."))
            if (error := answer.exception()) is not None:
                raise self._failed(error) from error
            self._trouble = None
            return answer.result()
        finally:
            answer.cancel()

    def _failed(self, error: BaseException) -> EmbeddingError:
        """`error` in our terms, remembered unless it is about one text."""
        if isinstance(error, InvalidInput):
            return EmbedderUnavailable(error.message)
        trouble = error if isinstance(error, EMBEDDING_ERRORS) else self._foreign(error)
        if self._state is not EmbedderState.CLOSED:
            self._trouble = trouble
            if not self._probing:
                self._spawn(self._probe())
        return _again(trouble)

    def _foreign(self, error: BaseException) -> EmbedderUnavailable:
        return EmbedderUnavailable(f"{self.profile.name} failed with {type(error).__name__}: {str(error)[:300]}")

    async def _probe(self) -> None:
        """Ask until the model answers again."""
        self._probing = True
        while self._trouble is not None:
            await asyncio.sleep(self._limits.probe_every_s)
            await asyncio.wait({self._spawn(self._ask())})
        self._probing = False

    async def _ask(self) -> None:
        try:
            await self._answer(self._queries, [PROBE], timeout_s=self._limits.query_timeout_s)
        except EMBEDDING_ERRORS:
            return

    async def _bring_up(self) -> None:
        while self._encoder is None:
            await self._attempt()
            self._settled.set()
            if isinstance(self._trouble, DimensionMismatch):
                return
            if self._encoder is None:
                await asyncio.sleep(self._limits.reload_every_s)

    async def _attempt(self) -> None:
        """Load, and warm up. A loaded model that does not answer yet is READY and in trouble."""
        loop = asyncio.get_running_loop()
        loading = loop.run_in_executor(self._loader, self._loaded)
        try:
            await asyncio.wait({loading})
        finally:
            loading.cancel()
        if (error := loading.exception()) is not None:
            self._refuse(error if isinstance(error, EMBEDDING_ERRORS) else self._foreign(error))
            return
        self._encoder = loading.result()
        warming = loop.run_in_executor(self._loader, partial(self._encode, [PROBE], kind="query"))
        await asyncio.wait({warming})
        error = warming.exception()
        if isinstance(error, DimensionMismatch):
            self._refuse(error)
            return
        self._state, self._trouble = EmbedderState.READY, None
        if error is not None:
            self._failed(error)

    def _loaded(self) -> Encoder:
        """Runs in the loader's thread."""
        with self._imports:
            return self._load()

    def _refuse(self, error: EmbeddingError) -> None:
        self._state, self._trouble = EmbedderState.FAILED, error

    def _remember(self, text: str, vector: Vector) -> None:
        vector.flags.writeable = False
        self._cache[text] = vector
        if len(self._cache) > self._limits.cached_queries:
            self._cache.popitem(last=False)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@dataclass(frozen=True, slots=True)
class Encoding:
    """An embedder, and the space that its vectors belong to."""

    embedder: Embedder
    space: Space


def _again(error: EmbeddingError) -> EmbeddingError:
    """A new instance: one that is raised twice grows its traceback."""
    return type(error)(error.message)


async def _all(works: Sequence[Coroutine[None, None, Vectors]]) -> list[Vectors]:
    """The results in order; the first failure cancels the rest."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
