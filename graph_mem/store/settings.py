"""Settings of an organization: one node for each kind, with a version that only counts up."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from graph_mem.core.model import OrganizationId, UserId, made_at
from graph_mem.store.db import Row, Tx, row
from graph_mem.store.times import instant, ms

READ = "MATCH (s:Settings {key: $key}) RETURN s {.version, .payload, .updatedAt, .updatedBy} AS node"
LOCK = """
MERGE (s:Settings {key: $key})
  ON CREATE SET s.org = $org, s.kind = $kind, s.version = 0, s.payload = '{}'
SET s.lock = $lock
WITH s
RETURN s {.version, .payload, .updatedAt, .updatedBy} AS node
"""
WRITE = """
MATCH (s:Settings {key: $key})
SET s.version = s.version + 1, s.payload = $payload, s.updatedAt = $at, s.updatedBy = $by
"""


class SettingsKind(StrEnum):
    RETRIEVAL = "retrieval"
    VOCABULARY = "vocabulary"
    LIFECYCLE = "lifecycle"


@dataclass(frozen=True, slots=True)
class Stored:
    """What an organization set, as JSON, and who last did. Version 0: nothing yet."""

    version: int
    payload: Mapping[str, Any]
    updated_at: datetime | None = None
    updated_by: UserId | None = None


NOTHING = Stored(0, {})


def key(org_id: OrganizationId, kind: SettingsKind) -> str:
    return f"{org_id}|{kind}"


async def read(tx: Tx, org_id: OrganizationId, kind: SettingsKind) -> Stored:
    """The settings of this kind; where none were ever made, none since the organization exists."""
    found = await row(tx, READ, key=key(org_id, kind))
    stored = _stored(found["node"]) if found else NOTHING
    return stored if stored.updated_at else replace(stored, updated_at=made_at(org_id))


async def lock(tx: Tx, org_id: OrganizationId, kind: SettingsKind, *, lock: str) -> Stored:
    """The settings of this kind, which nobody else changes before this transaction ends."""
    found = await row(tx, LOCK, key=key(org_id, kind), org=org_id, kind=kind.value, lock=lock)
    return _stored(found["node"]) if found else NOTHING


async def write(
    tx: Tx, org_id: OrganizationId, kind: SettingsKind, payload: Mapping[str, Any], *, by: UserId, at: datetime
) -> None:
    """Replace locked settings and count their version up."""
    text = json.dumps(payload, ensure_ascii=False, sort_keys=True)
    await row(tx, WRITE, key=key(org_id, kind), payload=text, at=ms(at), by=by)


def _stored(node: Row) -> Stored:
    at = node.get("updatedAt")
    by = node.get("updatedBy")
    return Stored(
        version=node["version"],
        payload=json.loads(node["payload"]),
        updated_at=None if at is None else instant(at),
        updated_by=UserId(by) if by else None,
    )
