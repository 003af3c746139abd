"""Logs of a process, on stderr: lines for people on a terminal, JSON for collectors elsewhere."""

import logging
import sys

import structlog
from opentelemetry.trace import format_span_id, format_trace_id, get_current_span
from structlog.typing import EventDict, Processor, WrappedLogger

from graph_mem.config import Settings

QUIETED = {"httpx": logging.WARNING, "neo4j": logging.ERROR, "sentence_transformers": logging.WARNING}
"""The driver warns of each retry; what comes of them is ours to say."""


def configure_logging(settings: Settings) -> None:
    """Send what all modules log to stderr. They log no texts of records and no tokens; neither does this."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(settings))
    logging.basicConfig(handlers=[handler], level=settings.log_level, force=True)
    for name, level in QUIETED.items():
        logging.getLogger(name).setLevel(max(level, logging.getLogger().level))


def formatter(settings: Settings) -> logging.Formatter:
    """Lines with all that is known where they are logged: the request, its trace, what the module adds."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            add_trace,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering(settings)],
    )


def add_trace(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The ids of the span under way, so that a log line leads to its trace."""
    context = get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = format_trace_id(context.trace_id)
        event["span_id"] = format_span_id(context.span_id)
    return event


def rendering(settings: Settings) -> list[Processor]:
    """The last steps: one JSON object a line, or columns."""
    plain = settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())
    if plain:
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
