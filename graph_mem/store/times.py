"""Instants as the graph holds them: integer milliseconds since 1970, because decoding temporal values is slow."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def ms(at: datetime) -> int:
    """Milliseconds since 1970 of `at`; exact from year 1 to 9999."""
    return (at - _EPOCH) // _MS


def instant(value: int) -> datetime:
    """The aware UTC instant of `value` milliseconds."""
    return _EPOCH + value * _MS


def instant_or_none(value: int | None) -> datetime | None:
    return None if value is None else instant(value)
