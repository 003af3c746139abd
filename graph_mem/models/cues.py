"""Names recognized by what stands around them, without weights: few, and seldom wrong."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from graph_mem.core.names import STOP_WORDS, stands_alone
from graph_mem.core.segments import Span
from graph_mem.core.text import name_key
from graph_mem.models.speakers import HEADINGS


@dataclass(frozen=True, slots=True)
class Candidate:
    """A name as somebody recognized it in a text."""

    span: Span
    name: str
    label: str


class Recognizer(Protocol):
    """Finds names of the given entity labels. Blocking, and safe to call from two threads at once."""

    def recognize(self, text: str, *, labels: Sequence[str]) -> list[Candidate]: ...


Weight: TypeAlias = Literal[1, 2]

_U = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĘĚĞĢĪĶĹĽŁŃŇŐŒŘŚŞŠŤŪŮŰŹŻŽΑ-ΩА-ЯЁЂ-Џ"
_WORD = rf"[{_U}](?:[^\W\d_]|['’](?=[^\W\d_]{{2}})){{0,30}}(?:-[{_U}][^\W\d_]{{1,30}}){{0,2}}"
_SMALL = r"(?:van|von|der|den|de|da|di|del|della|du|al|el|bin|ben|zu)"
_NAME = rf"(?P<name>{_WORD}(?:[ ](?:{_SMALL}[ ]){{0,2}}{_WORD}){{0,3}})"
_FULL = rf"(?P<name>{_WORD}[ ](?:{_SMALL}[ ]){{0,2}}{_WORD}(?:[ ]{_WORD})?)"
_ONE = rf"(?P<name>{_WORD})"

_FIRM = rf"(?:{_WORD}|[A-Z0-9]{{2,12}})"
_LEGAL = (
    r"(?:GmbH(?: & Co\. KG)?|AG|SE|KG|OHG|UG|e\.V\.|Inc|Ltd|LLC|LLP|PLC|plc|Corp|Corporation|S\.A\.|"
    r"S\.p\.A\.|S\.r\.l\.|SARL|SAS|B\.V\.|N\.V\.|Oy|AB|ApS|A/S|Pty Ltd|K\.K\.|Holdings?)"
)
_HONORIFIC = r"(?:Mr|Mrs|Ms|Mx|Dr|Prof|Professor|Sir|Dame|Herr|Frau|Mme|Señora?|Signora?)"
_POST = (
    r"(?:CEO|CTO|CFO|COO|CIO|VP|president|chair(?:man|woman|person)?|director|manager|engineer|developer|designer|"
    r"architect|analyst|consultant|lawyer|attorney|professor|doctor|colleague|friend|wife|husband|brother|sister|"
    r"daughter|son|mother|father|boss|founder|co-founder|partner|neighbou?r|author|customer)"
)
_GREETING = r"(?:Hey|Hi|Hello|Thanks|Thank you|Bye|Goodbye|Congrats|Congratulations|Dear|Wow|Good morning|Cheers)"
_SAYS = (
    r"(?:said|says|told|asked|asks|wrote|writes|joined|joins|resigned|agreed|agrees|promised|thinks|believes|replied|"
    r"suggested|suggests|proposed|proposes|reported|reports|insisted|explained|mentioned|prefers|lives|lived|moved|"
    r"grew up|works (?:at|for|as|with|in)|worked (?:at|for|as|with|in)|was born|is married)"
)
_WORKS_AT = (
    r"(?:works?|worked|working|employed|job|hired|interned|CEO|CTO|CFO|founder|co-founder|director|manager|engineer)"
)
_WENT = (
    r"(?:lives?|lived|living|moved|moving|travell?ed|flew|flying|born|based|located|headquartered|office|trip|visit)"
)

_OTHER_CODES = """
utf iso sha rfc http https covid cve utc gmt ipv tls ssl ascii din en ieee mp h a b q fy no nr page pt
"""
_NOT_PRODUCTS = frozenset(_OTHER_CODES.split())
_SHARED_MAILBOXES = "info support sales noreply no-reply hello contact admin office help service mail team"
_MAILBOXES = frozenset(_SHARED_MAILBOXES.split())


@dataclass(frozen=True, slots=True)
class _Cue:
    """`pattern` names its find `name`. A cue of two points convinces by itself; of weak ones it takes three places."""

    label: str
    weight: Weight
    pattern: re.Pattern[str]


def _cue(label: str, weight: Weight, pattern: str) -> _Cue:
    return _Cue(label, weight, re.compile(pattern))


CUES = (
    _cue(
        "company",
        2,
        rf"\b(?P<name>{_FIRM}(?:(?: & | ){_FIRM}){{0,3}},? {_LEGAL})(?![\w-])",
    ),
    _cue("person", 2, rf"\b{_HONORIFIC}\.? {_NAME}"),
    _cue("person", 2, rf"\b{_POST},? {_FULL}"),
    _cue("person", 2, rf"\b{_FULL},? (?:our|the|my|a|an|their|his|her) (?:[a-z]+ ){{0,2}}{_POST}\b"),
    _cue("person", 2, rf"\b{_GREETING},? {_ONE}(?=[,!.?]|\s{{0,3}}$)"),
    _cue("person", 2, rf"\b{_FULL} {_SAYS}\b"),
    _cue("person", 1, rf"(?<=[^\W\d_] ){_ONE} {_SAYS}\b"),
    _cue("person", 1, rf"(?<=[,] ){_ONE}(?=[!?])"),
    _cue("person", 1, rf"\b(?:with|met|told|asked|called|thank|ask|tell|call|from|by) {_FULL}"),
    _cue("project", 2, rf"\b[Pp]roje[ck]t {_NAME}"),
    _cue("project", 2, rf"\b[Tt]he {_NAME} project\b"),
    _cue("company", 2, rf"\b{_WORKS_AT} (?:at|for) {_NAME}"),
    _cue("company", 1, rf"\b(?:at|for|with|from|by) {_NAME}(?='s (?:CEO|CTO|CFO|office|product|team|offer|price))"),
    _cue("place", 2, rf"\b{_WENT} (?:in|to|from|near|at) {_NAME}"),
    _cue("place", 2, r"\b(?P<name>(?:Lake|Mount|Port|Cape|Fort) [A-Z]\w+)"),
    _cue(
        "place",
        2,
        rf"\b(?P<name>{_WORD}(?: {_WORD})? (?:Street|Avenue|Road|Square|Airport|Station|River|Bridge|Island|Beach))\b",
    ),
    _cue("place", 1, rf"\b(?:in|near|to) {_NAME}"),
    _cue(
        "product",
        2,
        r"(?<![\w.@/#-])(?P<name>[A-Z]{1,6}[A-Z0-9]{0,6}-[A-Z0-9]{0,12}\d[A-Z0-9]{0,12}(?:-[A-Z0-9]{1,12}){0,3})(?![\w@/-])",
    ),
    _cue("person", 2, r"(?<![\w.+-])(?P<name>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})"),
    _cue(
        "company",
        2,
        r"\bhttps?://(?:www\.)?(?P<name>[a-z\d-]{1,63}(?:\.[a-z\d-]{1,63}){0,4}\.[a-z]{2,24})(?=[/:?#\s)>\"']|[.,]?\s|[.,]?$)",
    ),
)

_CALENDAR = """
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october
november december english german french spanish italian portuguese chinese japanese korean russian dutch polish american
british european indian african asian christmas easter god
der die das dem den des ein eine einer einem firma unternehmen kunde le la les un une el los las
"""
_NEVER_FIRST = STOP_WORDS | HEADINGS | frozenset(_CALENDAR.split())
_TITLED = frozenset({"person", "place"})
_TITLE_CASE = re.compile(rf"(?:Ma?c|[{_U}]['’])?[{_U}](?:[^\W\d_{_U}]|['’-][{_U}]?)+")
_ONLY_LEGAL = re.compile(_LEGAL)
_LONG_CODE = re.compile(r"(?=(?:.*\d){3})|.*-.*-")
_CROWDED = 0.25
_CAPITALIZED = re.compile(rf"(?<=[^\W\d_,;] )[{_U}][^\W\d_]+")
_ANY_WORD = re.compile(r"[^\W\d_]+")


class CueRecognizer:
    """The default `Recognizer`: suffixes, titles, greetings, verbs, addresses and part numbers. Mainly English."""

    def recognize(self, text: str, *, labels: Sequence[str]) -> list[Candidate]:
        weakest = 2 if _capitalizes_nouns(text) else 1
        cues = [cue for cue in CUES if cue.label in labels and cue.weight >= weakest]
        finds: defaultdict[str, list[tuple[Candidate, Weight]]] = defaultdict(list)
        for cue in cues:
            for candidate in _finds(text, cue):
                finds[name_key(candidate.name)].append((candidate, cue.weight))
        return [candidate for group in finds.values() for candidate in _convincing(group)]


def _finds(text: str, cue: _Cue) -> Iterator[Candidate]:
    for match in cue.pattern.finditer(text):
        start, end = match.span("name")
        is_address = "/" in match[0] or "@" in match[0]
        if not is_address:
            start, end = _trimmed(text, start, end)
        if _is_plausible(text[start:end], cue.label) and (is_address or stands_alone(text, start, end)):
            yield Candidate(Span(start, end), text[start:end], cue.label)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without the words in front that only begin a sentence: `The Acme GmbH`."""
    while (word := _ANY_WORD.match(text, start)) and word.end() < end and word[0].lower() in _NEVER_FIRST:
        start = word.end()
        while start < end and not text[start].isalnum():
            start += 1
    return start, end


def _is_plausible(name: str, label: str) -> bool:
    if "@" in name:
        return name.partition("@")[0].lower() not in _MAILBOXES
    if label == "product":
        return name.partition("-")[0].lower() not in _NOT_PRODUCTS and bool(_LONG_CODE.match(name))
    if len(name) < 2 or name.lower() in _NEVER_FIRST:
        return False
    if label == "company":
        return not _ONLY_LEGAL.fullmatch(name) and (name.count(".") <= 1 or not name.islower())
    return label not in _TITLED or all(_TITLE_CASE.fullmatch(word) for word in name.split() if not word.islower())


def _convincing(group: list[tuple[Candidate, Weight]]) -> list[Candidate]:
    """The finds of one name under the label that most speaks for, if it is enough and undisputed."""
    points: defaultdict[str, int] = defaultdict(int)
    for candidate, weight in {(candidate, weight) for candidate, weight in group}:
        points[candidate.label] += weight
    ranked = sorted(points.items(), key=lambda pair: -pair[1])
    strong = any(weight > 1 for candidate, weight in group if candidate.label == ranked[0][0])
    disputed = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
    if disputed or ranked[0][1] < (2 if strong else 3):
        return []
    return list({candidate.span: candidate for candidate, _ in group if candidate.label == ranked[0][0]}.values())


def _capitalizes_nouns(text: str) -> bool:
    """Whether capitals say little here, as in German or in headings."""
    words = len(_ANY_WORD.findall(text[:20_000]))
    return len(_CAPITALIZED.findall(text[:20_000])) > _CROWDED * max(words, 1)
