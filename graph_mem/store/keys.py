"""API keys: the hash of a secret that stands for one member of one organization."""

from datetime import datetime

from graph_mem.core.model import OrganizationId, UserId
from graph_mem.core.people import ApiKey, DocumentPolicy
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import instant, instant_or_none, ms

CREATE_KEY = """
MATCH (u:User {id: $user})-[:MEMBER_OF]->(:Organization {id: $org})
CREATE (k:ApiKey {id: $id, org: $org, hash: $hash, name: $name, documents: $documents,
  introspection: $introspection, createdAt: $createdAt, expiresAt: $expiresAt})-[:OF]->(u)
RETURN k.id AS id
"""


async def create_key(tx: Tx, key: ApiKey, *, secret_hash: str) -> bool:
    """Whether `key` is stored now; False if its user is no member of its organization."""
    made = await row(
        tx,
        CREATE_KEY,
        id=key.id,
        org=key.org_id,
        user=key.user_id,
        hash=secret_hash,
        name=key.name,
        documents=key.documents.value,
        introspection=key.introspection,
        createdAt=ms(key.created_at),
        expiresAt=ms(key.expires_at) if key.expires_at else None,
    )
    return made is not None


FIND_KEY = "MATCH (k:ApiKey {hash: $hash})-[:OF]->(u:User) RETURN k {.*, user: u.id} AS key"


async def find_key(tx: Tx, *, secret_hash: str) -> ApiKey | None:
    """The key with this hash, unless it was revoked."""
    found = await row(tx, FIND_KEY, hash=secret_hash)
    return _key(found["key"]) if found else None


LIST_KEYS = """
MATCH (k:ApiKey {org: $org})-[:OF]->(u:User)
RETURN k {.*, user: u.id} AS key ORDER BY k.createdAt
"""


async def list_keys(tx: Tx, org_id: OrganizationId) -> list[ApiKey]:
    """Every key of the organization, the revoked ones too, oldest first."""
    return [_key(found["key"]) for found in await rows(tx, LIST_KEYS, org=org_id)]


REVOKE_KEY = """
MATCH (k:ApiKey {id: $id, org: $org})
SET k.revokedAt = coalesce(k.revokedAt, $at)
REMOVE k.hash
RETURN k.id AS id
"""


async def revoke_key(tx: Tx, *, org_id: OrganizationId, key_id: str, at: datetime) -> bool:
    """Whether the organization has this key; it opens nothing now."""
    return await row(tx, REVOKE_KEY, org=org_id, id=key_id, at=ms(at)) is not None


TOUCH_KEY = "MATCH (k:ApiKey {id: $id}) SET k.lastUsedAt = $at"


async def touch_key(tx: Tx, *, key_id: str, at: datetime) -> None:
    """Remember that the key was used at `at`."""
    await rows(tx, TOUCH_KEY, id=key_id, at=ms(at))


def _key(node: Row) -> ApiKey:
    return ApiKey(
        id=node["id"],
        org_id=OrganizationId(node["org"]),
        user_id=UserId(node["user"]),
        name=node["name"],
        documents=DocumentPolicy(node["documents"]),
        introspection=node["introspection"],
        created_at=instant(node["createdAt"]),
        expires_at=instant_or_none(node.get("expiresAt")),
        last_used_at=instant_or_none(node.get("lastUsedAt")),
        revoked_at=instant_or_none(node.get("revokedAt")),
    )
