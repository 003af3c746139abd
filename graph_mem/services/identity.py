"""Who stands behind a credential, as the graph has it now."""

from dataclasses import dataclass
from datetime import timedelta

from graph_mem.core.model import OrganizationId, Principal, Scope, UserId
from graph_mem.core.people import ApiKey, Assignment, Organization
from graph_mem.services.admin import AdminDeps
from graph_mem.store import keys, tenants
from graph_mem.store.db import Tx

USE_IS_NOTED_EVERY = timedelta(minutes=1)


async def principal(deps: AdminDeps, *, org_id: OrganizationId, user_id: UserId) -> Principal | None:
    """The member with role and assignments; None for whoever is none (any more)."""

    async def work(tx: Tx) -> Principal | None:
        return await tenants.load_principal(tx, org_id=org_id, user_id=user_id)

    return await deps.db.read(work)


@dataclass(frozen=True, slots=True)
class Viewer:
    """The caller's organization, and what the caller is assigned to there."""

    organization: Organization
    assignments: tuple[Scope, ...]


async def viewer(deps: AdminDeps, principal: Principal) -> Viewer:
    """Who `principal` is, for themselves."""

    async def work(tx: Tx) -> Viewer:
        organization = await tenants.find_organization(tx, principal.org_id)
        assert organization is not None  # noqa: S101 # a principal is a member of one
        found = await tenants.assignments(tx, org_id=principal.org_id, user_id=principal.user_id)
        return Viewer(organization, tuple(_scope(one) for one in found))

    return await deps.db.read(work)


def _scope(assignment: Assignment) -> Scope:
    deal = assignment.deal
    return Scope(assignment.level, assignment.client.id, deal.id if deal else None)


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
