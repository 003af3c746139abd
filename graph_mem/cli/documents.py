"""What programs read: dataclasses as JSON objects, their fields named as in the API."""

from dataclasses import fields, is_dataclass
from typing import Any, cast

from graph_mem.core.retrieval import camel


def as_object(value: Any) -> dict[str, Any]:
    """A dataclass as an object of its fields, those within it too; the keys of a mapping are data and stay."""
    return {camel(one.name): _plain(getattr(value, one.name)) for one in fields(value)}


def _plain(value: object) -> object:
    if is_dataclass(value):
        return as_object(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in cast("dict[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in cast("list[object]", value)]
    return value
