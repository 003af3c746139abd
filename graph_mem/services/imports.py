"""Bringing in what people have: many texts, in batches that can be repeated without doubling anything."""

from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from graph_mem.core.feeds import Item, refused
from graph_mem.core.model import ORGANIZATION, ClientId, Principal, Scope
from graph_mem.core.people import valid_name
from graph_mem.errors import Forbidden, InvalidInput
from graph_mem.services import Deps, capture
from graph_mem.services.capture import NewMemory
from graph_mem.store import tenants
from graph_mem.store.db import Tx

BATCH = 100


@dataclass(frozen=True, slots=True)
class Target:
    """Where imported texts go. `by_group`: an item of a group goes to the client of that name, made if need be."""

    scope: Scope = ORGANIZATION
    private: bool = False
    label: str | None = None
    by_group: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """After a batch: how many texts were read, and how many of them were new."""

    read: int
    new: int


async def run(deps: Deps, principal: Principal, items: Iterable[Item], target: Target) -> AsyncGenerator[Progress]:
    """Store `items` in order, a batch at a time, and tell how far it is after each.

    A batch is stored whole or not at all. Texts that an earlier import of the same source brought to the same
    place are passed over, so an import that broke off is run again from the start.

    Errors: InvalidInput, before anything is stored, if an item cannot be.
    """
    read = new = 0
    clients: dict[str, ClientId] = {}
    listed = list(items)
    await _require_fit(deps, principal, listed, target)
    for batch in _batches(listed):
        if target.by_group:
            clients |= await _clients(deps, principal, {item.group for item in batch if item.group} - clients.keys())
        wanted = [_new(item, target, clients) for item in batch]
        made = await capture.accept_all(deps, principal, wanted, rank=read)
        read, new = read + len(batch), new + len(made)
        yield Progress(read, new)


async def _require_fit(deps: Deps, principal: Principal, items: Sequence[Item], target: Target) -> None:
    vocabulary = await deps.settings.vocabulary(principal.org_id)
    wrong: list[str] = []
    for item in items:
        try:
            capture.check(_new(item, target, {}), vocabulary)
            if target.by_group and item.group:
                valid_name(item.group, what="group")
        except InvalidInput as error:
            if not item.where:
                raise
            wrong.append(f"{item.where}: {error.message}")
    if wrong:
        raise refused(wrong, of=len(items), verb="stored")


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    source = iter(items)
    while batch := list(islice(source, BATCH)):
        yield batch


async def _clients(deps: Deps, principal: Principal, names: Collection[str]) -> dict[str, ClientId]:
    """The clients of these names, made where missing; Forbidden for whoever may not see all of the organization."""
    if not names:
        return {}
    if not principal.role.sees_all_shared:
        raise Forbidden(f"Groups become clients, which owners and admins make; your role is {principal.role}.")
    new_ids = {name: deps.new_id("cli") for name in sorted(names)}
    now = deps.clock()

    async def work(tx: Tx) -> dict[str, ClientId]:
        return {
            name: (
                await tenants.merge_client(
                    tx, org_id=principal.org_id, name=valid_name(name, what="group"), new_id=id, at=now
                )
            ).id
            for name, id in new_ids.items()
        }

    return await deps.db.write(work)


def _new(item: Item, target: Target, clients: Mapping[str, ClientId]) -> NewMemory:
    client_id = clients.get(item.group) if target.by_group and item.group else None
    return NewMemory(
        text=item.text,
        label=target.label or item.label or "note",
        title=item.title,
        client_id=client_id or target.scope.client_id,
        deal_id=None if client_id else target.scope.deal_id,
        private=target.private,
        source_kind=item.kind,
        source_uri=item.uri,
        occurred_at=item.occurred_at,
        importance=item.importance,
        metadata=dict(item.metadata) or None,
        imported=True,
    )
