"""A vocabulary as the JSON it is stored in."""

from collections.abc import Mapping
from typing import Any

from graph_mem.core.vocabulary import DEFAULT, Label, Term, Vocabulary


def vocabulary_payload(vocabulary: Vocabulary) -> dict[str, Any]:
    """`vocabulary` as plain JSON values."""
    return {
        "labels": [
            {
                "name": label.name,
                "position": label.position,
                "protected": label.protected,
                "defaultImportance": label.default_importance,
                "halfLifeDays": label.half_life_days,
                "floor": label.floor,
            }
            for label in vocabulary.labels.values()
        ],
        "entityLabels": list(vocabulary.entity_labels),
        "terms": [
            {"name": term.name, "label": term.label, "aliases": list(term.aliases), "meaning": term.meaning}
            for term in vocabulary.terms
        ],
        "relationKinds": list(vocabulary.relation_kinds),
        "manyRelations": list(vocabulary.many_relations),
    }


def vocabulary_of(payload: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary behind a payload; the default one behind an empty payload."""
    if not payload:
        return DEFAULT
    return Vocabulary(
        labels={
            one["name"]: Label(
                name=one["name"],
                position=one["position"],
                protected=one["protected"],
                default_importance=one["defaultImportance"],
                half_life_days=one["halfLifeDays"],
                floor=one["floor"],
            )
            for one in payload["labels"]
        },
        entity_labels=tuple(payload["entityLabels"]),
        terms=tuple(
            Term(one["name"], one["label"], tuple(one["aliases"]), one.get("meaning")) for one in payload["terms"]
        ),
        relation_kinds=tuple(payload["relationKinds"]),
        many_relations=tuple(payload["manyRelations"]),
    )
