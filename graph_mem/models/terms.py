"""Where a text uses the organization's own words."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graph_mem.core.names import Unit, stands_alone, units
from graph_mem.core.segments import Span
from graph_mem.core.vocabulary import Term, Vocabulary

_SHORT = 4
_ALSO_WORDS = """
amber amazon apple april art august bill bob box buffer case chase christian crystal dawn dean drew faith frank gap gene
go grace grant gray guy hazel hope hunter ivy jack jasmine joy june lance lily linear mark may mercy meta miles monday
more nick notion olive orange oracle pat penny rich robin rose ruby rust shell sky slack square stone stripe sue summer
swift target teams victor visa will wise wolf young zoom
"""
_WORDS = frozenset(_ALSO_WORDS.split())


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way to write a term. A short acronym, or a name that is also a word, counts only in capitals.

    So `IT` is not found in "it", nor `Will` in "will"; `Acme` is found in "acme".
    """

    keys: tuple[str, ...]
    written: str
    term: Term

    @property
    def exact(self) -> bool:
        if len(self.keys) != 1 or self.written.islower():
            return False
        return self.keys[0] in _WORDS or (self.written.isupper() and len(self.written) <= _SHORT)

    def fits(self, surface: str) -> bool:
        return not self.exact or surface == self.written or (surface.isupper() and not self.written.isupper())


@dataclass(frozen=True, slots=True)
class Use:
    """One place where a term stands."""

    span: Span
    term: Term


class TermIndex:
    """The terms of one vocabulary by their first word; longest spelling first, names before aliases."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        spellings = [*_spellings(vocabulary)]
        by_first: defaultdict[str, list[_Spelling]] = defaultdict(list)
        for spelling in sorted(spellings, key=lambda spelling: -len(spelling.keys)):
            by_first[spelling.keys[0]].append(spelling)
        self._by_first: Mapping[str, list[_Spelling]] = by_first

    def uses(self, text: str) -> list[Use]:
        """Every use of a term in `text`, in order, none inside another."""
        if not self._by_first:
            return []
        found: list[Use] = []
        words = units(text)
        place = 0
        while place < len(words):
            spelling = self._at(text, words, place)
            if spelling is None:
                place += 1
                continue
            last = place + len(spelling.keys)
            found.append(Use(Span(words[place].start, words[last - 1].end), spelling.term))
            place = last
        return found

    def named(self, name: str) -> Term | None:
        """The term that `name` is a spelling of."""
        uses = self.uses(name)
        return uses[0].term if len(uses) == 1 and uses[0].span == Span(0, len(name)) else None

    def _at(self, text: str, words: Sequence[Unit], place: int) -> _Spelling | None:
        for spelling in self._by_first.get(words[place].key, ()):
            last = place + len(spelling.keys)
            if last > len(words) or any(
                word.key != key for word, key in zip(words[place:last], spelling.keys, strict=True)
            ):
                continue
            start, end = words[place].start, words[last - 1].end
            if spelling.fits(text[start:end]) and stands_alone(text, start, end):
                return spelling
        return None


def _spellings(vocabulary: Vocabulary) -> list[_Spelling]:
    terms = [term for term in vocabulary.terms if term.label in vocabulary.entity_labels]
    written = [(term.name, term) for term in terms] + [(alias, term) for term in terms for alias in term.aliases]
    found = [_Spelling(tuple(unit.key for unit in units(name)), name.strip(), term) for name, term in written]
    return [spelling for spelling in found if spelling.keys]
