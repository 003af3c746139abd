"""What a process tells of itself while it runs: its log, and spans for whoever collects them.

Spans are exported over OTLP where the standard variables name an endpoint, and sampled as those say.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager

from graph_mem.cli.logs import configure_logging
from graph_mem.config import Settings

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@contextmanager
def observed(settings: Settings) -> Generator[None]:
    """Log, and export spans if anybody collects them; the last ones leave before this ends."""
    configure_logging(settings)
    if not any(os.environ.get(name) for name in ENDPOINTS) or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        yield
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import set_tracer_provider

    from graph_mem.cli.spans import make_provider

    provider = make_provider(BatchSpanProcessor(OTLPSpanExporter()), slow_ms=settings.slow_operation_ms)
    set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
