"""DateTime: an instant or an error, and the same one on the way back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from graphql import GraphQLError
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.api.scalars import parse_instant, parse_json, serialize_instant

instants = st.datetimes(
    min_value=datetime(1, 1, 2),  # hypothesis adds the zone
    max_value=datetime(9999, 12, 30),
    timezones=st.just(UTC),
)
offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(instants, offsets)
def test_instant_survives_any_offset_to_the_millisecond(at: datetime, offset: timezone) -> None:
    expected = at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert parse_instant(at.astimezone(offset).isoformat()) == expected
    assert parse_instant(serialize_instant(expected)) == expected


@given(instants)
def test_output_is_utc_with_milliseconds(at: datetime) -> None:
    text = serialize_instant(at)
    assert len(text) == len("2026-11-30T09:00:00.000Z")
    assert text.endswith("Z")


@pytest.mark.parametrize(
    "text",
    [
        "2026",
        "2026-11-30",
        "2026-W48",
        "2026-11-30T09:00:00",
        "2026-11-30 09:00:00Z",
        "20261130T090000Z",
        "2026-11-30T09:00Z",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-11-30T24:00:01Z",
        "2026-11-30T09:00:60Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-11-30T09:00:00+25:00",
        "2026-11-30T09:00:00Z\n",
        "٢٠٢٦-11-30T09:00:00Z",
        "",
        "now",
    ],
)
def test_text_that_names_no_instant_is_refused(text: str) -> None:
    with pytest.raises(GraphQLError) as refused:
        parse_instant(text)
    assert refused.value.extensions == {"code": "BAD_USER_INPUT"}


@pytest.mark.parametrize("value", [1_700_000_000, 1.5, True, None, [], {}])
def test_value_that_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(GraphQLError):
        parse_instant(value)


def test_instant_without_a_zone_never_leaves() -> None:
    with pytest.raises(ValueError, match="time zone"):
        serialize_instant(datetime(2026, 1, 1))  # the point


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_passes_unchanged(value: object) -> None:
    assert parse_json(value) is value


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 2**63, [2**64], {"a": [float("-inf")]}])
def test_json_that_cannot_be_stored_is_refused(value: object) -> None:
    with pytest.raises(GraphQLError):
        parse_json(value)
