"""Settings of each organization: read from a short-lived cache, changed one at a time, with history."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

from graph_mem.core.lifecycle import LifecycleConfig
from graph_mem.core.model import Event, OrganizationId, Place, Principal, Scope
from graph_mem.core.retrieval import RetrievalConfig
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.core.vocabulary_json import vocabulary_of, vocabulary_payload
from graph_mem.errors import Conflict, Forbidden
from graph_mem.store import audit, settings
from graph_mem.store.db import Database, Tx
from graph_mem.store.settings import SettingsKind, Stored

CACHE_S = 2.0
_MOST_ENTRIES = 10_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Entry:
    value: Any
    version: int
    until: float


class SettingsCache:
    """What each organization set, at most `ttl_s` old.

    `retrieval` holds the defaults of the embedding model in use; an organization stores only what it changed.
    """

    def __init__(self, db: Database, *, retrieval: RetrievalConfig | None = None, ttl_s: float = CACHE_S) -> None:
        self.default_retrieval = retrieval or RetrievalConfig()
        self._db = db
        self._ttl_s = ttl_s
        self._entries: dict[tuple[OrganizationId, SettingsKind], _Entry] = {}

    async def retrieval(self, org_id: OrganizationId) -> RetrievalConfig:
        return await self._get(org_id, SettingsKind.RETRIEVAL, self.retrieval_of)

    async def vocabulary(self, org_id: OrganizationId) -> Vocabulary:
        return await self._get(org_id, SettingsKind.VOCABULARY, lambda stored: vocabulary_of(stored.payload))

    async def lifecycle(self, org_id: OrganizationId) -> LifecycleConfig:
        return await self._get(org_id, SettingsKind.LIFECYCLE, lifecycle_of)

    async def version(self, org_id: OrganizationId, kind: SettingsKind) -> int:
        """The version that the cached settings of this kind have; call it after reading them."""
        entry = self._entries.get((org_id, kind))
        return entry.version if entry else (await self._read(org_id, kind)).version

    def retrieval_of(self, stored: Stored) -> RetrievalConfig:
        """The configuration that stored overrides make of the model's defaults."""
        made = self.default_retrieval.changed(stored.payload)
        return replace(made, version=stored.version, updated_at=stored.updated_at, updated_by=stored.updated_by)

    def adopt(self, retrieval: RetrievalConfig) -> None:
        """Let the defaults be those of another embedding model."""
        self.default_retrieval = retrieval
        self._entries.clear()

    def forget(self, org_id: OrganizationId, kind: SettingsKind) -> None:
        """Read from the database next time."""
        self._entries.pop((org_id, kind), None)

    async def _get(self, org_id: OrganizationId, kind: SettingsKind, make: Callable[[Stored], _T]) -> _T:
        entry = self._entries.get((org_id, kind))
        if entry is None or entry.until < time.monotonic():
            stored = await self._read(org_id, kind)
            entry = _Entry(make(stored), stored.version, time.monotonic() + self._ttl_s)
            if len(self._entries) >= _MOST_ENTRIES:
                self._entries.clear()
            self._entries[org_id, kind] = entry
        return entry.value

    async def _read(self, org_id: OrganizationId, kind: SettingsKind) -> Stored:
        async def work(tx: Tx) -> Stored:
            return await settings.read(tx, org_id, kind)

        return await self._db.read(work)


def lifecycle_of(stored: Stored) -> LifecycleConfig:
    made = LifecycleConfig().changed(stored.payload)
    return replace(made, version=stored.version, updated_at=stored.updated_at, updated_by=stored.updated_by)


class SettingsDeps(Protocol):
    """The part of `Deps` used here, spelled out because `Deps` itself holds the cache."""

    @property
    def db(self) -> Database: ...
    @property
    def settings(self) -> SettingsCache: ...
    @property
    def clock(self) -> Callable[[], datetime]: ...
    @property
    def new_id(self) -> Callable[[str], str]: ...


@dataclass(frozen=True, slots=True)
class Change:
    """What replaces the payload, and what history says of it."""

    payload: Mapping[str, Any]
    detail: Mapping[str, Any]


async def update(
    deps: SettingsDeps,
    principal: Principal,
    kind: SettingsKind,
    *,
    expected_version: int,
    change: Callable[[Stored], Change],
) -> None:
    """Replace settings of `kind` with what `change` makes of them, in one transaction with its event.

    Errors: Forbidden for whoever is neither owner nor admin; Conflict for a stale version; what `change` raises.
    """
    if not principal.role.sees_all_shared:
        raise Forbidden(f"Only an owner or admin changes {kind} settings; your role is {principal.role}.")
    org_id, event_id = principal.org_id, deps.new_id("evt")

    async def work(tx: Tx) -> None:
        stored = await settings.lock(tx, org_id, kind, lock=event_id)
        if stored.version != expected_version:
            raise Conflict(
                f"The {kind} settings are at version {stored.version}, expected {expected_version}.",
                current_version=stored.version,
            )
        changed = change(stored)
        now = deps.clock()
        await settings.write(tx, org_id, kind, changed.payload, by=principal.user_id, at=now)
        event = Event(
            id=event_id,
            record_id=settings.key(org_id, kind),
            at=now,
            by=principal.user_id,
            kind=f"{kind}_settings_changed",
            version=stored.version + 1,
            detail=changed.detail,
        )
        await audit.append(tx, Place(org_id, Scope()), event)

    await deps.db.write(work)
    deps.settings.forget(org_id, kind)


async def update_retrieval(
    deps: SettingsDeps, principal: Principal, *, expected_version: int, changes: Mapping[str, Any]
) -> RetrievalConfig:
    """Change some of the retrieval settings; InvalidInput for a value out of range, and nothing is changed."""

    def change(stored: Stored) -> Change:
        made = deps.settings.retrieval_of(stored).changed(changes)
        return Change(made.overrides(deps.settings.default_retrieval), changes)

    await update(deps, principal, SettingsKind.RETRIEVAL, expected_version=expected_version, change=change)
    return await deps.settings.retrieval(principal.org_id)


async def update_vocabulary(
    deps: SettingsDeps,
    principal: Principal,
    *,
    expected_version: int,
    change: Callable[[Vocabulary], Vocabulary],
    detail: Mapping[str, Any],
) -> Vocabulary:
    """Replace the vocabulary by what `change` makes of it."""

    def changed(stored: Stored) -> Change:
        return Change(vocabulary_payload(change(vocabulary_of(stored.payload))), detail)

    await update(deps, principal, SettingsKind.VOCABULARY, expected_version=expected_version, change=changed)
    return await deps.settings.vocabulary(principal.org_id)


async def update_lifecycle(
    deps: SettingsDeps, principal: Principal, *, expected_version: int, changes: Mapping[str, Any]
) -> LifecycleConfig:
    """Change some of the lifecycle settings; InvalidInput for a value out of range, and nothing is changed."""
    if (label := changes.get("promote_to")) is not None:
        (await deps.settings.vocabulary(principal.org_id)).label(label, path="promoteTo")

    def change(stored: Stored) -> Change:
        return Change(lifecycle_of(stored).changed(changes).overrides(LifecycleConfig()), changes)

    await update(deps, principal, SettingsKind.LIFECYCLE, expected_version=expected_version, change=change)
    return await deps.settings.lifecycle(principal.org_id)
