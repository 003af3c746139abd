"""Rehearsal: what must stay true is asked about again, at growing distances while it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from graph_mem.core.model import Memory, Record, Standing
from graph_mem.core.vocabulary import Label

DAYS = (1, 3, 7, 21, 60)
"""Distance of each box, in days. Source: Leitner 1972, boxes of growing size; the last is about two months."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """In which box a record is, from 1, and when it is due."""

    box: int
    due_at: datetime

    def due(self, now: datetime) -> bool:
        return self.due_at <= now


def enrolled(now: datetime, *, days: Sequence[int] = DAYS) -> Rehearsal:
    """A record's first box."""
    return _in_box(1, now, days)


def validated(held: Rehearsal, now: datetime, *, days: Sequence[int] = DAYS) -> Rehearsal:
    """One box up, at most the last: the record still holds. Early or late, the distance counts from `now`."""
    return _in_box(held.box + 1, now, days)


def refuted(now: datetime, *, days: Sequence[int] = DAYS) -> Rehearsal:
    """Back to the first box: the record does not hold, and the proposal that says so may be reverted."""
    return _in_box(1, now, days)


def _in_box(box: int, now: datetime, days: Sequence[int]) -> Rehearsal:
    """Errors: ValueError without boxes, for a box before the first, or for a distance below a day."""
    if not days or box < 1 or min(days) < 1:
        raise ValueError(f"box {box} of distances {list(days)}: expected box 1 or later and distances of a day or more")
    box = min(box, len(days))
    return Rehearsal(box, now + timedelta(days=days[box - 1]))


def high_stakes(record: Record, label: Label | None, *, pinned: bool) -> bool:
    """Whether a record is enrolled by itself: a position, a protected label, evergreen or pinned; while it is current.

    `label` is the definition of the record's label; None for one that the organization has no more.
    """
    if record.standing is not Standing.CURRENT:
        return False
    position = isinstance(record, Memory) and record.position
    protected = label is not None and label.protected
    return position or protected or record.signals.evergreen or pinned
