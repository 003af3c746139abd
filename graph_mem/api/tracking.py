"""One name for a request: in its answer, in every line of the log, in its trace."""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind
from structlog.contextvars import bound_contextvars

from graph_mem.services.spans import span

REQUEST_ID = "x-request-id"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
"""What a caller may have us write into logs and headers."""


def request_id(headers: Mapping[str, str], new_id: Callable[[str], str]) -> str:
    """The caller's own `X-Request-ID` where it is one plain word, else a new one."""
    given = headers.get(REQUEST_ID, "")
    return given if _WORD.fullmatch(given) else new_id("req")


@contextmanager
def tracked(ref: str, headers: Mapping[str, str]) -> Generator[None]:
    """Everything done inside is logged under `ref`, in a span that goes on the caller's trace (`traceparent`)."""
    told = {"graph_mem.ref": ref}
    with bound_contextvars(ref=ref), span("request", told, kind=SpanKind.SERVER, parent=extract(headers)):
        yield
