"""What every use case is given, put together once by `graph_mem.app`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ulid import ULID

from graph_mem.core.context import DEFAULT_LIMITS, Limits
from graph_mem.models.claims import ClaimExtractor
from graph_mem.models.embedder import Embedder
from graph_mem.models.embedders import Embedders
from graph_mem.models.extractor import Extractor
from graph_mem.models.judge import Judge
from graph_mem.models.tokens import Tokenizer
from graph_mem.services.settings import SettingsCache
from graph_mem.services.tracing import TraceWriter
from graph_mem.services.turns import Turns
from graph_mem.services.wakeups import Wakeups
from graph_mem.store.db import Database

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Now, to the millisecond that the store keeps."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def new_id(kind: str) -> str:
    """A new id of `kind`, sortable by the time it was made."""
    return f"{kind}_{ULID()}"


@dataclass(frozen=True)
class Deps:
    db: Database
    embedder: Embedder | Embedders
    extractor: Extractor
    tokenizer: Tokenizer
    settings: SettingsCache
    traces: TraceWriter
    wakeups: Wakeups
    clock: Clock = utc_now
    new_id: Callable[[str], str] = new_id
    limits: Limits = DEFAULT_LIMITS
    turns: Turns = field(default_factory=Turns)
    claims: ClaimExtractor | None = None
    judge: Judge | None = None
