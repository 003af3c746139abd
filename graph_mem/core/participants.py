"""Whom a query names: the one participant whose own words are asked for."""

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_LEAST_FIRST_NAME = 3


def named(query: str, names: Iterable[str]) -> str | None:
    """The only one of `names` that the query holds, whole or by its first word; None for none or several.

    "What did Ana tell Ben?" asks for the words of neither alone.
    """
    asked = _WORD.findall(query.casefold())
    held = {key for name in names if (key := name.casefold()) and _holds(asked, _WORD.findall(key))}
    return next(iter(held)) if len(held) == 1 else None


def _holds(asked: list[str], name: list[str]) -> bool:
    if not name:
        return False
    if len(name[0]) >= _LEAST_FIRST_NAME and name[0] in asked:
        return True
    return any(asked[i : i + len(name)] == name for i in range(len(asked) - len(name) + 1))
