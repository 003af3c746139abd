"""Texts: what is accepted, when two of them are the same, and which part of one answers a query.

Nothing here changes a stored text; the forms below are only compared and hashed.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256

from graph_mem.core.lookalikes import ASCII_LOOKALIKES
from graph_mem.errors import InvalidInput

MAX_TEXT_BYTES = 2 * 1024 * 1024
MAX_NAME_BYTES = 1000
MAX_REASON_BYTES = 8 * 1024

MAX_CHARACTER = 64
"""No user-perceived character in use is longer, in code points; a longer run of marks may be torn."""

_WIDTHLESS = re.compile("[\u00ad\u200b\u2060\ufeff]")
_INVISIBLE = re.compile(  # Default_Ignorable_Code_Point (Unicode 15), controls, and the blank Braille cell
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SPACES = re.compile(r"\s+")
_CLOSING = re.compile(r"[\s.!?…。！？।؟]+\Z")

_SAME_FORM = ("wide", "narrow", "noBreak", "compat", "initial", "medial", "final", "isolated", "small", "vertical")
_TYPOGRAPHIC = {
    "'": "\u2018\u2019\u201a\u201b\u02bc",
    '"': "\u201c\u201d\u201e\u201f",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
}


def check_text(text: str, *, path: Sequence[str] = ("text",), max_bytes: int = MAX_TEXT_BYTES) -> str:
    """`text` itself, byte for byte, if it can be stored.

    Errors: InvalidInput for nothing visible, NUL, a lone surrogate, or more than `max_bytes` of UTF-8.
    """
    if surrogate := _SURROGATE.search(text):
        raise InvalidInput(
            f"Position {surrogate.start()} holds the lone surrogate U+{ord(surrogate[0]):04X}, expected Unicode text.",
            path=path,
        )
    size = len(text.encode())
    if size > max_bytes:
        raise InvalidInput(f"The value has {size} bytes as UTF-8, expected at most {max_bytes}.", path=path)
    if (nul := text.find("\0")) >= 0:
        raise InvalidInput(f"Position {nul} holds a NUL character, expected text without one.", path=path)
    if not _INVISIBLE.sub("", text).strip():
        found = "is empty" if not text else f"has {len(text)} characters, none of them visible"
        raise InvalidInput(f"The value {found}, expected some text.", path=path)
    return text


def check_name(name: str, *, path: Sequence[str], max_bytes: int = MAX_NAME_BYTES) -> str:
    """`name` without surrounding spaces, if it can be stored as a name, label, subject or key.

    Errors: InvalidInput as in `check_text`, and for a control character or line break.
    """
    stripped = check_text(name, path=path, max_bytes=max_bytes).strip()
    if control := _CONTROL.search(stripped):
        raise InvalidInput(
            f"Position {control.start()} holds the control character U+{ord(control[0]):04X}, expected one line.",
            path=path,
        )
    return stripped


def check_reason(reason: str | None) -> None:
    """InvalidInput for a reason that history cannot keep; none, or an empty one, says nothing and may be."""
    if reason:
        check_text(reason, path=("reason",), max_bytes=MAX_REASON_BYTES)


def how_many(number: float, one: str, many: str | None = None) -> str:
    """`number`, whole, with the word for it: `1 memory`, `2 memories`."""
    return f"{number:,.0f} {one if round(number) == 1 else many or f'{one}s'}"


@cache
def _same_form() -> Mapping[int, str]:
    """Characters that only present another one differently; never those that mean more, such as `²` or `½`."""
    typographic = {ord(variant): plain for plain, variants in _TYPOGRAPHIC.items() for variant in variants}
    compatible = {
        code: unicodedata.normalize("NFKC", chr(code)).translate(typographic)
        for code in range(0xA0, 0x10000)
        if unicodedata.decomposition(chr(code)).partition(">")[0][1:] in _SAME_FORM
    }
    return compatible | typographic


def normal_form(text: str) -> str:
    """What two copies of a text have in common: spacing, the form of punctuation, and Unicode form aside.

    Case, letters and the presence of punctuation stay significant: `Ship it?` is no copy of `Ship it.`, nor `10²`
    of `102`. Idempotent.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(_same_form())
        text = unicodedata.normalize("NFC", _WIDTHLESS.sub("", text))
    return " ".join(text.split())


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def text_hash(text: str) -> str:
    """Hexadecimal SHA-256 of the normal form: equal exactly for copies of one text."""
    return _digest(normal_form(text))


def statement_hash(statement: str) -> str:
    """Hexadecimal SHA-256 that two writings of one fact share: as `text_hash`, and case aside."""
    return _digest(normal_form(normal_form(statement).casefold()))


def rejected_form(statement: str) -> str:
    """The skeleton of a statement: look-alikes, case, spaces, invisible characters and the final stop aside.

    Wider than `statement_hash` on purpose: it keeps automatic paths from bringing a rejected value back in disguise.
    Idempotent. Source: UTS #39 skeleton, restricted as `core.lookalikes` says.
    """
    text = unicodedata.normalize("NFKD", _INVISIBLE.sub("", statement.translate(_same_form()))).casefold()
    text = unicodedata.normalize("NFKD", text).translate(_same_form()).translate(_digits()).translate(ASCII_LOOKALIKES)
    text = _INVISIBLE.sub("", text).replace("i\u0307", "i")
    return unicodedata.normalize("NFKD", _SPACES.sub("", _CLOSING.sub("", unicodedata.normalize("NFKD", text))))


@cache
def _digits() -> Mapping[int, str]:
    """Decimal digits of every script to ASCII."""
    return {code: str(int(chr(code))) for code in range(0x80, 0x20000) if chr(code).isdecimal()}


def rejection_hash(statement: str) -> str:
    """Hexadecimal SHA-256 of the rejected form."""
    return _digest(rejected_form(statement))


def name_key(name: str) -> str:
    """What two writings of one name, subject or relation share: case, spacing and compatible forms aside.

    Letters of every script stay apart, accents included. Idempotent.
    """
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", name.translate(_same_form()))).casefold()
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", text).translate(_same_form())).strip()


def splits_character(text: str, index: int) -> bool:
    """Whether cutting `text` before `index` would tear one user-perceived character.

    Errs on the side of keeping together. Source: UAX #29 extended grapheme clusters, approximated by the categories
    that the standard library knows.
    """
    if not 0 < index < len(text):
        return False
    before, after = text[index - 1], text[index]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if _extends(after) or unicodedata.category(after) == "Cf" or _is_jamo(after):
        return True
    if unicodedata.category(before) == "Cf" or _joins_consonants(text, index):
        return True
    if _is_jamo(before) and "가" <= after <= "힣":
        return True
    return _is_flag(after) and _flags_before(text, index) % 2 == 1


def _extends(character: str) -> bool:
    """Whether a character only goes with the one before it: marks, joiners, vowels that stand after, skin tones."""
    return (
        unicodedata.category(character)[0] == "M"
        or character in "\u200c\u200d\u0e33\u0eb3\uff9e\uff9f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


_VIRAMA = 9


def _joins_consonants(text: str, index: int) -> bool:
    """Whether one of the marks right before `index` is a virama, which ties the next letter to the last."""
    for place in range(index - 1, max(-1, index - 1 - MAX_CHARACTER), -1):
        if unicodedata.combining(text[place]) == _VIRAMA:
            return True
        if not _extends(text[place]):
            return False
    return False


def _is_jamo(character: str) -> bool:
    return "\u1100" <= character <= "\u11ff" or "\ua960" <= character <= "\ua97c" or "\ud7b0" <= character <= "\ud7fb"


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, index: int) -> int:
    start = index
    while start > max(0, index - 4 * MAX_CHARACTER) and _is_flag(text[start - 1]):
        start -= 1
    return index - start


def cut_before(text: str, index: int) -> int:
    """The nearest place at or before `index` that tears no character; `index` if there is none within reach."""
    for place in range(index, max(0, index - MAX_CHARACTER), -1):
        if not splits_character(text, place):
            return place
    return index


_WORD = re.compile(r"\w+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_MAX_TERMS = 64
_MAX_MATCHES = 2_000


def _terms(query: str) -> list[str]:
    """Words of the query, longest first; text written without spaces as overlapping pairs."""
    words = _WORD.findall(query[:4_000])
    spaced = [word for word in words if not _UNSPACED.search(word)]
    pairs = [word[i : i + 2] for word in words if _UNSPACED.search(word) for i in range(max(1, len(word) - 1))]
    return sorted({term.casefold() for term in (*spaced, *pairs)}, key=lambda term: (-len(term), term))[:_MAX_TERMS]


def _matches(text: str, query: str) -> list[tuple[int, int, str]]:
    """Where words of the query occur, as (start, end, word), in order; at most the first 2,000."""
    terms = _terms(query)
    if not terms:
        return []
    alternatives = (re.escape(term) if _UNSPACED.search(term) else rf"\b{re.escape(term)}" for term in terms)
    pattern = re.compile("|".join(alternatives), re.IGNORECASE)
    found = zip(range(_MAX_MATCHES), pattern.finditer(text), strict=False)
    return [(match.start(), match.end(), match[0].casefold()) for _, match in found]


def _best_window(matches: Sequence[tuple[int, int, str]], length: int) -> tuple[int, int]:
    """First and last position of the stretch of at most `length` that holds most different words, by their letters."""
    best, best_span, counts, weight, first = -1, (0, 0), dict[str, int](), 0, 0
    for _, end, word in matches:
        counts[word] = counts.get(word, 0) + 1
        weight += len(word) if counts[word] == 1 else 0
        while end - matches[first][0] > length and matches[first][1] < end:
            gone = matches[first][2]
            counts[gone] -= 1
            weight -= len(gone) if counts[gone] == 0 else 0
            first += 1
        if weight > best:
            best, best_span = weight, (matches[first][0], end)
    return best_span


def _word_edge(text: str, index: int, *, step: int, reach: int = 24) -> int:
    """The nearest word boundary from `index` in direction `step`, else a place that tears no character."""
    for place in range(index, index + step * reach, step):
        if not 0 < place < len(text):
            return max(0, min(len(text), place))
        if text[place].isspace() or text[place - 1].isspace():
            return place
    return cut_before(text, index)


def snippet(text: str, query: str, *, length: int = 240) -> str:
    """The part of `text` that best shows the words of `query`, at most `length` characters, spaces collapsed.

    Cut at word boundaries and marked with `…` where text is left out; the beginning if no word occurs.
    Errors: ValueError for a length below 20.
    """
    if length < 20:
        raise ValueError(f"length is {length}, expected at least 20")
    if len(text) <= length:
        return _SPACES.sub(" ", text).strip()
    room = length - 2
    first, last = _best_window(_matches(text, query), room)
    start = max(0, min(first - (room - (last - first)) // 2, len(text) - room))
    start = _word_edge(text, start, step=1) if start else 0
    if start > first:
        start = cut_before(text, first)
    end = len(text) if start + room >= len(text) else _word_edge(text, start + room, step=-1)
    inner = _SPACES.sub(" ", text[start:end]).strip()
    return ("…" if start else "") + inner + ("…" if end < len(text) else "")
