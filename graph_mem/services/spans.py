"""Spans of what a process does, for OpenTelemetry: kinds, counts and times. No text, no query, no token.

Without an exporter (`graph_mem.cli.telemetry`) they are made of nothing and go nowhere.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, get_tracer
from opentelemetry.util.types import AttributeValue

P = ParamSpec("P")
T = TypeVar("T")

Told = Mapping[str, AttributeValue]

_TRACER = get_tracer("graph_mem")


@contextmanager
def span(
    name: str, told: Told | None = None, *, kind: SpanKind = SpanKind.INTERNAL, parent: Context | None = None
) -> Generator[Span]:
    """A span around what follows. An error is told by its class alone, for messages may quote a memory."""
    with _TRACER.start_as_current_span(
        name, parent, kind, record_exception=False, set_status_on_exception=False
    ) as made:
        made.set_attributes(told or {})  # not given to the sampler, which forgets those of spans that it drops
        try:
            yield made
        except Exception as error:
            made.set_attribute("error.type", type(error).__name__)
            made.set_status(StatusCode.ERROR)
            raise


def spanned(
    name: str, tell: Callable[[T], Told]
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Puts every call of an async function into a span that is told what came of it."""

    def around(work: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(work)
        async def inside(*args: P.args, **kwargs: P.kwargs) -> T:
            with span(name) as made:
                result = await work(*args, **kwargs)
                made.set_attributes(tell(result))
                return result

        return inside

    return around


def tell(told: Told, *, name: str | None = None, failed: bool = False) -> None:
    """Say of the current span what is known only now."""
    current = get_current_span()
    current.set_attributes(told)
    if name is not None:
        current.update_name(name)
    if failed:
        current.set_status(StatusCode.ERROR)
