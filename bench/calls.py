"""What users of a loaded instance do, one call at a time, and an account of every call and every acknowledged write."""

import asyncio
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx
import numpy as np
from ulid import ULID

from bench.fleet import Caller

SEARCH = """query($i: SearchInput!) { search(input: $i, first: 10) { mode degradedReason traceId pending
  hits { rank tier score { final fused } snippet node { __typename id standing } } } }"""
CAPTURE = """mutation($i: CaptureMemoryInput!) { captureMemory(input: $i) { memory { id } errors { code message } } }"""
FACT = (
    """mutation($i: SaveFactInput!) { saveFact(input: $i) { fact { id standing } outcome errors { code message } } }"""
)
CONTEXT = (
    """query($i: ContextInput!) { context(input: $i) { prefix { hash tokens } tail { text omitted } trace { id } } }"""
)
MEMORY = "query($id: ID!) { memory(id: $id) { id processing standing } }"
HISTORY = """query($id: ID!) { history(id: $id) { nodes { kind at } }
  supersessionChain(id: $id) { records { id } heads { id } } }"""
TRACE = "query($id: ID!) { trace(id: $id) { id tookMs hits { rank } } }"
QUEUE = "query { reviewQueue(first: 20) { nodes { id kind score } } }"

OVERLOAD = frozenset({"SERVICE_UNAVAILABLE", "TIMEOUT", "RATE_LIMITED"})
"""The only codes that a caller who asks for nothing wrong may ever get."""
OK = "OK"
ALLOWED = OVERLOAD | {OK}

_SLOTS = 40
_PERSIST_S = 180.0
_THINGS = (
    "invoice,renewal,migration,audit,workshop,contract,budget,pilot,churn,support,schema,forecast,pipeline,onboarding,"
    "security review,integration,dashboard,licence,quota,roadmap,incident,rollout,training,catalogue,warehouse,tariff,"
    "subsidy,vineyard,turbine,harbour,clinic,archive,satellite,foundry,orchard,glacier,library,reactor,ferry"
)
_DOINGS = (
    "was agreed with,moved after the meeting about,blocks the start of,replaces the draft of,costs more than,"
    "depends on,was measured by,belongs to,was postponed because of,follows from,is reported to those of"
)


@dataclass(slots=True)
class Tally:
    """Milliseconds and codes of every call, by phase and operation."""

    spent: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    codes: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    strange: list[str] = field(default_factory=list[str])
    """What answers with a code that is not allowed said, the first of them."""

    def add(self, phase: str, operation: str, code: str, ms: float) -> None:
        self.codes[phase, operation, code] += 1
        if code == OK:
            self.spent[phase, operation].append(ms)

    @property
    def forbidden(self) -> dict[str, int]:
        """Codes that fail the run, and how often they came."""
        found = Counter[str]()
        for (_, operation, code), count in self.codes.items():
            if code not in ALLOWED:
                found[f"{operation} {code}"] += count
        return dict(found)

    def report(self) -> list[dict[str, Any]]:
        """A row for each phase and operation."""
        named = dict.fromkeys((phase, operation) for phase, operation, _ in self.codes)
        return [self._row(phase, operation) for phase, operation in named]

    def _row(self, phase: str, operation: str) -> dict[str, Any]:
        spent = self.spent.get((phase, operation)) or [float("nan")]
        p50, p99 = np.percentile(np.array(spent), [50, 99])
        codes = {code: count for (p, o, code), count in sorted(self.codes.items()) if (p, o) == (phase, operation)}
        return {"phase": phase, "operation": operation, "p50": round(p50, 1), "p99": round(p99, 1), "codes": codes}


@dataclass(slots=True)
class Ledger:
    """Every write that was acknowledged, and how many never were."""

    memories: dict[str, tuple[Caller, str]] = field(default_factory=dict[str, tuple[Caller, str]])
    facts: dict[tuple[str, str, str], tuple[Caller, list[str]]] = field(default_factory=dict)
    unacknowledged: int = 0

    def fact(self, caller: Caller, subject: str, id: str) -> None:
        slot = (caller.org_id, str(caller.place) if "private" not in caller.place else caller.user, subject)
        self.facts.setdefault(slot, (caller, []))[1].append(id)

    @property
    def writes(self) -> int:
        return len(self.memories) + sum(len(ids) for _, ids in self.facts.values())


class Refused(Exception):
    """An answer with an error; `code` is its code, or the name of what broke in transport."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(f"{code}: {said}")
        self.code = code


class Doors:
    """The API's processes, asked in turn."""

    def __init__(self, urls: Iterable[str], *, timeout_s: float = 60.0) -> None:
        self._client = httpx.AsyncClient(timeout=timeout_s, limits=httpx.Limits(max_connections=None))
        self.open(urls)

    def open(self, urls: Iterable[str]) -> None:
        """Ask these from now on."""
        self.urls = list(urls)
        self._turn = itertools.cycle(self.urls)

    async def ask(self, caller: Caller, document: str, *, at: str | None = None, **variables: Any) -> dict[str, Any]:
        """The data of an answer without errors. `at`: the process to ask."""
        head = {"authorization": f"Bearer {caller.token}", "accept": "application/graphql-response+json"}
        body = {"query": document, "variables": variables}
        try:
            answer = await self._client.post(f"{at or next(self._turn)}/graphql", json=body, headers=head)
            said = answer.json()
        except httpx.HTTPError as error:
            raise Refused(type(error).__name__, str(error)) from error
        except ValueError as error:
            raise Refused(f"HTTP {answer.status_code}", answer.text[:200]) from error
        data = said.get("data") or {}
        inside = [one for part in data.values() if isinstance(part, dict) for one in part.get("errors") or ()]
        for error in [*(said.get("errors") or ()), *inside]:
            code = error.get("code") or (error.get("extensions") or {}).get("code") or "NO CODE"
            raise Refused(code, str(error.get("message"))[:200])
        return data

    async def close(self) -> None:
        await self._client.aclose()


@dataclass(slots=True)
class Crowd:
    """Closed-loop users: each asks again as soon as it is answered."""

    doors: Doors
    callers: Sequence[Caller]
    tally: Tally = field(default_factory=Tally)
    ledger: Ledger = field(default_factory=Ledger)
    phase: str = "load"
    mix: "dict[str, int]" = field(default_factory=lambda: dict(MIX))
    stopping: bool = False

    async def run(self, users: int, seconds: float, *, writes: int | None = None) -> None:
        """`users` of them for some time, or until so many writes are acknowledged."""
        until = time.monotonic() + seconds
        everybody = [_User(self, number) for number in range(users)]
        await asyncio.gather(*(one.live(until, writes) for one in everybody))

    def done(self, until: float, writes: int | None) -> bool:
        return self.stopping or time.monotonic() >= until or (writes is not None and self.ledger.writes >= writes)


class _User:
    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd = crowd
        self._random = Random(number)
        self._own: dict[str, list[str]] = defaultdict(list)
        self._traces: dict[str, str] = {}

    async def live(self, until: float, writes: int | None) -> None:
        names, weights = zip(*self._crowd.mix.items(), strict=True)
        while not self._crowd.done(until, writes):
            caller = self._random.choice(self._crowd.callers)
            (operation,) = self._random.choices(names, weights)
            if not await _DOINGS_BY_NAME[operation](self, caller):
                await asyncio.sleep(0.2)

    async def _ask(self, operation: str, caller: Caller, document: str, **variables: Any) -> dict[str, Any] | None:
        """The answer, or None if it was an error; counted either way."""
        started, phase, tally = time.perf_counter(), self._crowd.phase, self._crowd.tally
        try:
            data = await self._crowd.doors.ask(caller, document, **variables)
        except Refused as refused:
            tally.add(phase, operation, refused.code, 0.0)
            if refused.code not in ALLOWED and len(tally.strange) < 20:
                tally.strange.append(f"{phase} {operation} {refused}")
            return None
        tally.add(phase, operation, OK, (time.perf_counter() - started) * 1000)
        return data

    async def _persist(self, operation: str, caller: Caller, document: str, given: dict[str, Any]) -> Any:
        """A write, sent again under its key until it is acknowledged, as a careful caller does."""
        given = {**given, **caller.place, "idempotencyKey": str(ULID())}
        until = time.monotonic() + _PERSIST_S
        while time.monotonic() < until:
            data = await self._ask(operation, caller, document, i=given)
            if data is not None:
                return data
            await asyncio.sleep(1.0)
        self._crowd.ledger.unacknowledged += 1
        return None

    async def search(self, caller: Caller) -> bool:
        text = f"{self._thing()} {self._thing()} {self._random.randrange(1000)}"
        data = await self._ask("search", caller, SEARCH, i={"text": text})
        if data is not None:
            self._traces[caller.token] = data["search"]["traceId"]
        return data is not None

    async def capture(self, caller: Caller) -> bool:
        text = self._text()
        data = await self._persist("capture", caller, CAPTURE, {"text": text})
        if data is None:
            return False
        id = data["captureMemory"]["memory"]["id"]
        self._crowd.ledger.memories[id] = (caller, text)
        self._own[caller.token].append(id)
        if self._random.random() < 0.25:
            return await self._read_back(caller, id)
        return True

    async def _read_back(self, caller: Caller, id: str) -> bool:
        """What was acknowledged is there for its writer, whichever process is asked."""
        data = await self._ask("read back", caller, MEMORY, id=id)
        if data is not None and data["memory"] is None:
            self._crowd.tally.add(self._crowd.phase, "read back", "OWN WRITE NOT READ", 0.0)
        return data is not None

    async def fact(self, caller: Caller) -> bool:
        subject = f"customer {self._random.randrange(_SLOTS)}"
        given = {"subject": subject, "relation": "billing rate", "statement": f"The rate of {subject} is {ULID()}."}
        data = await self._persist("saveFact", caller, FACT, given)
        if data is None:
            return False
        id = data["saveFact"]["fact"]["id"]
        self._crowd.ledger.fact(caller, subject, id)
        self._own[caller.token].append(id)
        return True

    async def context(self, caller: Caller) -> bool:
        given = {
            "runId": str(ULID()),
            "instruction": f"Prepare the {self._thing()}.",
            "semanticTail": True,
        }
        return await self._ask("context", caller, CONTEXT, i=given) is not None

    async def history(self, caller: Caller) -> bool:
        own = self._own[caller.token]
        if not own:
            return await self.search(caller)
        return await self._ask("history", caller, HISTORY, id=self._random.choice(own[-200:])) is not None

    async def trace(self, caller: Caller) -> bool:
        known = self._traces.get(caller.token)
        if known is None:
            return await self.search(caller)
        return await self._ask("trace", caller, TRACE, id=known) is not None

    async def queue(self, caller: Caller) -> bool:
        return await self._ask("review queue", caller, QUEUE) is not None

    def _text(self) -> str:
        """A few sentences that nobody else saves."""
        return f"{ULID()}. " + " ".join(self._sentence() for _ in range(3))

    def _sentence(self) -> str:
        one, two, three = (self._thing() for _ in range(3))
        doing = self._random.choice(_DOINGS.split(","))
        return f"The {one} {doing} the {two} and the {three} {self._random.randrange(100)}."

    def _thing(self) -> str:
        return self._random.choice(_THINGS.split(","))


_DOINGS_BY_NAME: dict[str, Callable[[_User, Caller], Awaitable[bool]]] = {
    "search": _User.search,
    "capture": _User.capture,
    "saveFact": _User.fact,
    "context": _User.context,
    "history": _User.history,
    "trace": _User.trace,
    "review queue": _User.queue,
}
MIX = {"search": 50, "capture": 18, "saveFact": 12, "context": 6, "history": 6, "trace": 4, "review queue": 4}
"""Of a hundred calls."""
