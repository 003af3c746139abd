"""A slow embedding model, a full disk and clocks that are wrong, each on a database of its own.

    uv run --group bench python -m bench.faults --only embedder disk clocks --out faults.json

The disk is an ext4 image of the bench's, or a tmpfs where no image can be mounted: it needs the right to mount. Clocks
need libfaketime, of the system's or by `uv pip install libfaketime`; it is not locked, for it is GPL and of use here
alone. Where one is missing it is skipped, and the report says so.
"""

import argparse
import asyncio
import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.calls import CAPTURE, FACT, SEARCH, Crowd, Doors, Refused
from bench.counts import count, settled
from bench.fleet import Caller, Fleet, fleet, note

_DIMENSION = 384
_DISK_MIB = 512
_ANSWER_S = 5.0


@dataclass(slots=True)
class Model:
    """An OpenAI-compatible endpoint whose vectors are of the text's hash; `sleep_s` is how slow it is."""

    dimension: int = _DIMENSION
    sleep_s: float = 0.0
    asked: int = 0

    async def embeddings(self, request: Request) -> JSONResponse:
        self.asked += 1
        body = await request.json()
        await asyncio.sleep(self.sleep_s)
        return JSONResponse(
            {
                "data": [
                    {"index": at, "embedding": _vector(text, self.dimension)} for at, text in enumerate(body["input"])
                ]
            }
        )


def _vector(text: str, dimension: int) -> list[float]:
    """The sum of a direction for each word, so that texts with the same words are near each other."""
    seeds = [int.from_bytes(hashlib.sha256(word.encode()).digest()[:8]) for word in text.lower().split()]
    total = sum((np.random.default_rng(seed).normal(size=dimension) for seed in seeds), np.zeros(dimension))
    return [float(value) for value in total]


@asynccontextmanager
async def served(model: Model) -> AsyncGenerator[str]:
    """The endpoint's address."""
    application = Starlette(routes=[Route("/v1/embeddings", model.embeddings, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 # uvicorn offers no event for it
        await asyncio.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        await serving


def endpoint(url: str, *, model: str, dimension: int) -> dict[str, str]:
    """The environment of a process that takes its vectors from this endpoint."""
    return {
        "GRAPH_MEM_EMBEDDER": "openai",
        "GRAPH_MEM_EMBEDDER_URL": url,
        "GRAPH_MEM_EMBEDDER_MODEL": model,
        "GRAPH_MEM_EMBEDDER_DIMENSION": str(dimension),
    }


async def embedder(options: argparse.Namespace) -> dict[str, Any]:
    """Search while the model sleeps: by words, in time, saying why; and as before once it is awake."""
    model, report = Model(), dict[str, Any]()
    async with (
        served(model) as url,
        fleet(
            apis=1,
            workers=1,
            heap_mib=options.heap,
            **endpoint(url, model="bench", dimension=_DIMENSION),
        ) as running,
    ):
        people = await running.people(1)
        doors = Doors([running.apis[0].url])
        crowd = Crowd(doors, people, mix={"capture": 1}, phase="awake")
        await crowd.run(4, 600, writes=100)
        await settled(running)
        report["awake"] = await _searches(doors, people[0], 30)
        note(f"awake {report['awake']}")
        model.sleep_s = 30.0
        report["asleep"] = await _searches(doors, people[0], 100)
        note(f"asleep {report['asleep']}")
        crowd.phase = "asleep"
        await crowd.run(4, 600, writes=150)
        model.sleep_s = 0.0
        started = time.monotonic()
        while time.monotonic() - started < 120 and (await _searches(doors, people[0], 1))["modes"] != {"HYBRID": 1}:  # noqa: ASYNC110 # asked from outside
            await asyncio.sleep(0.2)
        report["healed_after_s"] = round(time.monotonic() - started, 1)
        report["counts"] = (await count(running, doors, crowd.ledger)).report()
        await doors.close()
    asleep = report["asleep"]
    report["stands"] = (
        asleep["modes"] == {"LEXICAL": 100}
        and asleep["without_reason"] == 0
        and asleep["slowest_ms"] < _ANSWER_S * 1000
        and report["healed_after_s"] < 60
        and report["counts"]["complete"]
        and not crowd.tally.forbidden
    )
    return report


async def _searches(doors: Doors, caller: Caller, times: int) -> dict[str, Any]:
    modes, reasons, spent, silent = Counter[str](), Counter[str](), list[float](), 0
    for number in range(times):
        started = time.perf_counter()
        page = (await doors.ask(caller, SEARCH, i={"text": f"the renewal of the contract {number} {time.time()}"}))[
            "search"
        ]
        spent.append((time.perf_counter() - started) * 1000)
        modes[page["mode"]] += 1
        reasons[page["degradedReason"] or ""] += 1
        silent += page["mode"] != "HYBRID" and not page["degradedReason"]
    p50, p99 = np.percentile(np.array(spent), [50, 99])
    return {
        "modes": dict(modes),
        "reasons": dict(reasons),
        "without_reason": silent,
        "p50": round(float(p50), 1),
        "p99": round(float(p99), 1),
        "slowest_ms": round(max(spent), 1),
    }


@contextmanager
def small_disk(image: Path, target: Path, mib: int) -> Generator[str]:
    """A file system of its own for a folder, by its kind; OSError where that is not allowed."""
    target.mkdir(parents=True, exist_ok=True)
    kind = "ext4" if _mounted_image(image, target, mib) else "tmpfs"
    libc = ctypes.CDLL(None, use_errno=True)
    if kind == "tmpfs" and libc.mount(b"tmpfs", str(target).encode(), b"tmpfs", 0, f"size={mib}m".encode()) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        yield kind
    finally:
        libc.umount2(str(target).encode(), 2)


def _mounted_image(image: Path, target: Path, mib: int) -> bool:
    with image.open("wb") as file:
        file.truncate(mib << 20)
    for command in (["mkfs.ext4", "-q", "-F", "-m", "0", str(image)], ["mount", "-o", "loop", str(image), str(target)]):
        if shutil.which(command[0]) is None or subprocess.run(command, check=False, capture_output=True).returncode:
            return False
    return True


async def disk(options: argparse.Namespace) -> dict[str, Any]:
    """Writes until the disk is full and beyond; then there is room again, and Neo4j is restarted."""
    with tempfile.TemporaryDirectory(prefix="gm-disk-", ignore_cleanup_errors=True) as folder:
        running = Fleet(Path(folder), heap_mib=options.heap)
        try:
            with small_disk(Path(folder) / "disk", running.home / "data", _DISK_MIB) as kind:
                try:
                    return {"file_system": kind, **await _disk(running)}
                finally:
                    await running.close()
        except OSError as error:
            return {"skipped": f"no file system of our own here: {error}"}


async def _disk(running: Fleet) -> dict[str, Any]:
    await running.start_neo4j()
    await running.start("serve", 1)
    await running.start("worker", 1)
    people = await running.people(2)
    doors = Doors([running.apis[0].url])
    crowd = Crowd(doors, people, phase="room")
    await crowd.run(8, 30)
    ballast = running.home / "data" / "ballast"
    _fill(ballast)
    crowd.phase = "full"
    note("the disk is full")
    acknowledged_before = crowd.ledger.writes
    writing = asyncio.create_task(crowd.run(8, 600))
    await asyncio.sleep(60)
    _fill(ballast)
    acknowledged_full = crowd.ledger.writes - acknowledged_before
    note(f"{crowd.tally.forbidden or 'typed errors only'}; room again, Neo4j restarts")
    ballast.unlink()
    crowd.phase = "room again"
    await asyncio.sleep(5)
    healed_alone = await _writes(doors, people[0])
    crowd.ledger.unacknowledged += 1
    crowd.phase = "restart"
    await asyncio.to_thread(running.server.stop)
    await running.start_neo4j()
    crowd.phase = "after"
    await asyncio.sleep(30)
    crowd.stopping = True
    await writing
    counts = await count(running, doors, crowd.ledger)
    await doors.close()
    return {
        "calls": crowd.tally.report(),
        "forbidden": crowd.tally.forbidden,
        "strange": crowd.tally.strange,
        "acknowledged_with_room_and_when_full": (acknowledged_before, acknowledged_full),
        "writes_again_without_restart": healed_alone,
        "counts": counts.report(),
        "stands": counts.complete and not crowd.tally.forbidden,
    }


def _fill(ballast: Path) -> None:
    """Leave nothing free."""
    with ballast.open("ab", buffering=0) as file:
        piece = b"\0" * (1 << 20)
        while shutil.disk_usage(ballast.parent).free:
            try:
                file.write(piece[: min(len(piece), shutil.disk_usage(ballast.parent).free)])
            except OSError:
                return


async def _writes(doors: Doors, caller: Caller) -> bool:
    try:
        await doors.ask(caller, CAPTURE, i={"text": f"Is there room at {time.time()}?"})
    except Refused:
        return False
    return True


async def clocks(options: argparse.Namespace) -> dict[str, Any]:
    """Processes an hour ahead and an hour behind beside right ones, on one database."""
    library = _faketime()
    if library is None:
        return {"skipped": "no libfaketime here"}
    preloaded = {"LD_PRELOAD": str(library), "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    async with fleet(apis=1, workers=1, heap_mib=options.heap) as running:
        for offset in ("+1h", "-1h"):
            wrong = {**preloaded, "FAKETIME": offset}
            await running.start("serve", 1, environment=wrong)
            await running.start("worker", 1, environment=wrong)
        people = await running.people(2)
        doors = Doors([part.url for part in running.apis])
        crowd = Crowd(doors, people, phase="clocks apart")
        await crowd.run(8, options.seconds)
        counts = await count(running, doors, crowd.ledger)
        report = {
            "calls": crowd.tally.report(),
            "forbidden": crowd.tally.forbidden,
            "strange": crowd.tally.strange,
            "jobs_done": await running.jobs_done(),
            "repeated_key": await _repeated(doors, people[0]),
            "newest_holds": await _newest_holds(doors, people[0]),
            "counts": counts.report(),
        }
        await doors.close()
    report["stands"] = (
        counts.complete and not crowd.tally.forbidden and report["repeated_key"] == 1 and report["newest_holds"]
    )
    return report


def _faketime() -> Path | None:
    """The library that has a process see another time of day; its waits stay as long as they are."""
    found = find_spec("libfaketime")
    packaged = Path(found.origin).parent / "vendor/libfaketime/src/libfaketime.so.1" if found and found.origin else None
    system = Path("/usr/lib").glob("**/libfaketime.so.1")
    return next((one for one in [*([packaged] if packaged else []), *system] if one.is_file()), None)


async def _repeated(doors: Doors, caller: Caller) -> int:
    """How many memories one key makes, asked at every process in turn."""
    given = {"text": f"Said once at {time.time()}.", "idempotencyKey": f"once {time.time()}"}
    return len(
        {(await doors.ask(caller, CAPTURE, at=url, i=given))["captureMemory"]["memory"]["id"] for url in doors.urls * 2}
    )


async def _newest_holds(doors: Doors, caller: Caller) -> bool:
    """Whether what was said last holds, whoever took it."""
    subject = f"clock {time.time()}"
    for turn in range(3):
        for url in doors.urls:
            given = {"subject": subject, "relation": "time", "statement": f"It is {turn} at {url}."}
            saved = (await doors.ask(caller, FACT, at=url, i=given))["saveFact"]["fact"]
            if saved["standing"] != "CURRENT":
                return False
    return True


FAULTS = {"embedder": embedder, "disk": disk, "clocks": clocks}


async def run(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in options.only:
        note(name)
        found[name] = await FAULTS[name](options)
        print(json.dumps(found[name], indent=1), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.faults")
    parser.add_argument("--only", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--heap", type=int, default=1024, help="MiB of Neo4j")
    parser.add_argument("--seconds", type=float, default=60.0, help="of load while clocks are apart")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = asyncio.run(run(options))
    if options.out:
        options.out.write_text(json.dumps(found) + "\n", encoding="utf-8")
    sys.exit(0 if all(one.get("stands", True) for one in found.values()) else 1)


if __name__ == "__main__":
    main()
