"""Names as they occur in running text: units to match vocabularies by, and what a query may be naming."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from graph_mem.core.text import name_key, splits_character

_UNSPACED_RANGE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_UNSPACED_RANGE}]+")
_UNIT = re.compile(rf"[{_UNSPACED_RANGE}]|(?:(?![{_UNSPACED_RANGE}])[^\W_][\u0300-\u036f]*)+|\S")
_WORD = re.compile(r"\S+")
_OUTER = "\"'“”‘’«»„()[]{}<>…*`"
_PAUSE = ",;:.!?。、，！？；：؟،"
_POSSESSIVE = re.compile(r"(?:['’]s|(?<=s)['’])\Z", re.IGNORECASE)
_JOINERS = frozenset("-_.@/\\&'’+")

_STOP_WORDS = """
    a about after all also am an and any are as at be because been before being between both but by can could did do
    does doing done each for from had has have having he her here hers him his how i if in into is it its just like many
    may me might more most much must my no nor not now of off on once one only or other our out over own same shall she
    should so some such than that the their them then there these they this those through to too under until up us very
    was we were what when where which while who whom whose why will with would you your yours tell show give find
    what's who's where's when's how's it's i'm
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that no name begins or ends with when a query is read."""

MAX_WORDS = 128
MAX_NAMES = 512
MAX_NAME_WORDS = 4
_MAX_UNSPACED = 6


@dataclass(frozen=True, slots=True)
class Unit:
    """A word, a sign, or a character of a script written without spaces; `key` as `name_key` writes it."""

    start: int
    end: int
    key: str


def units(text: str) -> list[Unit]:
    """What `text` consists of besides space, in order. Two writings of one name have the same keys."""
    return [Unit(match.start(), match.end(), _unit_key(match[0])) for match in _UNIT.finditer(text)]


def _unit_key(word: str) -> str:
    return word.lower() if word.isascii() else _foreign_key(word)


@cache
def _sign_key(sign: str) -> str:
    return name_key(sign) or sign


def _foreign_key(word: str) -> str:
    return _sign_key(word) if len(word) == 1 else name_key(word) or word


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` is a name by itself and no part of a longer word, address, number or path.

    `Acme` does in `Acme's` and `Acme-style`, not in `Acmes`, `Ana-Acme` or `x@acme.example`. Scripts without spaces
    only need whole characters.
    """
    return _is_left_edge(text, start) and _is_right_edge(text, end)


def _is_left_edge(text: str, start: int) -> bool:
    if start == 0:
        return True
    before, first = text[start - 1], text[start]
    if splits_character(text, start):
        return False
    if _UNSPACED.match(before) or _UNSPACED.match(first) or not _is_wordlike(first):
        return True
    if _is_wordlike(before):
        return False
    inside = before in _JOINERS and start > 1 and _is_wordlike(text[start - 2])
    return not inside or (before in "-'’" and text[start - 2].islower() and _word_before(text, start - 1).islower())


def _is_right_edge(text: str, end: int) -> bool:
    if end == len(text):
        return True
    last, after = text[end - 1], text[end]
    if splits_character(text, end):
        return False
    if _UNSPACED.match(after) or _UNSPACED.match(last) or not _is_wordlike(last):
        return True
    if _is_wordlike(after):
        return False
    inside = after in _JOINERS and end + 1 < len(text) and _is_wordlike(text[end + 1])
    return not inside or (after in "-'’" and text[end + 1].islower())


def _is_wordlike(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def _word_before(text: str, end: int) -> str:
    start = end
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    return text[start:end]


def names_in(text: str) -> tuple[str, ...]:
    """What `text`, a query, may be naming: the keys of its runs of one to four words, longest first.

    Each is as `name_key` would write an entity's name. Runs end at punctuation and neither begin nor end with a stop
    word; scripts without spaces give runs of characters. At most `MAX_NAMES`.
    """
    found = {key for run in _runs(text) for key in _grams(run)}
    found |= {key for match in _UNSPACED.finditer(text[:2_000]) for key in _substrings(match[0])}
    return tuple(sorted(found, key=lambda key: (-len(key), key))[:MAX_NAMES])


def _runs(text: str) -> Iterator[list["_Word"]]:
    """Words that follow each other without punctuation between them."""
    run: list[_Word] = []
    for match, _ in zip(_WORD.finditer(text), range(MAX_WORDS), strict=False):
        bare = match[0].strip(_OUTER)
        word = bare.strip(_PAUSE + _OUTER)
        if word:
            run.append(_Word.read(word, first=match.start() == 0))
        if not word or bare[-1] in _PAUSE or _POSSESSIVE.search(word):
            yield run
            run = []
    yield run


@dataclass(frozen=True, slots=True)
class _Word:
    key: str
    edge: bool
    """Whether a name may begin or end with it."""

    @staticmethod
    def read(word: str, *, first: bool) -> "_Word":
        """`Will` inside a sentence may be a name, at its start it is the verb."""
        key = name_key(word)
        return _Word(key, bool(key) and (key not in STOP_WORDS or (word[0].isupper() and not first)))


def _grams(run: list[_Word]) -> Iterator[str]:
    for start, first in enumerate(run):
        if not first.edge:
            continue
        for end in range(start + 1, min(len(run), start + MAX_NAME_WORDS) + 1):
            if run[end - 1].edge:
                gram = " ".join(word.key for word in run[start:end])
                yield gram
                if bare := _POSSESSIVE.sub("", gram):
                    yield bare


def _substrings(run: str) -> Iterator[str]:
    for start in range(len(run)):
        for end in range(start + 2, min(len(run), start + _MAX_UNSPACED) + 1):
            yield name_key(run[start:end])
