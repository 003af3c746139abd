"""Which people, companies, projects... a text is about, in the organization's own words first."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graph_mem.core.model import EntityRole
from graph_mem.core.segments import Span, speaker
from graph_mem.core.text import name_key
from graph_mem.core.vocabulary import Term, Vocabulary
from graph_mem.models.cues import Candidate, CueRecognizer, Recognizer
from graph_mem.models.speakers import PERSON, speakers
from graph_mem.models.terms import TermIndex

_INLINE_CHARACTERS = 4_000
_MAX_ENTITIES = 200
_TOPIC_MENTIONS = 3
_KEPT_INDEXES = 64
_NOWHERE = Span(0, 0)
_FIRST_SENTENCE = re.compile(r"\A\W*(?:(?:The|A|An|Our|Der|Die|Das)\s+)?")


@dataclass(frozen=True, slots=True)
class Found:
    """One entity of a text. `spans` are the places where it stands, in order; none when only the title names it."""

    name: str
    label: str
    role: EntityRole
    aliases: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """The entities of a text, those that matter most first; no two of one label share a name."""

    entities: tuple[Found, ...] = ()


class Extractor:
    """The vocabulary's terms, the speakers of a transcript, and what `recognizer` adds where these leave room.

    Roles: PARTICIPANT speaks; TOPIC is in the title, begins the text, or stands there three times; else MENTIONED.
    """

    def __init__(self, recognizer: Recognizer | None = None) -> None:
        self._recognizer = recognizer or CueRecognizer()
        self._indexes: OrderedDict[int, tuple[Vocabulary, TermIndex]] = OrderedDict()

    async def extract(self, text: str, *, title: str | None = None, vocabulary: Vocabulary) -> Extraction:
        """The entities of `text`, off the event loop unless it is short and the rules are ours."""
        if len(text) <= _INLINE_CHARACTERS and isinstance(self._recognizer, CueRecognizer):
            return self.read(text, title=title, vocabulary=vocabulary)
        return await asyncio.to_thread(self.read, text, title=title, vocabulary=vocabulary)

    def read(self, text: str, *, title: str | None = None, vocabulary: Vocabulary) -> Extraction:
        """The entities of `text`, blocking."""
        title = title or ""
        labels = vocabulary.entity_labels
        terms = self._index(vocabulary)
        speaking = speakers(text, terms) if PERSON in labels else {}
        known = _found(terms, text=text, title=title)
        candidates = [Candidate(span, name, PERSON) for name, spans in speaking.items() for span in spans]
        candidates += self._recognized(text, known, labels=labels)
        if title:
            candidates += [replace(one, span=_NOWHERE) for one in self._recognizer.recognize(title, labels=labels)]
        new = _found_anew(candidates, known, vocabulary, text=text, title=title)
        return Extraction(_ranked([_with_role(one, speaking, text) for one in (*known, *new)])[:_MAX_ENTITIES])

    def _recognized(self, text: str, known: Sequence[Found], *, labels: Sequence[str]) -> list[Candidate]:
        """What the recognizer names outside the places of the vocabulary's own terms."""
        taken = {place for found in known for span in found.spans for place in range(span.start, span.end)}
        candidates = self._recognizer.recognize(text, labels=labels)
        return [one for one in candidates if taken.isdisjoint(range(one.span.start, one.span.end))]

    def _index(self, vocabulary: Vocabulary) -> TermIndex:
        """The index of `vocabulary`, kept while the same object comes back: settings are cached by their version."""
        kept = self._indexes.get(id(vocabulary))
        if kept is not None and kept[0] is vocabulary:
            return kept[1]
        index = TermIndex(vocabulary)
        self._indexes[id(vocabulary)] = (vocabulary, index)
        if len(self._indexes) > _KEPT_INDEXES:
            self._indexes.popitem(last=False)
        return index


def _found(index: TermIndex, *, text: str, title: str) -> list[Found]:
    """The terms that occur, as TOPIC when the title names them; other roles are decided later."""
    spans: dict[Term, list[Span]] = {use.term: [] for use in index.uses(title)}
    titled = set(spans)
    for use in index.uses(text):
        spans.setdefault(use.term, []).append(use.span)
    roles = {term: EntityRole.TOPIC if term in titled else EntityRole.MENTIONED for term in spans}
    return [Found(term.name, term.label, roles[term], term.aliases, tuple(at)) for term, at in spans.items()]


def _found_anew(
    candidates: Sequence[Candidate], known: Sequence[Found], vocabulary: Vocabulary, *, text: str, title: str
) -> list[Found]:
    """The candidates that are not `known`, under the first label each name was given, wherever the text has them."""
    taken = {(name_key(found.name), found.label) for found in known}
    firsts: dict[str, Term] = {}
    places: dict[Term, list[Span]] = {}
    for one in candidates:
        key = name_key(one.name)
        if (key, one.label) not in taken:
            term = firsts.setdefault(key, Term(one.name, one.label))
            places.setdefault(term, []).extend([one.span] if one.span != _NOWHERE and term.label == one.label else [])
    found = {one.name: one for one in _found(_index_of(vocabulary, firsts.values()), text=text, title=title)}
    for term, spans in places.items():
        one = found.get(term.name, Found(term.name, term.label, EntityRole.MENTIONED))
        found[term.name] = replace(one, spans=tuple(sorted({*one.spans, *spans}, key=lambda span: span.start)))
    return list(found.values())


def _index_of(vocabulary: Vocabulary, terms: Iterable[Term]) -> TermIndex:
    return TermIndex(replace(vocabulary, terms=tuple(terms)))


def _with_role(found: Found, speaking: dict[str, list[Span]], text: str) -> Found:
    if found.label == PERSON and found.name in speaking:
        return replace(found, role=EntityRole.PARTICIPANT)
    if found.role is EntityRole.TOPIC or len(found.spans) >= _TOPIC_MENTIONS or _begins(text, found):
        return replace(found, role=EntityRole.TOPIC)
    return found


def _begins(text: str, found: Found) -> bool:
    """Whether the first sentence has the entity as its subject; what a speaker says has the speaker."""
    opening = _FIRST_SENTENCE.match(text)
    return bool(opening and found.spans and found.spans[0].start == opening.end() and speaker(text) is None)


def _ranked(found: list[Found]) -> tuple[Found, ...]:
    order = (EntityRole.PARTICIPANT, EntityRole.TOPIC, EntityRole.MENTIONED)
    return tuple(sorted(found, key=lambda one: (order.index(one.role), -len(one.spans), one.name, one.label)))
