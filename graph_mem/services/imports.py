"""Bringing in what people have: many texts, in batches that can be repeated without doubling anything."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from graph_mem.core.feeds import Item
from graph_mem.core.model import Principal
from graph_mem.services import Deps, capture
from graph_mem.services.capture import NewMemory

BATCH = 100


@dataclass(frozen=True, slots=True)
class Target:
    """Where imported texts go. `clients` maps an item's group to the client it goes to instead."""

    client_id: str | None = None
    deal_id: str | None = None
    private: bool = False
    label: str | None = None
    clients: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """After a batch: how many texts were read, and how many of them were new."""

    read: int
    new: int


async def run(
    deps: Deps, principal: Principal, items: Iterable[Item], target: Target
) -> AsyncGenerator[Progress, None]:
    """Store `items` in order, a batch at a time, and tell how far it is after each.

    A batch is stored whole or not at all. Texts that an earlier import of the same source brought to the same
    place are passed over, so an import that broke off is run again from the start.
    """
    read = new = 0
    for batch in _batches(items):
        wanted = [_new(item, target) for item in batch]
        made = await capture.accept_all(deps, principal, wanted, rank=read)
        read, new = read + len(batch), new + len(made)
        yield Progress(read, new)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    source = iter(items)
    while batch := list(islice(source, BATCH)):
        yield batch


def _new(item: Item, target: Target) -> NewMemory:
    client_id = (target.clients or {}).get(item.group) if item.group else None
    return NewMemory(
        text=item.text,
        label=target.label or item.label or "note",
        title=item.title,
        client_id=client_id or target.client_id,
        deal_id=None if client_id else target.deal_id,
        private=target.private,
        source_kind=item.kind,
        source_uri=item.uri,
        occurred_at=item.occurred_at,
        importance=item.importance,
        metadata=dict(item.metadata) or None,
        imported=True,
    )
