"""Which spans are kept: those that were sampled, and all of every operation that turned out to be slow."""

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import AlwaysRecordSampler
from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext, TraceFlags

from graph_mem import __version__

_MOST = 1000
"""Spans that are held of one operation, were it to last for ever."""


class SlowKept(SpanProcessor):
    """Hands on what was sampled at once; holds the rest of an operation until its end, and hands it on if it was slow.

    An operation is a span without a parent in this process and everything under it. A subscription is never slow: it
    lasts as long as somebody listens.
    """

    def __init__(self, onward: SpanProcessor, *, slow_ms: float) -> None:
        self._onward = onward
        self._slow_ns = slow_ms * 1e6
        self._held: dict[int, list[ReadableSpan]] = {}
        """By the id of each open span: what its operation has brought so far."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        above = None if _is_first(span) or span.parent is None else self._held.get(span.parent.span_id)
        self._held[_context(span).span_id] = [] if above is None else above
        self._onward.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        context = _context(span)
        held = self._held.pop(context.span_id)
        if context.trace_flags.sampled:
            self._onward.on_end(span)
            return
        if len(held) < _MOST:
            held.append(span)
        if _is_first(span) and self._is_slow(span):
            for one in held:
                self._onward.on_end(_sampled(one))

    def _is_slow(self, span: ReadableSpan) -> bool:
        took_ns = (span.end_time or 0) - (span.start_time or 0)
        return took_ns >= self._slow_ns and (span.attributes or {}).get("graphql.operation.type") != "subscription"

    def shutdown(self) -> None:
        self._onward.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._onward.force_flush(timeout_millis)


def make_provider(onward: SpanProcessor, *, slow_ms: float) -> TracerProvider:
    """A source of spans, sampled and named as the standard variables say, that records them all for `SlowKept`."""
    provider = TracerProvider(resource=_resource())
    provider.sampler = AlwaysRecordSampler(provider.sampler)
    provider.add_span_processor(SlowKept(onward, slow_ms=slow_ms))
    return provider


def _resource() -> Resource:
    found = Resource.create({SERVICE_VERSION: __version__})
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: "graph-mem"}))
    return found


def _context(span: ReadableSpan) -> SpanContext:
    return span.get_span_context() or INVALID_SPAN_CONTEXT


def _is_first(span: ReadableSpan) -> bool:
    return span.parent is None or span.parent.is_remote


def _sampled(span: ReadableSpan) -> ReadableSpan:
    """`span` as one that was sampled: exporters take no other."""
    was = _context(span)
    return ReadableSpan(
        span.name,
        SpanContext(was.trace_id, was.span_id, is_remote=False, trace_flags=TraceFlags(1), trace_state=was.trace_state),
        span.parent,
        span.resource,
        span.attributes,
        span.events,
        span.links,
        span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
