"""Ten minutes of everything at once with Neo4j killed in the middle, then every acknowledged write is looked for.

    uv run --group bench python -m bench.load --minutes 10 --out load.json

Users ask again as soon as they are answered; a write is sent again under its idempotency key until it is acknowledged.
Any code but OK and those of overload fails the run. `python -m bench.faults` has the other faults.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.calls import Crowd, Doors, Ledger
from bench.counts import Counts, count
from bench.fleet import Fleet, fleet, note

_EVERY_S = 10.0
_WARM_UP_S = 10.0


@dataclass(slots=True)
class Watch:
    """Resident memory of each process over time."""

    seen: list[dict[str, float]] = field(default_factory=list[dict[str, float]])

    async def look(self, running: Fleet) -> None:
        """Forever, every few seconds."""
        started = time.monotonic()
        while True:
            self.seen.append({"s": round(time.monotonic() - started), **running.resident()})
            await asyncio.sleep(_EVERY_S)

    def growth(self) -> dict[str, tuple[float, float, float]]:
        """MiB of each process after a quarter of its time, at the end and at most."""
        names = dict.fromkeys(name for one in self.seen for name in one if name != "s")
        found: dict[str, tuple[float, float, float]] = {}
        for name in names:
            values = [one[name] for one in self.seen if name in one]
            found[name] = (values[len(values) // 4], values[-1], max(values))
        return found


async def run(options: argparse.Namespace) -> dict[str, Any]:
    async with fleet(apis=options.apis, workers=options.workers, heap_mib=options.heap) as running:
        return await load(running, options, Ledger())


async def load(running: Fleet, options: argparse.Namespace, ledger: Ledger) -> dict[str, Any]:
    """All of it on a running fleet, whose database holds what is in `ledger` and nothing else."""
    people = await running.people(options.organizations)
    doors = Doors([part.url for part in running.apis])
    crowd, watch = Crowd(doors, people, ledger=ledger, phase="warm up"), Watch()
    await crowd.run(options.users, _WARM_UP_S)
    watching = asyncio.create_task(watch.look(running))
    faults = asyncio.create_task(_faults(running, crowd, options))
    crowd.phase = "steady"
    started = time.monotonic()
    await crowd.run(options.users, options.minutes * 60)
    await faults
    took = time.monotonic() - started
    note(f"{crowd.ledger.writes} writes acknowledged in {took:.0f} s")
    crowd.phase, crowd.mix = "writes alone", {"capture": 60, "saveFact": 40}
    await crowd.run(options.users, options.top_up, writes=options.writes)
    watching.cancel()
    note(f"{crowd.ledger.writes} writes acknowledged; counting")
    counts = await count(running, doors, crowd.ledger)
    done, disk = await running.jobs_done(), running.disk()
    await doors.close()
    return {**_document(options, crowd, watch, counts, done), "disk_mib": disk}


async def _faults(running: Fleet, crowd: Crowd, options: argparse.Namespace) -> None:
    """A worker is killed after a quarter of the time, Neo4j in the middle."""
    quarter = options.minutes * 60 / 4
    await asyncio.sleep(quarter)
    if options.kill_worker:
        await running.stop(running.workers[0], sent=signal.SIGKILL)
        await running.start("worker", 1)
        note("a worker was killed, another one started")
    await asyncio.sleep(quarter)
    if options.outage:
        crowd.phase = "outage"
        await running.kill_neo4j()
        note("Neo4j was killed")
        await asyncio.sleep(options.outage)
        await running.start_neo4j()
        note("Neo4j answers again")
        await asyncio.sleep(10.0)
        crowd.phase = "after"


def _document(
    options: argparse.Namespace, crowd: Crowd, watch: Watch, counts: Counts, done: dict[str, float]
) -> dict[str, Any]:
    asked = {name: value for name, value in vars(options).items() if name != "out"}
    return {
        "options": asked,
        "calls": crowd.tally.report(),
        "forbidden": crowd.tally.forbidden,
        "strange": crowd.tally.strange,
        "memory": {name: list(values) for name, values in watch.growth().items()},
        "memory_over_time": watch.seen,
        "jobs_done_by_living_workers": done,
        "counts": counts.report(),
    }


def say(document: dict[str, Any]) -> None:
    """The document for people."""
    for row in document["calls"]:
        print(
            f"{row['phase']:>13} {row['operation']:<13} p50 {row['p50']:8.1f} p99 {row['p99']:8.1f} ms  {row['codes']}"
        )
    for name, values in document.get("memory", {}).items():
        print("{:>13} MiB after a quarter {:.0f}, at the end {:.0f}, at most {:.0f}".format(name, *values))
    for line in document["strange"]:
        print("NOT ALLOWED", line)
    print(json.dumps({**document["counts"], "lost": len(document["counts"]["lost"])}))
    print("jobs done", document["jobs_done_by_living_workers"], "disk MiB", document["disk_mib"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--users", type=int, default=16)
    parser.add_argument("--apis", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--organizations", type=int, default=4)
    parser.add_argument("--heap", type=int, default=1536, help="MiB of Neo4j")
    parser.add_argument("--outage", type=float, default=60.0, help="seconds without Neo4j in the middle; 0 for none")
    parser.add_argument("--kill-worker", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--writes", type=int, default=10_000, help="acknowledged writes to go on to, and to count")
    parser.add_argument("--top-up", type=float, default=1800.0, help="seconds that this may take at most")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    document = asyncio.run(run(options))
    say(document)
    if options.out:
        options.out.write_text(json.dumps(document) + "\n", encoding="utf-8")
    sys.exit(0 if document["counts"]["complete"] and not document["forbidden"] else 1)


if __name__ == "__main__":
    main()
