"""Who stands behind a credential, as the graph has it now."""

from datetime import timedelta

from graph_mem.core.model import OrganizationId, Principal, UserId
from graph_mem.core.people import ApiKey
from graph_mem.services.admin import AdminDeps
from graph_mem.store import keys, tenants
from graph_mem.store.db import Tx

USE_IS_NOTED_EVERY = timedelta(minutes=1)


async def principal(deps: AdminDeps, *, org_id: OrganizationId, user_id: UserId) -> Principal | None:
    """The member with role and assignments; None for whoever is none (any more)."""

    async def work(tx: Tx) -> Principal | None:
        return await tenants.load_principal(tx, org_id=org_id, user_id=user_id)

    return await deps.db.read(work)


async def api_key(deps: AdminDeps, *, key_hash: str) -> ApiKey | None:
    """The key whose secret has this hash, its use noted to the minute; None if revoked, expired or never made."""
    now = deps.clock()

    async def find(tx: Tx) -> ApiKey | None:
        return await keys.find_key(tx, secret_hash=key_hash)

    key = await deps.db.read(find)
    if key is None or (key.expires_at is not None and key.expires_at <= now):
        return None
    if key.last_used_at is None or now - key.last_used_at >= USE_IS_NOTED_EVERY:
        found = key

        async def touch(tx: Tx) -> None:
            await keys.touch_key(tx, key_id=found.id, at=now)

        await deps.db.write(touch)
    return key
