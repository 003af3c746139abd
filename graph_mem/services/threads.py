"""Work that blocks, in a thread of its own, and how a task that waits for it is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_thread(
    work: Callable[[], T], *, stop: Callable[[], Awaitable[object]], every_s: float, within_s: float | None = None
) -> T:
    """What `work` returns; cancelled, it has `stop` end it and leaves no thread behind.

    `stop` is called as often as it takes, `every_s`: it may come before there is anything to stop. What does not end
    `within_s` is not waited for longer.
    """
    working = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        ended = asyncio.gather(working, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not ended.done():
                    await stop()
                    await asyncio.wait({ended}, timeout=every_s)
        raise
