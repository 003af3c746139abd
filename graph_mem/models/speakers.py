"""Who speaks in a transcript: the label at the start of a turn, when it is a person."""

import re
from collections import Counter

from graph_mem.core.names import STOP_WORDS
from graph_mem.core.segments import Segment, Span, segments
from graph_mem.core.text import name_key
from graph_mem.models.terms import TermIndex

PERSON = "person"

_HEADINGS = """
a abstract account achtung action actions address advantage advantages agenda agent aim aims amount an analysis anhang
answer antwort appendix approach april architecture area article asset assistant assumption assumptions asunto
attachment attendees attention audience aufgabe aufgaben august author authors background bcc benefit benefits
beschluss betreff blocker blockers body bot budget bug business category cause caution caveat cc change changelog
changes chapter check checklist city class client code color comment comments company component conclusion conclusions
config cons constraint constraints contact contents context contract contribution contributions cost costs country
customer danger data date datum day deadline deal december decision decisions default definition deliverable
deliverables department dependencies description design details diagnosis disclaimer discussion document draft due
duration edit effect email encl end entscheidung environment ergebnis ergebnisse error estimate event evidence exam
example examples exception exemple expected explanation fact facts faq feature february fecha feedback figure file
finding findings fix follow-up followup footnote format frage fragen friday from fun funding goal goals guideline
guidelines heading headline help hint hinweis hinweise history host hypothesis id idea ideas image impact important in
info information input insight instruction instructions interest interpretation intervention interventions intro
introduction invoice issue issues item items january job journal july june key keyword keywords kind kunde label
language last lesson lessons level license limit limitation limitations link links list location log major march
measurement measurements measures meeting memo message metadata method methods metric milestone minutes mission mode
model module monday motivation name nb next non-goal nota note notes notice november number objective objectives objet
objetivo observation october open option options order ort other outcome output overview owner page part participants
password patients payment people person phone place plan plans point points policy position postscript price principal
principle priority problem process product progress project projekt pros protokoll ps purpose q quantity query
question questions quote rationale re reason recap recommendation reference references region rejection release
remarque reminder reply report request requirement requirements resolution resource response result results review
reviewer risk risks role room rule rules résumé sales sample saturday schedule scope section see sender september
session setting settings severity significance size slide solution source sources speaker spec stack stage stand start
state status step steps story strategy street subject suggestion sujet summary sunday support symptom system table tag
tags takeaway takeaways target task tasks team teilnehmer tema termin terms test text thema themen thesis threshold
thursday time tip tips titel title tldr to today todo tomorrow tool topic topics total transcript trial tuesday type
unit unlabeled unlabelled update updates uri url usage use user username value version via vision von vorschlag vote
warning warnung website wednesday week weight what when where who why wichtig workaround workflow year yesterday ziel
ziele zip zusammenfassung
"""
HEADINGS = frozenset(_HEADINGS.split())
"""Words that stand before a colon in notes and letters and name nobody."""

_SMALL = "van von der den de da di del della du la le al el bin ibn ben ter ten zu dos das y e"
PARTICLES = frozenset(_SMALL.split())
"""Small words inside names."""
_ALSO_NAMES = frozenset({"will", "may"})
_SENTENCE = re.compile(r"[.?!…。？！](?:[\"'”’)*]*(?:\s|\Z))")
_WORDS_OF_A_SENTENCE = 6
_MAX_WORDS = 3
_MAX_UNCASED = 12
_HONORIFIC = re.compile(r"\A(?:mr|mrs|ms|dr|prof|herr|frau)\.?\s+", re.IGNORECASE)


def speakers(text: str, terms: TermIndex) -> dict[str, list[Span]]:
    """The people who speak in `text`, by name, with the places of their labels.

    A label is a person when it is one to three capitalized words, neither a heading nor a term with another label,
    and speaks: several turns, or one that is a sentence (not in capitals, as headings are). The vocabulary's name
    stands for its aliases.
    """
    turns = [segment for segment in segments(text) if segment.speaker is not None]
    spoken = Counter(name_key(segment.speaker or "") for segment in turns)
    found: dict[str, list[Span]] = {}
    for turn in turns:
        name = _person(text, turn, terms=terms, turns=spoken)
        if name is not None:
            start = text.index(turn.speaker or "", turn.start)
            found.setdefault(name, []).append(Span(start, start + len(turn.speaker or "")))
    return found


def _person(text: str, turn: Segment, *, terms: TermIndex, turns: Counter[str]) -> str | None:
    label = turn.speaker or ""
    term = terms.named(label)
    if term is not None:
        return term.name if term.label == PERSON else None
    if not _is_name(label):
        return None
    once = turns[name_key(label)] == 1
    if once and (label.isupper() or not _speaks(text[turn.start : turn.end], label)):
        return None
    return label


def _is_name(label: str) -> bool:
    words = _HONORIFIC.sub("", label).split()
    if not 1 <= len(words) <= _MAX_WORDS or any(not _is_letters(word) for word in words):
        return False
    plain = {word.lower() for word in words} - PARTICLES - _ALSO_NAMES
    if plain & HEADINGS or plain & STOP_WORDS:
        return False
    if not any(word[0].isupper() or word[0].islower() for word in words):
        return len(label) <= _MAX_UNCASED
    return words[0][0].isupper() and all(word[0].isupper() or word in PARTICLES for word in words)


def _is_letters(word: str) -> bool:
    return all(character.isalpha() or character in ".'’-" or not character.isascii() for character in word)


def _speaks(turn: str, label: str) -> bool:
    said = turn.partition(label)[2].lstrip("*): ：").strip()
    return bool(_SENTENCE.search(said)) or len(said.split()) >= _WORDS_OF_A_SENTENCE
