"""Claims by rules: English sentences that plainly state something of a name. Few, and seldom wrong."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graph_mem.core.names import STOP_WORDS
from graph_mem.core.segments import Segment, Span, segments
from graph_mem.core.text import name_key
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.models.claims import StatedClaim, distinct
from graph_mem.models.extractor import Extractor
from graph_mem.models.speakers import HEADINGS, PERSON, speakers
from graph_mem.models.terms import TermIndex

_INLINE_CHARACTERS = 4_000
_MAX_CHARACTERS = 200_000
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|\Z|[\"'”’)])[^.!?\n]*)*(?:[.!?]+[\"'”’)]*|\n|\Z)")
_ABBREVIATED = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Inc|Ltd|Co|Corp|No|vs|approx|e\.g|i\.e|etc|[A-Z])\.\Z")
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|might|could|may|would|should|will|shall|must|seems?|seemed|probably|possibly|apparently|likely"
    r"|allegedly|supposedly|reportedly|hopefully|rumou?red?|if|unless|whether|hopes?|hoped|wants?|wanted|wishes|wished"
    r"|plans?|planned|thinks?|thought|believes?|believed|guess(?:es)?|expects?|expected|considers?|considering|intends?"
    r"|about to|going to|used to|no longer|almost|nearly|can)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|neither|nor|without|hardly|cannot)\b|n['’]t\b", re.IGNORECASE
)
_PERSONAL = re.compile(r"\b(?:I|me|my|mine|we|us|our|ours|you|your|yours)\b|\b(?:I|we|you)['’]", re.IGNORECASE)
_POINTING = re.compile(
    r"\A(?:it|this|that|these|those|them|they|he|she|him|her|there|here|one|so|very|just|really|too)\b", re.IGNORECASE
)
_WORDS = (3, 40)

_POSTS = (
    r"(?:chief \w+ officer|CEO|CTO|CFO|COO|CIO|VP|vice president|president|chair(?:man|woman|person)?|director"
    r"|manager|lead|head|engineer|developer|designer|architect|analyst|consultant|lawyer|founder|co-founder|owner|editor|professor"
    r"|teacher|nurse|doctor|accountant|assistant|secretary|treasurer|partner|sponsor|contact)"
)
_UP = "A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ"
_SUBJECT = rf"(?:[Tt]he )?(?P<subject>[{_UP}0-9][\w.+&/’'-]*(?: (?:of|de|van|von|der|&)? ?[{_UP}0-9][\w.+&/-]*){{0,4}})"
_ATTRIBUTE = r"(?P<attribute>[A-Za-z][A-Za-z-]*(?: [a-z][a-z-]*){0,2})"
_POST = rf"(?P<object>(?:the |a |an )?(?:\w+ ){{0,3}}?{_POSTS}\b.*)"
_OBJECT = r"(?P<object>\S.*)"


@dataclass(frozen=True, slots=True)
class _Rule:
    """`relation` is the name under which it is filed; None takes the matched attribute."""

    relation: str | None
    confidence: float
    pattern: re.Pattern[str]


def _rule(relation: str | None, confidence: float, pattern: str) -> _Rule:
    return _Rule(relation, confidence, re.compile(rf"{pattern}\Z"))


def _verb(relation: str, words: str, confidence: float = 0.7) -> _Rule:
    return _rule(
        relation, confidence, rf"{_SUBJECT} (?:currently |now |mainly |usually |always )?(?:{words}) {_OBJECT}"
    )


RULES = (
    _rule(None, 0.8, rf"{_SUBJECT}['’]s {_ATTRIBUTE} (?:is|are) {_OBJECT}"),
    _rule(None, 0.8, rf"[Tt]he {_ATTRIBUTE} of {_SUBJECT} (?:is|are) {_OBJECT}"),
    _verb("works at", r"works (?:at|for)|is employed (?:at|by)"),
    _verb("works as", r"works as"),
    _verb("lives in", r"lives (?:in|at)"),
    _verb("moved to", r"(?:has )?moved to"),
    _verb("located in", r"(?:is|are) (?:based|located|headquartered|situated) (?:in|at|near)"),
    _verb("founded", r"was (?:founded|established|started) (?:in|by|on)"),
    _verb("reports to", r"reports to"),
    _verb("belongs to", r"belongs to|is owned by|is part of"),
    _verb("married to", r"is married to"),
    _rule("role", 0.8, rf"{_SUBJECT} is {_POST}"),
    _rule("role", 0.8, rf"{_SUBJECT} (?:has )?(?:became|was appointed|was promoted to|is now) {_POST}"),
    _verb("is a", r"is(?= (?:a|an|the) )|are(?= (?:a|an|the) )", 0.6),
    _verb("was a", r"was(?= (?:a|an|the) )|were(?= (?:a|an|the) )", 0.4),
    _verb("costs", r"costs?|is priced at"),
    _verb("uses", r"uses?|is built (?:on|with)|is written in"),
    _verb("runs on", r"runs? on"),
    _verb("depends on", r"depends? on|relies on|rely on"),
    _verb("requires", r"requires?|needs"),
    _verb("supports", r"supports?"),
    _verb("prefers", r"prefers?"),
    _verb("owns", r"owns?"),
    _verb("leads", r"leads?|heads|manages|runs"),
    _verb("sells", r"sells?|offers?"),
    _verb("acquired", r"(?:has )?acquired|bought"),
    _verb("has", r"has|have", 0.5),
    _verb("includes", r"includes?|contains?|consists? of"),
    _verb("starts", r"starts? (?:on|in|at)|begins? (?:on|in|at)|opens? (?:on|in|at)", 0.6),
    _verb("ends", r"ends? (?:on|in|at)|expires? (?:on|in|at)|is due (?:on|in|by)", 0.6),
)

_THIRD_PERSON = (
    (re.compile(r"\AI(?:['’]m| am) "), "is "),
    (re.compile(r"\AI have "), "has "),
    (
        re.compile(
            r"\AI(?=(?: (?:currently|now|always|usually|mainly))? (?:live|work|use|prefer|own|lead|manage|need)\b)"
        ),
        "",
    ),
    (re.compile(r"\AI moved "), "moved "),
)
_FIRST_VERB = re.compile(r"\b(live|work|use|prefer|own|lead|manage|need)\b")


class RuleClaims:
    """The default extractor: an attribute, a copula or one of some thirty verbs after a known or plain name.

    Left out are questions, guesses, wishes, plans, negations, what points elsewhere ("it", "my"), and what is said
    in the first person, unless a speaker label tells who says it.
    """

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def claims(self, text: str, *, vocabulary: Vocabulary) -> tuple[StatedClaim, ...]:
        text = text[:_MAX_CHARACTERS]
        if len(text) <= _INLINE_CHARACTERS:
            return self.read(text, vocabulary=vocabulary)
        return await asyncio.to_thread(self.read, text, vocabulary=vocabulary)

    def read(self, text: str, *, vocabulary: Vocabulary) -> tuple[StatedClaim, ...]:
        """The claims of `text`, blocking."""
        entities = self._extractor.read(text, vocabulary=vocabulary).entities
        names = {name_key(name): one.name for one in entities for name in (one.name, *one.aliases)}
        people = speakers(text, TermIndex(vocabulary)) if PERSON in vocabulary.entity_labels else {}
        labels = {span.start: name for name, spans in people.items() for span in spans}
        found = [claim for turn in segments(text) for claim in _claims_of(text, turn, names=names, labels=labels)]
        return distinct(found)


def _claims_of(text: str, turn: Segment, *, names: Mapping[str, str], labels: dict[int, str]) -> Iterator[StatedClaim]:
    who, start = None, turn.start
    if turn.speaker is not None:
        place = text.index(turn.speaker, turn.start)
        who, start = labels.get(place), place + len(turn.speaker)
        start += len(text[start : turn.end]) - len(text[start : turn.end].lstrip(":：*)] \t"))
    for span in _sentences(text, Span(start, turn.end)):
        claim = _claim(text[span.start : span.end], span, who=who, names=names)
        if claim is not None:
            yield claim


def _sentences(text: str, within: Span) -> Iterator[Span]:
    """Sentences without surrounding space, in order; an abbreviation's stop ends none."""
    start: int | None = None
    for match in _SENTENCE.finditer(text, within.start, within.end):
        start = match.start() if start is None else start
        if _ABBREVIATED.search(text, start, match.end()) and match.end() < within.end:
            continue
        piece = text[start : match.end()]
        if stripped := piece.strip():
            begin = start + piece.index(stripped)
            yield Span(begin, begin + len(stripped))
        start = None


def _claim(sentence: str, span: Span, *, who: str | None, names: Mapping[str, str]) -> StatedClaim | None:
    plain = sentence.rstrip(".!")
    if plain.endswith("?") or not _WORDS[0] <= len(plain.split()) <= _WORDS[1]:
        return None
    if who is not None:
        plain, names = _by_name(plain, who), {**names, name_key(who): who}
    if _UNSURE.search(plain) or _NEGATED.search(plain) or _PERSONAL.search(plain):
        return None
    for rule in RULES:
        match = rule.pattern.match(plain)
        if match is not None and (subject := _subject(match["subject"], names)) and _is_telling(match["object"]):
            relation = rule.relation or match["attribute"]
            return StatedClaim(subject, relation, plain + ".", span, rule.confidence)
    return None


def _by_name(sentence: str, who: str) -> str:
    """What `who` says of themselves, in the third person: "I live in Rome" is "Ana lives in Rome"."""
    for pattern, verb in _THIRD_PERSON:
        if pattern.match(sentence):
            told = pattern.sub(f"{who} {verb}".rstrip() + (" " if verb else ""), sentence, count=1)
            return told if verb else _FIRST_VERB.sub(r"\1s", told, count=1)
    return sentence


def _subject(name: str, names: Mapping[str, str]) -> str | None:
    """The name that a claim is filed under: a known one, or one of several words that all are capitalized."""
    key = name_key(name)
    if key in names:
        return names[key]
    words = name.split()
    if len(words) < 2 or not words[0][0].isupper():
        return None
    first = words[0].lower()
    return None if first in STOP_WORDS or first in HEADINGS else name


def _is_telling(object: str) -> bool:
    return _POINTING.match(object) is None and any(character.isalnum() for character in object)
