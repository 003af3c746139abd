"""The filter words that a search unit carries, so that every filter works inside the full-text index."""

from collections.abc import Iterable

from graph_mem.core.model import Place, RecordKind, Standing, token


def standing_tag(standing: Standing) -> str:
    return token("standing", standing)


def kind_tag(kind: RecordKind) -> str:
    return token("kind", kind)


def label_tag(label: str) -> str:
    return token("label", label)


def entity_tag(entity_id: str) -> str:
    return token("entity", entity_id)


def tags(
    place: Place,
    *,
    standing: Standing,
    kind: RecordKind,
    label: str,
    source: str | None = None,
    entity_ids: Iterable[str] = (),
) -> list[str]:
    """The `keys` of a Memory, Chunk or Fact: each an index token, see `core.model.token`."""
    keys = [place.partition_token, place.scope_token, standing_tag(standing), kind_tag(kind), label_tag(label)]
    return [*keys, *([source] if source else []), *map(entity_tag, sorted(entity_ids))]
