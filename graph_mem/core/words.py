"""The words of a text that an analyzer for English would not find: `pieces`, written when a text is indexed and asked
for when it is searched.

Three kinds. Identifiers (`RX-7741-Q`, `C:\\repo\\a.py`, `getUserName`, `ana@acme.example`) as one word and by their
parts. Scripts written without spaces, and Hangul, by overlapping pairs of characters. Words with accents without them.
"""

import re
import unicodedata

_RUN = re.compile(r"\S+")
_PART = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_JOINED = re.compile(r"[^\W_][_:./\\@+#~=&-]+[^\W_]")
_TELLING = re.compile(r"[_:./\\@+#~=&]|[^\W\d_].*\d|\d.*[^\W\d_]|[a-z][A-Z]")
_KEPT_WHOLE = re.compile(r"[_.:]")
_MARKS = re.compile("[\u0300-\u036f]")
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "ı": "i", "þ": "th"})
_LETTERS_OR_DIGITS = re.compile(r"\d+|[^\W\d_]+")
_NUMBERED = re.compile(r"\d\D*\d")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?(T[\d:.+-]+Z?)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|[\d.,:']+")
_YEAR = re.compile("(19|20)[0-9]{2}")
_LONG_NUMBER = 3
_NAMED_IN = 10_000
"""Characters of a query in which identifiers are looked for."""

_MAX_PART = 100
"""Characters of one part that are indexed; far below what Lucene takes as one term."""


def pieces(text: str) -> list[str]:
    """The pieces of `text`, each once, in order of appearance; none for plain English words."""
    found: dict[str, None] = {}
    for run in _RUN.findall(text):
        if run.isascii() and run.isalpha() and (run.islower() or run.isupper() or run.istitle()):
            continue
        found.update(dict.fromkeys(_pieces_of(run)))
    return list(found)


def _pieces_of(run: str) -> list[str]:
    spaced = _UNSPACED.sub(" ", run)
    pairs = [pair for block in _UNSPACED.findall(run) for pair in _pairs(block)]
    return pairs + [piece for word in spaced.split() for piece in (*_identifier(word), *_plain(word))]


def _pairs(block: str) -> list[str]:
    """Overlapping pairs of characters as words that no analyzer takes apart; a lone character by itself."""
    block = unicodedata.normalize("NFKC", block)
    pairs = [block[i : i + 2] for i in range(max(1, len(block) - 1))]
    return [f"u{'x'.join(f'{ord(character):x}' for character in pair)}0" for pair in pairs]


def _identifier(word: str) -> list[str]:
    """The whole of an identifier joined by `_`, then the parts that the analyzer leaves together."""
    word = _EDGES.sub("", word)
    parts = _PART.findall(word)
    if not _TELLING.search(word) or not any(part[0].isalpha() for part in parts):
        return []
    whole = ["_".join(map(folded, parts))[: 2 * _MAX_PART]] if _JOINED.search(word) else []
    humps = [hump for part in parts for hump in _CAMEL.split(part)]
    small = humps if len(humps) > len(parts) or _KEPT_WHOLE.search(word) else []
    return [*whole, *(folded(hump)[:_MAX_PART] for hump in (*small, *(parts if small else [])) if len(small) > 1)]


def _plain(word: str) -> list[str]:
    """Words with accents, without them."""
    if word.isascii():
        return []
    return [plain for part in _PART.findall(word) if (plain := folded(part)[:_MAX_PART]) != part.lower()]


def identifiers(text: str) -> list[re.Pattern[str]]:
    """What finds each part, order or error number that `text` names, however it is joined and cased: `RX-7741-Q`,
    `48-1123`, `INV20250089`. Dates, times, ranges and plain numbers are none.
    """
    found: dict[str, re.Pattern[str]] = {}
    for run in _RUN.findall(text[:_NAMED_IN]):
        word = _EDGES.sub("", run)
        parts = [part for joined in _PART.findall(word) for part in _LETTERS_OR_DIGITS.findall(joined)]
        if _NUMBERED.search(word) and not _DATE.fullmatch(word) and _tells_apart(parts):
            joined = r"[\W_]*".join(re.escape(part) for part in parts)
            found.setdefault(word, re.compile(rf"(?<![^\W_]){joined}(?![^\W_])", re.IGNORECASE))
    return list(found.values())


def _tells_apart(parts: list[str]) -> bool:
    """Digits with capitals; letters before a number of three digits or more that is no year; several such numbers."""
    if any(part.isalpha() and part.isupper() for part in parts):
        return True
    numbers = [part for part in parts if part.isdecimal()]
    long = [number for number in numbers if len(number) >= _LONG_NUMBER]
    if len(numbers) == len(parts):
        return len(parts) > 1 and bool(long)
    return (parts[0].isalpha() or parts[0] == "0") and any(not _YEAR.fullmatch(number) for number in long)


def folded(word: str) -> str:
    """`word` in lower case without the accents of Latin, Greek and Cyrillic letters."""
    if word.isascii():
        return word.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word.casefold()).casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", plain)).translate(_LETTERS)
