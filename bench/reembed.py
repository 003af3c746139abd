"""Searches while a running instance moves to another embedding model: how many were not hybrid, and for how long.

    uv run --group bench python -m bench.reembed --out reembed.json

The models are an endpoint of the bench's that answers at once, with vectors of 384 and then of 96 dimensions: what is
measured is the change, not the embedding.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.calls import SEARCH, Crowd, Doors, Refused
from bench.counts import settled
from bench.faults import Model, endpoint, served
from bench.fleet import Caller, Fleet, fleet, note

_OLD, _NEW = 384, 96
_BEFORE_S, _AFTER_S = 10.0, 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One search at one process: from when to when, and by what; `mode` is the code where it was an error."""

    door: str
    began: float
    ended: float
    mode: str
    reason: str = ""


async def run(options: argparse.Namespace) -> dict[str, Any]:
    async with (
        served(Model(_OLD)) as old,
        served(Model(_NEW)) as new,
        fleet(
            apis=2,
            workers=1,
            heap_mib=options.heap,
            **endpoint(old, model="old", dimension=_OLD),
        ) as running,
    ):
        people = await running.people(1)
        doors = Doors([part.url for part in running.apis])
        crowd = Crowd(doors, people, mix={"capture": 1})
        await crowd.run(8, 600, writes=options.records)
        await settled(running)
        note(f"{crowd.ledger.writes} captured")
        answers, over = list[Answer](), asyncio.Event()
        asking = [
            asyncio.create_task(_ask(doors, people[0], url, answers, over))
            for url in doors.urls
            for _ in range(options.users)
        ]
        await asyncio.sleep(_BEFORE_S)
        began = time.monotonic()
        said = await _move(running, new)
        ended = time.monotonic()
        note(f"moved in {ended - began:.1f} s: {said}")
        await asyncio.sleep(_AFTER_S)
        over.set()
        await asyncio.gather(*asking)
        await doors.close()
    return {
        "records": crowd.ledger.writes,
        "moved": said,
        "moved_in_s": round(ended - began, 1),
        "before": _of([one for one in answers if one.ended < began]),
        "meanwhile": _of([one for one in answers if began <= one.ended < ended]),
        "after": _of([one for one in answers if one.ended >= ended]),
        "longest_without_hybrid_s": {
            str(place): _longest([one for one in answers if one.door == url]) for place, url in enumerate(doors.urls)
        },
        "stands": all(one.mode in ("HYBRID", "LEXICAL") for one in answers),
    }


async def _ask(doors: Doors, caller: Caller, url: str, answers: list[Answer], over: asyncio.Event) -> None:
    """Search at one process, again as soon as it is answered."""
    number = 0
    while not over.is_set():
        number += 1
        began = time.monotonic()
        try:
            given = {"text": f"the renewal of the contract {number} {began}"}
            page = (await doors.ask(caller, SEARCH, at=url, i=given))["search"]
            mode, reason = page["mode"], page["degradedReason"] or ""
        except Refused as refused:
            mode, reason = refused.code, ""
        answers.append(Answer(url, began, time.monotonic(), mode, reason))


async def _move(running: Fleet, url: str) -> dict[str, Any]:
    """`graph-mem reembed`, as an operator calls it."""
    given = ["--url", url, "--endpoint-model", "new", "--dimension", str(_NEW), "--json"]
    child = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("graph-mem")),
        *("reembed", "openai", *given),
        env=running.environment_of_all(),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await child.communicate()
    if child.returncode:
        raise SystemExit(f"reembed ended with {child.returncode}")
    return json.loads(out.decode().splitlines()[-1])


def _of(answers: list[Answer]) -> dict[str, Any]:
    spent = np.array([(one.ended - one.began) * 1000 for one in answers] or [float("nan")])
    p50, p99 = np.percentile(spent, [50, 99])
    return {
        "modes": dict(Counter(one.mode for one in answers)),
        "reasons": dict(Counter(one.reason for one in answers if one.reason)),
        "p50": round(float(p50), 1),
        "p99": round(float(p99), 1),
    }


def _longest(answers: list[Answer]) -> float:
    """The longest time, in seconds, from the first search that was not hybrid to the next that was, both as asked."""
    longest, since = 0.0, None
    for one in sorted(answers, key=lambda answer: answer.began):
        if one.mode != "HYBRID":
            since = one.began if since is None else since
            longest = max(longest, one.ended - since)
        elif since is not None:
            longest, since = max(longest, one.began - since), None
    return round(longest, 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reembed")
    parser.add_argument("--records", type=int, default=600)
    parser.add_argument("--users", type=int, default=2, help="at each of two API processes")
    parser.add_argument("--heap", type=int, default=1024, help="MiB of Neo4j")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = asyncio.run(run(options))
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found) + "\n", encoding="utf-8")
    sys.exit(0 if found["stands"] else 1)


if __name__ == "__main__":
    main()
