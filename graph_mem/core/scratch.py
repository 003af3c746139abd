"""Session scratch: what a run notes down for itself."""

from dataclasses import dataclass
from datetime import datetime

from graph_mem.core.model import Place

MAX_NOTE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ScratchNote:
    """A note keyed to one run and private to who made it; in no search, gone at `expires_at`."""

    id: str
    place: Place
    run_id: str
    text: str
    created_at: datetime
    expires_at: datetime
