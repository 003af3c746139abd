"""The two scalars of the API beside the built-in ones: a strict instant and free JSON."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import strawberry
from graphql import GraphQLError, ValueNode, value_from_ast_untyped
from strawberry.scalars import JSON
from strawberry.schema.config import StrawberryConfig
from strawberry.types.scalar import ScalarDefinition

from graph_mem.core.kinds import kind_of
from graph_mem.errors import InvalidInput

__all__ = ["JSON", "SCALARS", "schema_config"]

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_MAX_DEPTH = 32


def parse_instant(value: object) -> datetime:
    """The UTC instant that an RFC 3339 text names, to the millisecond: the precision of the store."""
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        raise _refused(f"DateTime must be RFC 3339 with an offset, as 2026-11-30T09:00:00Z; found {_shown(value)}.")
    try:
        at = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _refused(f"DateTime must be a day and time between year 1 and 9999; found {_shown(value)}.") from None
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def serialize_instant(value: datetime) -> str:
    """`value` in UTC with milliseconds and `Z`."""
    if value.tzinfo is None:
        raise ValueError("a DateTime leaves the API only with a time zone")
    return value.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def parse_json(value: object) -> object:
    """`value` itself, once it is certain that every later step can store and print it."""
    _check_json(value, depth=0)
    return value


def _parse_json_literal(node: ValueNode, variables: Mapping[str, Any] | None = None) -> object:
    return parse_json(value_from_ast_untyped(node, dict(variables) if variables else None))


def _check_json(value: object, *, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise _refused(f"JSON nests deeper than {_MAX_DEPTH} levels.")
    match value:
        case dict():
            for item in cast("dict[str, object]", value).values():
                _check_json(item, depth=depth + 1)
        case list():
            for item in cast("list[object]", value):
                _check_json(item, depth=depth + 1)
        case float() if not math.isfinite(value):
            raise _refused("JSON has no infinite numbers and no NaN.")
        case int() if not -(2**63) <= value < 2**63:
            raise _refused("JSON integers are limited to 64 bits here.")
        case _:
            pass


def _refused(message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"code": InvalidInput.code})


def _shown(value: object) -> str:
    return json.dumps(value[:40], ensure_ascii=False) if isinstance(value, str) else kind_of(value)


SCALARS: Mapping[object, ScalarDefinition] = {
    datetime: strawberry.scalar(
        name="DateTime",
        description=(
            "An instant, RFC 3339 with an explicit offset. Input without an offset is rejected; "
            "output is UTC with milliseconds."
        ),
        specified_by_url="https://scalars.graphql.org/andimarek/date-time.html",
        serialize=serialize_instant,
        parse_value=parse_instant,
    ),
    JSON: strawberry.scalar(
        name="JSON",
        description="Any JSON value, for caller-supplied metadata and diagnostics only.",
        specified_by_url="https://www.rfc-editor.org/rfc/rfc8259",
        serialize=lambda value: value,
        parse_value=parse_json,
        parse_literal=_parse_json_literal,
    ),
}


def schema_config() -> StrawberryConfig:
    """The configuration every schema of ours is built with."""
    return StrawberryConfig(scalar_map=SCALARS)
