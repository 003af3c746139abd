"""What this process counts, in Prometheus' terms. No content, no names: counts, times, kinds."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from graph_mem.core.retrieval import Trace
from graph_mem.services import Deps
from graph_mem.store import jobs
from graph_mem.store.db import Tx
from graph_mem.store.times import ms
from graph_mem.store.visibility import security_events

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

REGISTRY = CollectorRegistry()
SEARCHES = Counter("graph_mem_searches", "Searches answered.", ["mode"], registry=REGISTRY)
HITS = Counter("graph_mem_search_hits", "Records that a search ranked.", ["tier"], registry=REGISTRY)
SEARCH_SECONDS = Histogram("graph_mem_search_seconds", "A whole search.", buckets=_SECONDS, registry=REGISTRY)
LEG_SECONDS = Histogram("graph_mem_leg_seconds", "One leg of a search.", ["leg"], buckets=_SECONDS, registry=REGISTRY)
LEGS = Counter("graph_mem_legs", "How legs of searches fared.", ["leg", "state"], registry=REGISTRY)
FAILURES = Counter("graph_mem_job_failures", "Jobs put off because they failed.", ["kind"], registry=REGISTRY)
WAITING = Gauge("graph_mem_jobs_waiting", "Jobs in the whole database.", registry=REGISTRY)
OLDEST_SECONDS = Gauge("graph_mem_oldest_job_seconds", "Age of the oldest of them.", registry=REGISTRY)
TRACES = Gauge("graph_mem_traces_waiting", "Traces of this process that are not written yet.", registry=REGISTRY)
RETRIES = Gauge("graph_mem_transaction_retries", "Transactions that had to be run again.", registry=REGISTRY)
SECURITY_EVENTS = Gauge("graph_mem_security_events", "Rows held back by the second layer.", registry=REGISTRY)


def count_search(trace: Trace) -> None:
    """Count one answered search."""
    SEARCHES.labels(trace.mode.value).inc()
    SEARCH_SECONDS.observe(trace.took_ms / 1000)
    for leg in trace.legs:
        LEGS.labels(leg.name, leg.state.value).inc()
        LEG_SECONDS.labels(leg.name).observe(leg.took_ms / 1000)
    for hit in trace.hits:
        HITS.labels(hit.tier.value).inc()


async def exposition(deps: Deps) -> bytes:
    """All of it as text, the queue's length asked for now."""

    async def work(tx: Tx) -> tuple[int, int | None]:
        return await jobs.backlog(tx)

    waiting, oldest_at = await deps.db.read(work)
    WAITING.set(waiting)
    OLDEST_SECONDS.set(0 if oldest_at is None else max(0, ms(deps.clock()) - oldest_at) / 1000)
    TRACES.set(deps.traces.waiting)
    RETRIES.set(deps.db.retries)
    SECURITY_EVENTS.set(security_events.count)
    return generate_latest(REGISTRY)
