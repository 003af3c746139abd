"""Instants as the graph holds them: integer milliseconds since 1970, because decoding temporal values is slow."""

from datetime import UTC, datetime, timedelta
from typing import overload

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def ms(at: datetime) -> int:
    """Milliseconds since 1970 of `at`; exact from year 1 to 9999."""
    return (at - _EPOCH) // _MS


@overload
def instant(value: int) -> datetime: ...
@overload
def instant(value: int | None) -> datetime | None: ...
def instant(value: int | None) -> datetime | None:
    """The aware UTC instant of `value` milliseconds; None stays None."""
    return None if value is None else _EPOCH + value * _MS
