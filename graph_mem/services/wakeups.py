"""Tells the worker of this process that there is work, and the watchers that a record changed.

Only a shortcut: the graph holds the truth, every listener polls it as well, other processes are not reached.
"""

import asyncio


class Wakeups:
    """An event that many may wait for and anyone may set."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake everyone who waits."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self, timeout_s: float) -> None:
        """Return at the next `notify`, or after `timeout_s`."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout_s)
        except TimeoutError:
            return
