"""Which spans leave a process: those that were sampled, and all of every slow operation."""

import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    set_span_in_context,
)

from graph_mem.cli.spans import make_provider

MS = 1_000_000


class Source:
    """Operations with one leg each, of any length."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider: TracerProvider = make_provider(SimpleSpanProcessor(self.exporter), slow_ms=100)
        self._tracer = self.provider.get_tracer("test")

    def operation(self, name: str, *, took_ms: int, caller: SpanContext | None = None, kind: str = "query") -> None:
        above = set_span_in_context(NonRecordingSpan(caller)) if caller else None
        whole = self._tracer.start_span(name, above, start_time=0)
        leg = self._tracer.start_span(f"{name} leg", set_span_in_context(whole), start_time=0)
        leg.end(MS)
        whole.set_attribute("graphql.operation.type", kind)
        whole.end(took_ms * MS)

    @property
    def kept(self) -> list[str]:
        return [one.name for one in self.exporter.get_finished_spans()]


@pytest.fixture
def unsampled(monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    return Source()


def caller(*, sampled: bool) -> SpanContext:
    return SpanContext(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, True, TraceFlags(sampled))


def test_a_slow_operation_is_kept_whole_and_a_quick_one_is_not(unsampled: Source) -> None:
    unsampled.operation("quick", took_ms=99)
    unsampled.operation("slow", took_ms=100)
    assert unsampled.kept == ["slow leg", "slow"]
    leg, whole = unsampled.exporter.get_finished_spans()
    assert leg.parent is not None
    assert leg.parent.span_id == whole.context.span_id
    assert leg.context.trace_flags.sampled
    assert whole.context.trace_flags.sampled


def test_the_caller_decides_but_for_slow_ones(unsampled: Source) -> None:
    unsampled.operation("wanted", took_ms=1, caller=caller(sampled=True))
    unsampled.operation("unwanted", took_ms=1, caller=caller(sampled=False))
    unsampled.operation("slow", took_ms=500, caller=caller(sampled=False))
    assert unsampled.kept == ["wanted leg", "wanted", "slow leg", "slow"]


def test_a_subscription_is_not_slow(unsampled: Source) -> None:
    unsampled.operation("followed", took_ms=60_000, kind="subscription")
    assert unsampled.kept == []


def test_nothing_is_held_of_operations_that_are_over(unsampled: Source) -> None:
    unsampled.operation("quick", took_ms=1)
    (kept,) = unsampled.provider._active_span_processor._span_processors
    assert kept._held == {}


def test_all_is_sampled_unless_said_otherwise_under_the_name_of_the_service() -> None:
    source = Source()
    source.operation("quick", took_ms=1)
    assert source.kept == ["quick leg", "quick"]
    assert source.provider.resource.attributes["service.name"] == "graph-mem"


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """An endpoint that takes what is sent to it."""
    taken: list[tuple[str, bytes]] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Taking)
    serving = Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}", taken
    server.shutdown()
    serving.join()
    server.server_close()


def test_spans_leave_for_the_endpoint_that_the_environment_names(
    collector: tuple[str, list[tuple[str, bytes]]],
) -> None:
    address, taken = collector
    code = """
from opentelemetry.trace import get_tracer
from graph_mem.cli.telemetry import observed
from graph_mem.config import Settings
with observed(Settings()), get_tracer("test").start_as_current_span("measured"):
    pass
"""
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": address}, check=True)
    ((path, body),) = taken
    assert path == "/v1/traces"
    assert all(word in body for word in (b"measured", b"graph-mem"))
