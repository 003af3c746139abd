"""What this process counts, in Prometheus' terms. No content, no names: counts, times, kinds.

Each process tells of itself and is scraped by itself; of the queue, which all share, each tells the same.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import product

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from graph_mem.core.retrieval import LegState, RetrievalMode, Tier, Trace
from graph_mem.errors import GraphMemError
from graph_mem.models.embedder import EmbedderState
from graph_mem.services import Deps
from graph_mem.store import jobs
from graph_mem.store.times import ms
from graph_mem.store.visibility import security_events

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_PATIENCE_S = 3.0
"""Prometheus waits ten seconds; a database that is away must not cost it all the other numbers."""
OK = "OK"
NOTHING = "NONE"

disable_created_metrics()  # a series beside each, of the moment it began: the process's start says as much
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
OPERATIONS = Counter(
    "graph_mem_operations", "GraphQL operations, by the code of their first error.", ["type", "code"], registry=REGISTRY
)
OPERATION_SECONDS = Histogram(
    "graph_mem_operation_seconds", "A whole query or mutation.", ["type"], buckets=_SECONDS, registry=REGISTRY
)
SEARCHES = Counter(
    "graph_mem_searches", "Searches answered, by the tier of their best hit.", ["mode", "tier"], registry=REGISTRY
)
HITS = Counter("graph_mem_search_hits", "Records that a search ranked.", ["tier"], registry=REGISTRY)
SEARCH_SECONDS = Histogram("graph_mem_search_seconds", "A whole search.", buckets=_SECONDS, registry=REGISTRY)
LEG_SECONDS = Histogram("graph_mem_leg_seconds", "One leg of a search.", ["leg"], buckets=_SECONDS, registry=REGISTRY)
LEGS = Counter("graph_mem_legs", "How legs of searches fared.", ["leg", "state"], registry=REGISTRY)
JOBS = Counter("graph_mem_jobs_done", "Jobs that this process has done.", ["kind"], registry=REGISTRY)
FAILURES = Counter("graph_mem_job_failures", "Jobs put off because they failed.", ["kind"], registry=REGISTRY)

for _mode, _tier in product(RetrievalMode, (*Tier, NOTHING)):
    SEARCHES.labels(_mode, _tier)  # a rise from nothing is seen only where nothing was told before
for _leg, _state in product(("vector", "lexical", "substring"), LegState):
    LEGS.labels(_leg, _state)


def count_operation(kind: str, codes: Sequence[str], *, seconds: float) -> None:
    """Count one operation; a subscription lasts as long as somebody listens, which is no measure of anything."""
    OPERATIONS.labels(kind, codes[0] if codes else OK).inc()
    if kind != "subscription":
        OPERATION_SECONDS.labels(kind).observe(seconds)


def count_search(trace: Trace) -> None:
    """Count one answered search."""
    best = min((hit.tier for hit in trace.hits), key=lambda tier: tier.rank, default=NOTHING)
    SEARCHES.labels(trace.mode.value, best).inc()
    SEARCH_SECONDS.observe(trace.took_ms / 1000)
    for leg in trace.legs:
        LEGS.labels(leg.name, leg.state.value).inc()
        LEG_SECONDS.labels(leg.name).observe(leg.took_ms / 1000)
    for hit in trace.hits:
        HITS.labels(hit.tier.value).inc()


async def exposition(deps: Deps) -> bytes:
    """All of it as text, the queue's length asked for now."""
    return generate_latest(REGISTRY) + generate_latest(_Parts(deps, await _backlog(deps)))


async def _backlog(deps: Deps) -> tuple[int, float] | None:
    """How many jobs wait, and the age of the oldest in seconds; None if the database does not say."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            waiting, oldest_at = await deps.db.read(jobs.backlog)
    except (GraphMemError, TimeoutError):
        return None
    return waiting, 0.0 if oldest_at is None else max(0, ms(deps.clock()) - oldest_at) / 1000


class _Parts:
    """What the parts of the process have counted themselves."""

    def __init__(self, deps: Deps, backlog: tuple[int, float] | None) -> None:
        self._deps = deps
        self._backlog = backlog

    def collect(self) -> Iterator[Metric]:
        load, ready = self._deps.db.load, self._deps.embedder.status.state is EmbedderState.READY
        yield _gauge("database_up", "Whether the database answered just now.", self._backlog is not None)
        if self._backlog is not None:
            waiting, oldest_s = self._backlog
            yield _gauge("jobs_waiting", "Jobs in the whole database.", waiting)
            yield _gauge("oldest_job_seconds", "Age of the oldest of them.", oldest_s)
        yield _gauge("embedder_ready", "Whether texts can be embedded.", ready)
        yield _gauge("traces_waiting", "Traces of this process that are not written yet.", self._deps.traces.waiting)
        yield _gauge("pool_connections", "Connections this process may hold.", load.connections)
        yield _gauge("pool_sessions", "Sessions that hold a connection or wait for one.", load.sessions)
        yield _counter("pool_timeouts", "Sessions that waited for a connection in vain.", load.timeouts)
        yield _counter("transactions", "Managed transactions begun.", load.transactions)
        yield _counter("transaction_wait_seconds", "What all of these waited until they began.", load.waited_s)
        yield _counter("transaction_retries", "Transactions that had to be run again.", load.retries)
        yield _counter("security_events", "Rows held back by the second layer.", security_events.count)


def _gauge(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(f"graph_mem_{name}", help, value=value)


def _counter(name: str, help: str, value: float) -> Metric:
    return CounterMetricFamily(f"graph_mem_{name}", help, value=value)
