"""Four API and four worker processes on one database beside one of each.

    uv run --group bench python -m bench.scaleout --seconds 30 --out scaleout.json

It measures how long a change of the configuration takes until each process goes by it, whether a subscription at any
process sees what another one did, that the nightly cycle runs once and no job twice in effect, and calls a second.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from ulid import ULID

from bench.calls import CAPTURE, SEARCH, Crowd, Doors, Ledger
from bench.counts import count, settled
from bench.fleet import Caller, Fleet, Part, fleet, note

_SEARCHES = {"search": 1}
_CONFIG = "query { retrievalConfig { version fusedFloor } }"
_CHANGE = """mutation($i: UpdateRetrievalConfigInput!) {
  updateRetrievalConfig(input: $i) { config { version } errors { code message } } }"""
_STATUS = "subscription($id: ID!) { memoryStatus(id: $id) { memory { id processing } } }"
_REVIEWS = "subscription { reviewQueue { proposal { id kind } remaining } }"
_DUE = "MERGE (l:Lease {name: 'nightly cycle'}) SET l.doneAt = $at, l.holder = null, l.until = null"
_DONE = "MATCH (l:Lease {name: 'nightly cycle'}) RETURN l.doneAt AS at, l.holder AS holder"
_TWICE = """MATCH (p:Proposal) WITH p.org AS org, p.kind AS kind, p.subjectIds AS ids, count(*) AS n
RETURN sum(n) AS filed, sum(CASE WHEN n > 1 THEN 1 ELSE 0 END) AS twice"""
_OLD = """MATCH (m:Memory {standing: 'CURRENT'}) WITH m LIMIT 200
SET m.createdAt = $at, m.freshAt = $at, m.lastValidatedAt = $at, m.importance = 0.0"""
_CYCLE_RAN = "the nightly cycle ran"
_DAY_MS = 86_400_000
_WITHIN_S = 60.0


async def run(options: argparse.Namespace) -> dict[str, Any]:
    async with fleet(apis=1, workers=1, heap_mib=options.heap) as running:
        return await measure(running, options, Ledger())


async def measure(running: Fleet, options: argparse.Namespace, ledger: Ledger) -> dict[str, Any]:
    """All of it on a fleet of one and one, of which many are left."""
    report: dict[str, Any] = {
        "cores": os.cpu_count(),
        "options": {k: v for k, v in vars(options).items() if k != "out"},
    }
    people = await running.people(4)
    doors = Doors([running.apis[0].url])
    crowd = Crowd(doors, people, ledger=ledger, phase="filling", mix={"capture": 2, "saveFact": 1})
    await crowd.run(options.users, 600, writes=options.writes)
    await settled(running)
    report["one"] = await _throughput(crowd, running, options, "1 + 1")
    await running.start("serve", options.processes - 1)
    await running.start("worker", options.processes - 1)
    doors.open([part.url for part in running.apis])
    report["many"] = await _throughput(crowd, running, options, f"{options.processes} + {options.processes}")
    report["configuration"] = await _configuration(doors, people[0])
    report["subscriptions"] = await _subscriptions(doors, people[0], ledger)
    report["review_events"] = await _review_events(running, doors, people)
    report["cycle"] = await _cycle(running, options.processes)
    counts = await count(running, doors, crowd.ledger)
    report["counts"], report["jobs_done"] = counts.report(), await running.jobs_done()
    report["calls"], report["forbidden"] = crowd.tally.report(), crowd.tally.forbidden
    report["strange"], report["resident_mib"] = crowd.tally.strange, running.resident()
    await doors.close()
    report["stands"] = (
        max(report["configuration"]["seconds"]) < 5.0
        and all(report["subscriptions"].values())
        and report["review_events"]["seen_by_all"]
        and report["cycle"]["ran"] == 1
        and report["cycle"]["proposals_twice"] == 0
        and counts.complete
        and not crowd.tally.forbidden
    )
    return report


async def _throughput(crowd: Crowd, running: Fleet, options: argparse.Namespace, name: str) -> dict[str, float]:
    """Answered calls a second: searches alone, and the mix of `bench.load`."""
    found: dict[str, float] = {}
    usual = dict(Crowd(crowd.doors, ()).mix)
    for what, mix in (("searches", _SEARCHES), ("mixed", usual)):
        crowd.mix, crowd.phase = mix, f"{name} warm up"
        await crowd.run(options.users, 8)
        crowd.phase = f"{name} {what}"
        started, before = time.monotonic(), _answered(crowd, crowd.phase)
        await crowd.run(options.users, options.seconds)
        found[what] = round((_answered(crowd, crowd.phase) - before) / (time.monotonic() - started), 1)
        found[f"{what} settled after"] = round(await settled(running), 1)
    note(f"{name}: {found}")
    return found


def _answered(crowd: Crowd, phase: str) -> int:
    return sum(len(spent) for (one, _), spent in crowd.tally.spent.items() if one == phase)


async def _configuration(doors: Doors, owner: Caller) -> dict[str, Any]:
    """Seconds from the answer to a change, made at one process, until each other one searches by it."""
    seconds: list[float] = []
    for turn, floor in enumerate((0.99, 0.0, 0.99, 0.0)):
        first, *others = doors.urls[turn:] + doors.urls[:turn]
        version = (await doors.ask(owner, _CONFIG, at=first))["retrievalConfig"]["version"]
        given = {"expectedVersion": version, "fusedFloor": floor}
        await asyncio.gather(*(_hits(doors, owner, url) for url in others))
        await doors.ask(owner, _CHANGE, at=first, i=given)
        started = time.monotonic()
        seconds += await asyncio.gather(*(_until(doors, owner, url, floor > 0, started) for url in others))
    note(f"configuration {[round(one, 2) for one in seconds]}")
    return {"seconds": [round(one, 2) for one in seconds]}


async def _hits(doors: Doors, owner: Caller, url: str) -> int:
    given = {"text": f"the renewal of the contract {ULID()}"}
    return len((await doors.ask(owner, SEARCH, at=url, i=given))["search"]["hits"])


async def _until(doors: Doors, owner: Caller, url: str, empty: bool, started: float) -> float:
    while time.monotonic() - started < _WITHIN_S and (await _hits(doors, owner, url) == 0) is not empty:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return time.monotonic() - started


async def _subscriptions(doors: Doors, owner: Caller, ledger: Ledger) -> dict[str, bool]:
    """Whether a subscriber of each process hears that a memory, captured at another one, is READY."""
    heard: dict[str, bool] = {}
    for number, url in enumerate(doors.urls):
        other = doors.urls[(number + 1) % len(doors.urls)]
        text = f"Who hears of this? {ULID()}"
        id = (await doors.ask(owner, CAPTURE, at=other, i={"text": text}))["captureMemory"]["memory"]["id"]
        ledger.memories[id] = (owner, text)
        said = await _listen(url, owner, _STATUS, {"id": id}, until="READY")
        heard[f"captured at {number + 2 if other != doors.urls[0] else 1}, heard at {number + 1}"] = said is not None
    return heard


async def _listen(url: str, caller: Caller, document: str, variables: dict[str, str], *, until: str) -> str | None:
    """The first event that holds `until`; None if there is none in time."""
    head = {"authorization": f"Bearer {caller.token}", "accept": "text/event-stream"}
    body = {"query": document, "variables": variables}
    try:
        async with (
            asyncio.timeout(_WITHIN_S),
            httpx.AsyncClient(timeout=_WITHIN_S) as client,
            client.stream("POST", f"{url}/graphql", json=body, headers=head) as stream,
        ):
            async for line in stream.aiter_lines():
                if until in line:
                    return line
    except TimeoutError:
        pass
    return None


async def _review_events(running: Fleet, doors: Doors, people: Sequence[Caller]) -> dict[str, Any]:
    """A subscriber of the review queue at each process, and a cycle asked for at one of them."""
    owner = people[0]
    async with running.database() as database:
        await database.run(_OLD, at=int(time.time() * 1000) - 900 * _DAY_MS)
    ears = [asyncio.create_task(_listen(url, owner, _REVIEWS, {}, until='"proposal"')) for url in doors.urls]
    await asyncio.sleep(2.0)
    filed = (await doors.ask(owner, "mutation { consolidate }", at=doors.urls[0]))["consolidate"]
    heard = await asyncio.gather(*ears)
    note(f"consolidate filed {filed}, heard by {sum(one is not None for one in heard)} of {len(heard)}")
    return {"filed": filed, "heard": sum(one is not None for one in heard), "seen_by_all": all(heard)}


async def _cycle(running: Fleet, processes: int) -> dict[str, Any]:
    """A night that is due when all workers start at once: how many of them ran it."""
    for worker in list(running.workers):
        await running.stop(worker, sent=signal.SIGTERM)
    async with running.database() as database:
        await database.run(_DUE, at=int(time.time() * 1000) - 2 * _DAY_MS)
    workers = await running.start("worker", processes)
    started = time.monotonic()
    while time.monotonic() - started < 180:
        (lease,) = await running.count(_DONE)
        if lease["at"] > int(time.time() * 1000) - _DAY_MS and lease["holder"] is None:
            break
        await asyncio.sleep(1.0)
    await asyncio.sleep(65)
    (proposals,) = await running.count(_TWICE)
    ran = sum(_lines(running, worker, _CYCLE_RAN) for worker in workers)
    note(f"cycle ran {ran} times, {proposals}")
    return {"ran": ran, "proposals": proposals["filed"], "proposals_twice": proposals["twice"]}


def _lines(running: Fleet, worker: Part, holds: str) -> int:
    return sum(holds in line for line in running.log(worker.name).read_text().splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scaleout")
    parser.add_argument("--processes", type=int, default=4, help="of each kind")
    parser.add_argument("--users", type=int, default=16)
    parser.add_argument("--writes", type=int, default=2_000, help="before anything is measured")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement of throughput")
    parser.add_argument("--heap", type=int, default=1536, help="MiB of Neo4j")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = asyncio.run(run(options))
    print(json.dumps(report, indent=1))
    if options.out:
        options.out.write_text(json.dumps(report) + "\n", encoding="utf-8")
    sys.exit(0 if report["stands"] else 1)


if __name__ == "__main__":
    main()
