"""Letters of Latin, Greek, Cyrillic and Armenian script that look like an ASCII letter.

Derived from confusables.txt of Unicode Technical Standard #39 (Unicode 13, Unicode data files licence), with
three restrictions: only lower-case letters (text is case-folded first; a letter whose capital alone looks
Latin, such as Cyrillic en, is listed by its small form), ASCII letters keep apart (`rn` is not `m`, `1` is not
`l`), and Greek sigma is not an `o`. Frozen on purpose: it decides stored keys, so a library's
data release must not change it.
"""

from collections.abc import Mapping

_LETTERS = {
    "a": "ɑαа",
    "b": "ƅβвьꞵ",
    "c": "сᴄ",
    "d": "ԁ",
    "e": "εеҽꬲ",
    "f": "ϝքẝꞙꬵ",
    "g": "ƍɡԍցᶃ",
    "h": "ηнһհ",
    "i": "ıɩɪιіӏꙇ",
    "j": "ʝϳј",
    "k": "κк",
    "l": "ǀ",
    "m": "μϻм",
    "n": "ոռ",
    "o": "οоօᴏᴑꬽ",
    "p": "ρр",
    "q": "ԛգզ",
    "r": "ʀгᴦꭇꭈ",
    "s": "ƽѕտꜱ",
    "t": "τт",
    "u": "ʋυսᴜꞟꭎꭒ",
    "v": "νѵᴠ",
    "w": "ɯѡԝաᴡ",
    "x": "χхꭓ",
    "y": "ɣʏγуүᶌỿꭚ",
    "z": "ζᴢ",
}

ASCII_LOOKALIKES: Mapping[int, str] = {
    ord(letter): ascii_letter for ascii_letter, letters in _LETTERS.items() for letter in letters
}
"""Code point to the ASCII letter it looks like, for `str.translate`."""
