"""Logs of a process, on stderr: lines for people on a terminal, JSON for collectors elsewhere."""

import logging
import sys

import structlog
from structlog.typing import Processor

from graph_mem.config import Settings

QUIETED = {"httpx": logging.WARNING, "neo4j": logging.ERROR, "sentence_transformers": logging.WARNING}
"""The driver warns of each retry; what comes of them is ours to say."""


def configure_logging(settings: Settings) -> None:
    """Send what all modules log through structlog. They log no texts of records and no tokens; neither does this."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering(settings)],
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[handler], level=settings.log_level, force=True)
    for name, level in QUIETED.items():
        logging.getLogger(name).setLevel(max(level, logging.getLogger().level))


def rendering(settings: Settings) -> list[Processor]:
    """The last steps: one JSON object a line, or columns."""
    plain = settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())
    if plain:
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
