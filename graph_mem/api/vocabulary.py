"""The organization's own words: what they are, and changing them."""

from typing import Annotated

import strawberry

from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.nodes import After, Connection, First, connection, page_of
from graph_mem.api.session import Info
from graph_mem.core import vocabulary as core
from graph_mem.core.vocabulary import LabelChange, VocabularyChange
from graph_mem.services import settings
from graph_mem.store.settings import SettingsKind

_ORDER = "term.name"


@strawberry.type(description="What kind of memory.")
class LabelDef:
    name: str = strawberry.field(description="The label.")
    position: bool = strawberry.field(description="True for what someone committed to.")
    protected: bool = strawberry.field(description="True where age hardly counts.")
    default_importance: float = strawberry.field(description="Importance of a memory that is saved without one, 0..1.")
    half_life_days: float | None = strawberry.field(description="Null: never fades.")
    floor: float = strawberry.field(description="The least strength of such a memory, 0..1.")

    @classmethod
    def of(cls, label: core.Label) -> "LabelDef":
        return cls(
            name=label.name,
            position=label.position,
            protected=label.protected,
            default_importance=label.default_importance,
            half_life_days=label.half_life_days,
            floor=label.floor,
        )


@strawberry.type(description="A name that the organization uses, with its other spellings.")
class EntityTerm:
    name: str = strawberry.field(description="The name.")
    label: str = strawberry.field(description="What kind of thing it names.")
    aliases: list[str] = strawberry.field(description="Other spellings.")
    meaning: str | None = strawberry.field(description="What it stands for here.")

    @classmethod
    def of(cls, term: core.Term) -> "EntityTerm":
        return cls(name=term.name, label=term.label, aliases=list(term.aliases), meaning=term.meaning)


@strawberry.type(description="The organization's own words.")
class Vocabulary:
    version: int = strawberry.field(description="Counts its changes; give it as `expectedVersion`.")
    labels: list[LabelDef] = strawberry.field(description="Labels of memories.")
    entity_labels: list[str] = strawberry.field(description="Labels of entities.")
    relation_kinds: list[str] = strawberry.field(description="Names of relations between records.")
    many_relations: list[str] = strawberry.field(description="Fact relations that hold a set of values.")
    terms: strawberry.Private[tuple[core.Term, ...]]

    @strawberry.field(description="The names it knows, in order.")
    def entity_terms(self, first: First = 100, after: After = None) -> Connection[EntityTerm]:
        page = page_of(_ORDER, first=first, after=after, keys=(str,))
        ordered = sorted(self.terms, key=lambda term: term.name)
        rest = [term for term in ordered if page.after is None or term.name > page.after[0]]
        return connection(rest, page, order=_ORDER, keys=lambda term: (term.name,), node=EntityTerm.of)

    @classmethod
    def of(cls, vocabulary: core.Vocabulary, version: int) -> "Vocabulary":
        return cls(
            version=version,
            labels=[LabelDef.of(label) for label in vocabulary.labels.values()],
            entity_labels=list(vocabulary.entity_labels),
            relation_kinds=list(vocabulary.relation_kinds),
            many_relations=list(vocabulary.many_relations),
            terms=vocabulary.terms,
        )


@strawberry.input(description="A label to add or change; what is left out stays, or is the default.")
class LabelInput:
    name: str = strawberry.field(description="Which label.")
    position: bool | None = strawberry.field(default=None, description="True for what someone committed to.")
    protected: bool | None = strawberry.field(default=None, description="True where age hardly counts.")
    default_importance: float | None = strawberry.field(default=None, description="0..1.")
    half_life_days: float | None = strawberry.field(
        default=strawberry.UNSET, description="Days in which freshness halves; null: never fades."
    )
    floor: float | None = strawberry.field(default=None, description="The least strength, 0..1.")

    def change(self) -> LabelChange:
        given = self.half_life_days is not strawberry.UNSET
        return LabelChange(
            name=self.name,
            position=self.position,
            protected=self.protected,
            default_importance=self.default_importance,
            half_life_days=self.half_life_days if given else None,
            never_fades=given and self.half_life_days is None,
            floor=self.floor,
        )


@strawberry.input(description="A name to add, or to replace by name.")
class EntityTermInput:
    name: str = strawberry.field(description="The name.")
    label: str = strawberry.field(description="One of the organization's entity labels.")
    aliases: list[str] = strawberry.field(default_factory=list[str], description="Other spellings.")
    meaning: str | None = strawberry.field(default=None, description="What it stands for here.")


@strawberry.input(description="Upserts by name; left out: unchanged.")
class UpdateVocabularyInput:
    expected_version: int = strawberry.field(description="The version this change was made from.")
    labels: list[LabelInput] | None = strawberry.field(default=None, description="Labels to add or change.")
    remove_labels: list[str] | None = strawberry.field(default=None, description="Labels to remove.")
    entity_labels: list[str] | None = strawberry.field(default=None, description="All labels of entities, anew.")
    entity_terms: list[EntityTermInput] | None = strawberry.field(default=None, description="Names to add or change.")
    remove_entity_terms: list[str] | None = strawberry.field(default=None, description="Names to remove.")
    relation_kinds: list[str] | None = strawberry.field(default=None, description="All names of relations, anew.")
    many_relations: list[str] | None = strawberry.field(
        default=None, description="All fact relations that hold a set of values, anew."
    )

    def change(self) -> VocabularyChange:
        return VocabularyChange(
            labels=tuple(label.change() for label in self.labels or ()),
            remove_labels=tuple(self.remove_labels or ()),
            entity_labels=None if self.entity_labels is None else tuple(self.entity_labels),
            terms=tuple(
                core.Term(term.name, term.label, tuple(term.aliases), term.meaning) for term in self.entity_terms or ()
            ),
            remove_terms=tuple(self.remove_entity_terms or ()),
            relation_kinds=None if self.relation_kinds is None else tuple(self.relation_kinds),
            many_relations=None if self.many_relations is None else tuple(self.many_relations),
        )


@strawberry.type(description="What became of a change of the vocabulary.")
class VocabularyPayload:
    vocabulary: Vocabulary | None = strawberry.field(description="The vocabulary; null exactly when there are errors.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


async def _read(info: Info) -> Vocabulary:
    deps, org_id = info.context.deps, info.context.principal.org_id
    found = await deps.settings.vocabulary(org_id)
    return Vocabulary.of(found, await deps.settings.version(org_id, SettingsKind.VOCABULARY))


@strawberry.type
class VocabularyQuery:
    @strawberry.field(description="The organization's own words.")
    async def vocabulary(self, info: Info) -> Vocabulary | None:
        return await _read(info)


@strawberry.type
class VocabularyMutation:
    @strawberry.mutation(description="Changes the organization's words; for owners and admins.")
    async def update_vocabulary(
        self, info: Info, input: Annotated[UpdateVocabularyInput, strawberry.argument(description="What to change.")]
    ) -> VocabularyPayload:
        change = input.change()
        changed, errors = await attempt(
            settings.update_vocabulary(
                info.context.deps,
                info.context.principal,
                expected_version=input.expected_version,
                change=lambda vocabulary: core.changed(vocabulary, change),
                detail=change.summary(),
            )
        )
        return VocabularyPayload(vocabulary=await _read(info) if changed else None, errors=errors)
