"""Waiting for the next result of a stream without being deaf to everything else meanwhile."""

import asyncio
from collections.abc import AsyncGenerator
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")


class Silence(Enum):
    SO_FAR = "so far"
    FOR_EVER = "for ever"


class Following(Generic[T]):
    """A stream that can be asked with a time limit, and loses nothing when it had no answer in time."""

    def __init__(self, results: AsyncGenerator[T, None]) -> None:
        self._results = results
        self._pending: asyncio.Future[T | Silence] | None = None

    async def next(self, *, within_s: float) -> T | Silence:
        """The next result; silence if there is none yet, or none any more."""
        if self._pending is None:
            self._pending = asyncio.ensure_future(anext(self._results, Silence.FOR_EVER))
        await asyncio.wait({self._pending}, timeout=within_s)
        if not self._pending.done():
            return Silence.SO_FAR
        pending, self._pending = self._pending, None
        return pending.result()

    async def close(self) -> None:
        """Stop whatever produces the results."""
        if self._pending is not None:
            self._pending.cancel()
            await asyncio.wait({self._pending})
            if not self._pending.cancelled():
                self._pending.exception()
        await self._results.aclose()

    async def finish(self) -> None:
        """Let the stream come to its own end, unheard."""
        if self._pending is not None:
            await self._pending
        async for _ in self._results:
            pass
