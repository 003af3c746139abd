"""What a search leaves behind: what its trace and strengthening cost the caller, and memory over very many searches.

uv run --group bench python -m bench.endurance --data-dir D --searches 100000
"""

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from bench import loading
from bench.loading import Loaded
from bench.sets import load
from bench.speed import Times
from graph_mem import app
from graph_mem.cli.access import complete
from graph_mem.config import Settings
from graph_mem.core.retrieval import Query
from graph_mem.services import Deps, recall
from graph_mem.services.tracing import Retrieval, TraceWriter

_WARM_UP = 50
_REPORTS = 20
_MIB = 2**20


class _Forgetful(TraceWriter):
    """Takes what a search leaves behind and drops it."""

    async def put(self, retrieval: Retrieval) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of the process, in MiB, after so many searches."""

    searches: int
    resident: float


async def cost(deps: Deps, loaded: Loaded, *, searches: int) -> list[Times]:
    """The same searches in turn with and without what they leave behind, whoever of the two begins."""
    ways = {"searches that leave nothing": replace(deps, traces=_Forgetful(deps.db)), "searches with traces": deps}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    texts = _texts(loaded)
    for number in range(_WARM_UP + searches):
        order = list(ways.items())
        for way, used in order if number % 2 else reversed(order):
            started = time.perf_counter()
            await _search(used, loaded, next(texts))
            if number >= _WARM_UP:
                spent[way].append(time.perf_counter() - started)
    return [Times.of(way, seconds) for way, seconds in spent.items()]


async def memory(
    deps: Deps, loaded: Loaded, *, searches: int, at_once: int, say: Callable[[Memory], None]
) -> list[Memory]:
    """Resident memory along `searches`, `at_once` of them side by side."""
    process, texts = psutil.Process(), _texts(loaded)
    seen: list[Memory] = []
    for part in range(_REPORTS):
        await asyncio.gather(*(_some(deps, loaded, texts, searches // _REPORTS // at_once) for _ in range(at_once)))
        seen.append(Memory((part + 1) * searches // _REPORTS, process.memory_info().rss / _MIB))
        say(seen[-1])
    return seen


async def _some(deps: Deps, loaded: Loaded, texts: Iterator[str], count: int) -> None:
    for _ in range(count):
        await _search(deps, loaded, next(texts))


async def _search(deps: Deps, loaded: Loaded, text: str) -> None:
    await recall.search_page(deps, loaded.owner, Query(text), first=10)


def _texts(loaded: Loaded) -> Iterator[str]:
    """Questions without end, none twice: nothing comes out of a cache."""
    for number, question in enumerate(itertools.cycle(loaded.set.questions)):
        yield f"{question.text} {number}"


async def run(settings: Settings, options: argparse.Namespace) -> None:
    async with app.opened(settings, light=True) as deps:
        loaded = await loading.load(deps, load(options.data / "locomo"), cache=settings.cache_dir / "bench")
        times = await cost(deps, loaded, searches=options.timed)
        for one in times:
            print(f"{one.way}: p50 {one.p50:.1f} ms, p95 {one.p95:.1f} ms, {one.p50 / times[0].p50:.3f} of the first")
        seen = await memory(
            deps,
            loaded,
            searches=options.searches,
            at_once=options.at_once,
            say=lambda one: print(f"{one.searches} searches: {one.resident:.0f} MiB", flush=True),
        )
    if options.out:
        document = {"times": [asdict(one) for one in times], "memory": [asdict(one) for one in seen]}
        options.out.write_text(json.dumps(document) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.endurance")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the sets")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--timed", type=int, default=500, help="searches that are timed, each way")
    parser.add_argument("--searches", type=int, default=100_000)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen = {"data_dir": options.data_dir} if options.data_dir else {}
    asyncio.run(run(complete(Settings(embedder="onnx", **chosen)), options))


if __name__ == "__main__":
    main()
