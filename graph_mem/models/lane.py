"""A queue in front of a blocking encoder that puts waiting requests together."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from graph_mem.core.vectors import Vectors
from graph_mem.errors import EmbedderUnavailable


@dataclass(frozen=True, eq=False)
class _Request:
    texts: tuple[str, ...]
    answer: asyncio.Future[Vectors]

    def resolve(self, vectors: Vectors) -> None:
        if not self.answer.done():
            self.answer.set_result(vectors)

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Lane:
    """`threads` threads of its own that encode what waits, at most `width` texts at a time.

    A request that fails in company is tried alone, so that nobody fails for another's text.
    """

    def __init__(self, encode: Callable[[list[str]], Vectors], *, name: str, width: int, threads: int = 1) -> None:
        self._encode = encode
        self._width = width
        self._free = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._waiting: deque[_Request] = deque()
        self._working: set[asyncio.Task[None]] = set()
        self._closed = False

    async def run(self, texts: Sequence[str]) -> Vectors:
        """The vectors of `texts`, which should be no more than the lane's width."""
        if self._closed:
            raise EmbedderUnavailable("The embedder is shut down.")
        request = _Request(tuple(texts), asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._start()
        return await request.answer

    async def aclose(self) -> None:
        """Refuse what waits, finish what runs."""
        self._closed = True
        for request in self._waiting:
            request.fail(EmbedderUnavailable("The embedder is shut down."))
        self._waiting.clear()
        if self._working:
            await asyncio.wait(self._working)
        self._threads.shutdown(wait=False)

    def _start(self) -> None:
        while self._free and (batch := self._take()):
            self._free -= 1
            task = asyncio.create_task(self._work(batch))
            self._working.add(task)
            task.add_done_callback(self._working.discard)

    def _take(self) -> list[_Request]:
        """The oldest requests that fit together, less those whose caller has gone."""
        batch: list[_Request] = []
        size = 0
        while self._waiting:
            request = self._waiting[0]
            if request.answer.done():
                self._waiting.popleft()
                continue
            if batch and size + len(request.texts) > self._width:
                break
            batch.append(self._waiting.popleft())
            size += len(request.texts)
        return batch

    async def _work(self, batch: list[_Request]) -> None:
        try:
            await self._serve(batch)
        finally:
            self._free += 1
            self._start()

    async def _serve(self, batch: list[_Request]) -> None:
        texts = [text for request in batch for text in request.texts]
        done = asyncio.get_running_loop().run_in_executor(self._threads, self._encode, texts)
        await asyncio.wait({done})
        error = done.exception()
        if error is None:
            _deal(batch, done.result())
        elif len(batch) == 1:
            batch[0].fail(error)
        else:
            for request in batch:
                await self._serve([request])


def _deal(batch: list[_Request], vectors: Vectors) -> None:
    start = 0
    for request in batch:
        end = start + len(request.texts)
        request.resolve(vectors[start:end])
        start = end
