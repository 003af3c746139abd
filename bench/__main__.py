"""Quality and speed of search on public sets, beside the raw legs and a peer, on one server.

uv run --group bench python -m bench --data ../shared/data --out bench/results.json
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import loading, peers, runs, speed
from bench.measures import Figures, figures
from bench.sets import load
from bench.speed import Times
from graph_mem import app
from graph_mem.cli.access import complete
from graph_mem.config import Settings
from graph_mem.services import Deps

SETS = ("timeqa-supersede", "locomo", "scifact")
OURS = "graph-mem"
TIMED = "locomo"


@dataclass
class Results:
    model: str
    figures: list[Figures] = field(default_factory=list[Figures])
    times: list[Times] = field(default_factory=list[Times])


async def run(settings: Settings, options: argparse.Namespace) -> Results:
    async with app.opened(settings, light=True) as deps:
        await deps.embedder.settled()
        results = Results(deps.embedder.profile.name)
        for name in options.sets:
            await _run_set(deps, settings, name, options, results)
    return results


async def _run_set(deps: Deps, settings: Settings, name: str, options: argparse.Namespace, results: Results) -> None:
    data = load(options.data / name)
    loaded = await loading.load(deps, data, cache=options.cache)
    _say(f"{name}: {len(data.documents)} documents loaded in {loaded.seconds:.0f} s")
    ours = figures(OURS, data, await runs.product(deps, loaded))
    results.figures.append(ours)
    _say(f"{name}: {OURS} {ours.measures}")
    if options.raw:
        results.figures += [figures(run, data, found) for run, found in (await runs.raw_legs(deps, loaded)).items()]
    if options.peer and deps.db.blocking is not None:
        found = await peers.answers(deps, data, open_driver=deps.db.blocking)
        results.figures += _shipped_and_best([figures(run, data, answers) for run, answers in found.items()])
    if options.speed and name == TIMED:
        results.times = await speed.times(deps, settings, loaded, questions=options.questions)


def _shipped_and_best(found: Sequence[Figures]) -> list[Figures]:
    shipped = next(one for one in found if one.run == peers.SHIPPED.name)
    best = max(found, key=lambda one: one.measures["nDCG@10"])
    return [shipped, Figures(f"best: {best.run}", best.data, best.measures)]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tables(results: Results) -> list[Table]:
    """Quality, tiers and times, as people read them."""
    measures = list(dict.fromkeys(name for one in results.figures for name in one.measures))
    quality = Table("set", "run", *measures, title=f"Quality ({results.model})")
    for one in results.figures:
        values = [f"{one.measures[name]:.3f}" if name in one.measures else "" for name in measures]
        quality.add_row(one.data, one.run, *values)
    tiers = Table("set", "tier", "results", "right", title="How often each tier is right")
    for one in results.figures:
        for name, (count, precision) in one.tiers.items():
            tiers.add_row(one.data, name, str(count), f"{precision:.3f}")
    spent = Table("way", "p50 ms", "p95 ms", "p50 over the first", "p95 over own p50", title=f"Time ({TIMED})")
    for time in results.times:
        spent.add_row(
            time.way,
            f"{time.p50:.1f}",
            f"{time.p95:.1f}",
            f"{time.p50 / results.times[0].p50:.2f}",
            f"{time.p95 / time.p50:.2f}",
        )
    return [quality, tiers, spent] if results.times else [quality, tiers]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the sets")
    parser.add_argument("--data-dir", type=Path, help="instance to use; else GRAPH_MEM_NEO4J_URI, else the default one")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--out", type=Path, help="file for the results as JSON")
    parser.add_argument("--questions", type=int, default=300, help="questions that are timed")
    parser.add_argument("--no-raw", dest="raw", action="store_false", help="without the raw legs")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="without the peer")
    parser.add_argument("--no-speed", dest="speed", action="store_false", help="without times")
    options = parser.parse_args()
    chosen = {"data_dir": options.data_dir} if options.data_dir else {}
    settings = complete(Settings(embedder="onnx", **chosen))
    options.cache = settings.cache_dir / "bench"
    results = asyncio.run(run(settings, options))
    console = Console(width=160)
    for table in tables(results):
        console.print(table)
    if options.out:
        document = {
            "model": results.model,
            "figures": [asdict(one) for one in results.figures],
            "times": [asdict(one) for one in results.times],
        }
        options.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
