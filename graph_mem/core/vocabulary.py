"""The organization's own words: memory labels, entity labels and terms, relation names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from graph_mem.core.model import SUPERSEDES
from graph_mem.errors import InvalidInput

_NAME = re.compile(r"[^\W\d_][\w.\- ]{0,63}")
_FACT = "fact"


@dataclass(frozen=True, slots=True)
class Label:
    """What kind of memory. `half_life_days` None: never fades. `floor` is the least strength, 0..1."""

    name: str
    position: bool = False
    protected: bool = False
    default_importance: float = 0.5
    half_life_days: float | None = 90.0
    floor: float = 0.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == _FACT:
            raise InvalidInput(
                f"Label {self.name[:80]!r}: expected 1 to 64 letters, digits, '_', '-', '.' or spaces, first a letter,"
                f" and not {_FACT!r}.",
                path=("labels",),
            )
        for what, value in (("defaultImportance", self.default_importance), ("floor", self.floor)):
            if not 0 <= value <= 1:
                raise InvalidInput(f"Label {self.name!r}: {what} is {value}, expected 0 to 1.", path=("labels",))
        if self.half_life_days is not None and not 0 < self.half_life_days <= 36_500:
            raise InvalidInput(
                f"Label {self.name!r}: halfLifeDays is {self.half_life_days}, expected more than 0 and at most 36500.",
                path=("labels",),
            )


@dataclass(frozen=True, slots=True)
class Term:
    """A name that the organization uses, of one of its entity labels, with its other spellings."""

    name: str
    label: str
    aliases: tuple[str, ...] = ()
    meaning: str | None = None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every word an organization defines. Labels are kept by name, in the order they were defined."""

    labels: Mapping[str, Label]
    entity_labels: tuple[str, ...]
    terms: tuple[Term, ...] = ()
    relation_kinds: tuple[str, ...] = ()
    many_relations: tuple[str, ...] = field(default=())

    def label(self, name: str, *, path: str = "label") -> Label:
        """The definition of `name`; InvalidInput for a label the organization does not have."""
        found = self.labels.get(name)
        if found is None:
            known = ", ".join(self.labels)
            raise InvalidInput(f"Unknown label {name[:80]!r}; this organization has: {known}.", path=(path,))
        return found

    def check_kind(self, kind: str) -> None:
        """Refuse a relation name that the organization does not have."""
        if kind != SUPERSEDES and kind not in self.relation_kinds:
            known = ", ".join((SUPERSEDES, *self.relation_kinds))
            raise InvalidInput(f"Unknown relation kind {kind[:80]!r}; this organization has: {known}.", path=("kind",))


def _defaults(*labels: Label) -> dict[str, Label]:
    return {label.name: label for label in labels}


DEFAULT = Vocabulary(
    labels=_defaults(
        Label("note"),
        Label("observation", default_importance=0.4, half_life_days=60.0),
        Label("insight", default_importance=0.6, half_life_days=180.0),
        Label("meeting_summary", default_importance=0.5, half_life_days=30.0),
        Label("transcript", default_importance=0.4, half_life_days=60.0),
        Label("document", default_importance=0.6, half_life_days=365.0),
        Label("requirement", default_importance=0.7, half_life_days=365.0),
        Label("decision", position=True, default_importance=0.8, half_life_days=None),
        Label("preference", position=True, default_importance=0.6, half_life_days=None),
        Label("rejection", position=True, default_importance=0.6, half_life_days=None),
        Label("architecture_decision", protected=True, default_importance=0.9, half_life_days=None, floor=0.8),
        Label("framework", protected=True, default_importance=0.9, half_life_days=None, floor=0.8),
        Label("playbook", protected=True, default_importance=0.9, half_life_days=None, floor=0.8),
    ),
    entity_labels=("person", "company", "project", "product", "place"),
    relation_kinds=("relates_to", "supports", "contradicts", "derived_from", "part_of", "blocks"),
)


def check_names(names: Sequence[str], *, path: str) -> None:
    """Refuse names that are empty, longer than 200 characters or hold control characters."""
    for name in names:
        if not name.strip() or len(name) > 200 or any(ord(character) < 32 for character in name):
            raise InvalidInput(f"{name[:80]!r}: expected 1 to 200 characters without control characters.", path=(path,))


def with_terms(vocabulary: Vocabulary, terms: Sequence[Term]) -> Vocabulary:
    """`vocabulary` with `terms` added, each replacing one of the same name."""
    for term in terms:
        check_names((term.name, *term.aliases), path="entityTerms")
        if term.label not in vocabulary.entity_labels:
            known = ", ".join(vocabulary.entity_labels)
            raise InvalidInput(
                f"Term {term.name!r} has the entity label {term.label!r}; this organization has: {known}.",
                path=("entityTerms",),
            )
    kept = {term.name: term for term in vocabulary.terms} | {term.name: term for term in terms}
    return replace(vocabulary, terms=tuple(kept.values()))


@dataclass(frozen=True, kw_only=True)
class LabelChange:
    """New values of one label, by name; None leaves a value, or the default of a new label, as it is.

    `never_fades` takes the half-life away.
    """

    name: str
    position: bool | None = None
    protected: bool | None = None
    default_importance: float | None = None
    half_life_days: float | None = None
    never_fades: bool = False
    floor: float | None = None


@dataclass(frozen=True, kw_only=True)
class VocabularyChange:
    """What to put in and take out of a vocabulary; None leaves a part unchanged."""

    labels: tuple[LabelChange, ...] = ()
    remove_labels: tuple[str, ...] = ()
    entity_labels: tuple[str, ...] | None = None
    terms: tuple[Term, ...] = ()
    remove_terms: tuple[str, ...] = ()
    relation_kinds: tuple[str, ...] | None = None
    many_relations: tuple[str, ...] | None = None

    def summary(self) -> dict[str, list[str]]:
        """The names it touches, for the history."""
        named = {
            "labels": [label.name for label in self.labels],
            "removedLabels": list(self.remove_labels),
            "entityLabels": list(self.entity_labels or ()),
            "terms": [term.name for term in self.terms],
            "removedTerms": list(self.remove_terms),
            "relationKinds": list(self.relation_kinds or ()),
            "manyRelations": list(self.many_relations or ()),
        }
        return {name: names for name, names in named.items() if names}


def changed(vocabulary: Vocabulary, change: VocabularyChange) -> Vocabulary:
    """`vocabulary` after `change`.

    Errors: InvalidInput for a value that is out of range, a name to remove that is not there, the last label, or an
    entity label that a term still has.
    """
    labels = dict(vocabulary.labels)
    for label in change.labels:
        values = {name: value for name in _LABEL_VALUES if (value := getattr(label, name)) is not None}
        values |= {"half_life_days": None} if label.never_fades else {}
        labels[label.name] = replace(labels.get(label.name) or Label(label.name), **values)
    for name in change.remove_labels:
        if labels.pop(name, None) is None:
            raise InvalidInput(f"There is no label {name[:80]!r} to remove.", path=("removeLabels",))
    if _DEFAULT_LABEL not in labels:
        raise InvalidInput(
            f"The label {_DEFAULT_LABEL!r} cannot be removed: captures without a label have it.", path=("removeLabels",)
        )
    terms = {term.name: term for term in vocabulary.terms}
    for name in change.remove_terms:
        if terms.pop(name, None) is None:
            raise InvalidInput(f"There is no term {name[:80]!r} to remove.", path=("removeEntityTerms",))
    check_names(change.entity_labels or (), path="entityLabels")
    check_names(change.relation_kinds or (), path="relationKinds")
    check_names(change.many_relations or (), path="manyRelations")
    if SUPERSEDES in (change.relation_kinds or ()):
        raise InvalidInput(f"{SUPERSEDES} is always there, with a meaning of its own.", path=("relationKinds",))
    made = Vocabulary(
        labels=labels,
        entity_labels=_or(change.entity_labels, vocabulary.entity_labels),
        relation_kinds=_or(change.relation_kinds, vocabulary.relation_kinds),
        many_relations=_or(change.many_relations, vocabulary.many_relations),
    )
    return with_terms(made, (*terms.values(), *change.terms))


_DEFAULT_LABEL = "note"
_LABEL_VALUES = ("position", "protected", "default_importance", "half_life_days", "floor")


def _or(given: tuple[str, ...] | None, present: tuple[str, ...]) -> tuple[str, ...]:
    return present if given is None else tuple(dict.fromkeys(given))
