"""The embedding model in force, which may change while the process runs, and the one that will be next."""

import asyncio
from collections.abc import Callable, Sequence

from graph_mem.core.vectors import FIRST, Placed, Source, Vector, Vectorings, Vectors
from graph_mem.models.embedder import Embedder, EmbedderStatus, Encoding
from graph_mem.models.profile import ModelProfile


class Embedders:
    """What an `Embedder` is, by the model in force; the next one loads meanwhile, so that a change takes no time.

    `known` is what this process was configured with, and in force until `adopt` says otherwise.
    """

    def __init__(self, known: Source, embedder: Embedder, *, make: Callable[[Source], Embedder]) -> None:
        self._make = make
        self._made: dict[Source, Embedder] = {known: embedder}
        self._in_force = Encoding(embedder, FIRST)
        self._version: int = 0
        self._started = False
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def in_force(self) -> Encoding:
        return self._in_force

    @property
    def profile(self) -> ModelProfile:
        return self._in_force.embedder.profile

    @property
    def status(self) -> EmbedderStatus:
        return self._in_force.embedder.status

    def start(self) -> None:
        """Begin to load, in the background."""
        self._started = True
        self._in_force.embedder.start()

    async def settled(self) -> EmbedderStatus:
        return await self._in_force.embedder.settled()

    async def query(self, text: str) -> Vector:
        return await self._in_force.embedder.query(text)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        return await self._in_force.embedder.passages(texts)

    def adopt(self, now: Vectorings) -> bool:
        """Put `now` in force in this process; False if it was."""
        if now.version == self._version:
            return False
        self._version = now.version
        placed = [one for one in (now.in_force, now.beside) if one is not None]
        made = {one.source: self._of(one) for one in placed}
        self._in_force = Encoding(made[now.in_force.source], now.in_force.space)
        for source, embedder in self._made.items():
            if source not in made:
                closing = asyncio.create_task(embedder.aclose())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        self._made = made
        return True

    async def aclose(self) -> None:
        await asyncio.gather(*(one.aclose() for one in self._made.values()), *self._closing)

    def _of(self, placed: Placed) -> Embedder:
        known = self._made.get(placed.source)
        if known is None:
            known = self._make(placed.source)
            if self._started:
                known.start()
        return known
