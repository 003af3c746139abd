"""A query in any language as a Lucene query that cannot fail: its words, and filters inside the index.

Every character that Lucene reads as syntax is escaped, the operators are words like any others, and the number of
clauses stays under Lucene's limit: a long query keeps all its different words and searches fewer fields, and only a
text of more words than the index takes is cut, to its rarest-looking ones.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from graph_mem.core.words import pieces

MAX_QUERY = 100_000
"""Characters of a query that are looked at."""

_MAX_CLAUSES = 900
"""Under Lucene's 1,024, filters included."""

_TITLE_UP_TO = 64
"""Queries of more words search the content alone."""

_SYNTAX = re.compile(r'([+\-!(){}\[\]^"~*?:\\/&|<>=])')
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_EDGES = re.compile(r"^[^\w]+|[^\w]+$")
_UNSTORABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_STOP_WORDS = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"}
    | {"of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"}
    | {"will", "with"}
)
"""Those of Lucene's `english` analyzer: they are not in the index."""

_QUESTION_WORDS = frozenset(
    {"what", "when", "who", "whom", "whose", "which", "where", "why", "how", "did", "do", "does"}
)
_ASKING = "^0.1"
"""They say what kind of answer is wanted and seldom what about, so they weigh a tenth; measured in bench/README.md."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What the words leg asks for. `words` counts the different words that a good match would hold; `cut` says what was
    left out."""

    clause: str
    words: int
    cut: str | None = None


def plain(text: str) -> str:
    """`text` without what no store and no model takes: control characters and half surrogates."""
    return _UNSTORABLE.sub(" ", text)


def wording(text: str) -> Wording | None:
    """The words of `text` as one Lucene clause; None if no word of it could be in the index."""
    looked_at = plain(text[:MAX_QUERY])
    found = list(dict.fromkeys(word for run in looked_at.split() if (word := _EDGES.sub("", run))))
    words = [word[:1000] for word in found if word.casefold() not in _STOP_WORDS]
    extra = pieces(looked_at)
    if not words and not extra:
        return None
    cut = f"{len(text)} characters: the first {MAX_QUERY} were searched" if len(text) > MAX_QUERY else None
    room = max(_MAX_CLAUSES - len(extra), _MAX_CLAUSES // 2)
    if len(words) > room:
        cut = f"{len(words)} different words: the {room} that look rarest were searched"
        words = _rarest(words, room)
    extra = extra[: _MAX_CLAUSES - len(words)]
    telling = {word for word in words if word.casefold() not in _QUESTION_WORDS} or set(words)
    return Wording(_clause(words, extra, telling), words=max(1, len(telling)), cut=cut)


def _rarest(words: Sequence[str], count: int) -> list[str]:
    """The `count` words that are likeliest to be rare: with digits first, then by length."""
    by_rarity = sorted(words, key=lambda word: (not any(c.isdigit() for c in word), -len(word), word))
    return by_rarity[:count]


def _clause(words: Sequence[str], extra: Sequence[str], telling: Collection[str]) -> str:
    fields = ["content", "title"] if len(words) <= _TITLE_UP_TO else ["content"]
    terms = " ".join(_escaped(word) + ("" if word in telling else _ASKING) for word in words)
    parts = [f"{field}:({terms})" for field in fields] if terms else []
    if extra:
        parts.append(f"pieces:({' '.join(map(_escaped, extra))})")
    return f"+({' '.join(parts)})"


def _escaped(word: str) -> str:
    return _SYNTAX.sub(r"\\\1", word.lower() if word in _OPERATORS else word)


def lucene(wording: Wording, filters: Iterable[Sequence[str]], *, ahead: str | None = None) -> str:
    """The whole query: one of each group of `filters` must be among a unit's keys, and adds nothing to its score.

    `ahead` is the key of units that come first among equals: the caller's own are not cut off by as good shared ones.
    """
    required = [f"+keys:({' '.join(group)})^0" for group in filters if group]
    preferred = [f"keys:{ahead}^0.0001"] if ahead else []
    return " ".join([*required, *preferred, wording.clause])


def needle(text: str) -> str:
    """What substring search looks for: the longest word, in lower case."""
    words = _EDGES.sub("", plain(text[:MAX_QUERY])).split()
    return max((word.lower()[:200] for word in words), key=len, default="")
