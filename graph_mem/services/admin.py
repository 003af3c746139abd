"""What an operator does: make organizations, people, assignments and keys, and take them away.

Whoever may call this reaches the database itself; there is no principal to ask.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from graph_mem.core.model import Role
from graph_mem.core.people import (
    KEY_PREFIX,
    ApiKey,
    Assignment,
    Client,
    Deal,
    DocumentPolicy,
    Enrolment,
    Member,
    Organization,
    secret_hash,
    valid_name,
)
from graph_mem.errors import Conflict, InvalidInput, NotFound
from graph_mem.store import keys, tenants
from graph_mem.store.db import Database, Tx


class AdminDeps(Protocol):
    """The part of `Deps` that an operator's command has without loading a model."""

    @property
    def db(self) -> Database: ...
    @property
    def clock(self) -> Callable[[], datetime]: ...
    @property
    def new_id(self) -> Callable[[str], str]: ...


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made, with the secret that is shown this once."""

    key: ApiKey
    secret: str


async def ensure_principal(
    deps: AdminDeps, *, organization: str, user: str, role: Role, client: str | None = None, deal: str | None = None
) -> Enrolment:
    """The ids behind these names, after making whatever was missing.

    The user has `role` afterwards, whatever it was before, and is assigned to the narrowest of `client` and
    `deal`. A deal is made in the client given; without one it must exist already.
    """
    org_name = valid_name(organization, what="organization")
    user_name = valid_name(user, what="user")
    client_name = None if client is None else valid_name(client, what="client")
    deal_name = None if deal is None else valid_name(deal, what="deal")

    async def work(tx: Tx) -> Enrolment:
        now = deps.clock()
        org, _ = await tenants.merge_organization(tx, name=org_name, new_id=deps.new_id("org"), at=now)
        user_id = await tenants.merge_member(
            tx, org_id=org.id, name=user_name, role=role, new_id=deps.new_id("usr"), at=now
        )
        target = await _ensure_target(tx, deps, org, client_name, deal_name)
        return await _enrol(tx, deps, Enrolment(org.id, user_id, role), target)

    return await deps.db.write(work)


async def find_principal(
    deps: AdminDeps,
    *,
    organization: str,
    user: str,
    role: Role | None = None,
    client: str | None = None,
    deal: str | None = None,
) -> Enrolment:
    """The ids behind these names or ids; NotFound if one is missing, Conflict if the role is another."""

    async def work(tx: Tx) -> Enrolment:
        org = await _organization(tx, organization)
        member = await _member(tx, org, user)
        if role not in (None, member.role):
            raise Conflict(f"{member.name!r} has the role {member.role} here, not {role}.")
        target = await _target(tx, org, client, deal)
        enrolment = Enrolment(org.id, member.user_id, member.role)
        return enrolment if target is None else _with_target(enrolment, target)

    return await deps.db.read(work)


async def create_organization(deps: AdminDeps, *, name: str, owner: str) -> Enrolment:
    """A new organization with `owner` as its OWNER; Conflict if the name is taken."""
    org_name, owner_name = valid_name(name, what="organization"), valid_name(owner, what="owner")

    async def work(tx: Tx) -> Enrolment:
        now = deps.clock()
        org, created = await tenants.merge_organization(tx, name=org_name, new_id=deps.new_id("org"), at=now)
        if not created:
            raise Conflict(f"There is an organization {org_name!r} already: {org.id}.")
        user_id = await tenants.merge_member(
            tx, org_id=org.id, name=owner_name, role=Role.OWNER, new_id=deps.new_id("usr"), at=now
        )
        return Enrolment(org.id, user_id, Role.OWNER)

    return await deps.db.write(work)


async def list_organizations(deps: AdminDeps) -> list[Organization]:
    """Every organization of this installation, by name."""
    return await deps.db.read(tenants.list_organizations)


async def remove_organization(deps: AdminDeps, *, organization: str) -> Organization:
    """Remove an organization in which nothing was ever saved; Conflict otherwise.

    One that holds records goes by erasing these, each with its own proof, not by a single command.
    """

    async def work(tx: Tx) -> Organization:
        org = await _organization(tx, organization)
        if await tenants.holds_records(tx, org.id):
            raise Conflict(f"Organization {org.name!r} holds records or their history; it is not removed.")
        await tenants.remove_organization(tx, org.id, at=deps.clock())
        return org

    return await deps.db.write(work)


async def save_member(deps: AdminDeps, *, organization: str, user: str, role: Role) -> Member:
    """`user` as a member of an existing organization in `role`; an existing member changes the role.

    Conflict if that would leave the organization without an owner.
    """
    name = valid_name(user, what="user")

    async def work(tx: Tx) -> Member:
        now = deps.clock()
        org = await _organization(tx, organization)
        await tenants.lock_organization(tx, org.id, at=now)
        if role is not Role.OWNER:
            await _keep_an_owner(tx, org, without=name)
        user_id = await tenants.merge_member(tx, org_id=org.id, name=name, role=role, new_id=deps.new_id("usr"), at=now)
        return Member(user_id, name, role)

    return await deps.db.write(work)


async def list_members(deps: AdminDeps, *, organization: str) -> list[Member]:
    """Everyone in the organization, by name."""

    async def work(tx: Tx) -> list[Member]:
        return await tenants.list_members(tx, (await _organization(tx, organization)).id)

    return await deps.db.read(work)


async def remove_member(deps: AdminDeps, *, organization: str, user: str) -> Member:
    """End a membership with its assignments and keys; what the user wrote stays.

    Conflict for the last owner.
    """

    async def work(tx: Tx) -> Member:
        now = deps.clock()
        org = await _organization(tx, organization)
        await tenants.lock_organization(tx, org.id, at=now)
        member = await _member(tx, org, user)
        await _keep_an_owner(tx, org, without=member.name)
        await tenants.remove_member(tx, org_id=org.id, user_id=member.user_id, at=now)
        return member

    return await deps.db.write(work)


async def assign(
    deps: AdminDeps, *, organization: str, user: str, client: str | None = None, deal: str | None = None
) -> Enrolment:
    """Assign a member to the narrowest of `client` and `deal`, made where missing."""
    client_name = None if client is None else valid_name(client, what="client")
    deal_name = None if deal is None else valid_name(deal, what="deal")

    async def work(tx: Tx) -> Enrolment:
        org = await _organization(tx, organization)
        member = await _member(tx, org, user)
        target = await _ensure_target(tx, deps, org, client_name, deal_name)
        if target is None:
            raise InvalidInput("An assignment is to a client or a deal; found neither.", path=["client"])
        return await _enrol(tx, deps, Enrolment(org.id, member.user_id, member.role), target)

    return await deps.db.write(work)


async def unassign(
    deps: AdminDeps, *, organization: str, user: str, client: str | None = None, deal: str | None = None
) -> Enrolment:
    """End the assignment to the narrowest of `client` and `deal`; NotFound if there is none."""

    async def work(tx: Tx) -> Enrolment:
        org = await _organization(tx, organization)
        member = await _member(tx, org, user)
        target = await _target(tx, org, client, deal)
        if target is None:
            raise InvalidInput("An assignment is to a client or a deal; found neither.", path=["client"])
        if not await tenants.unassign(tx, org_id=org.id, user_id=member.user_id, target=target.id):
            raise NotFound(target.name, what=f"assignment of {member.name!r}")
        return _with_target(Enrolment(org.id, member.user_id, member.role), target)

    return await deps.db.write(work)


async def list_assignments(deps: AdminDeps, *, organization: str, user: str) -> list[Assignment]:
    """What a member is assigned to, as it was given."""

    async def work(tx: Tx) -> list[Assignment]:
        org = await _organization(tx, organization)
        member = await _member(tx, org, user)
        return await tenants.assignments(tx, org_id=org.id, user_id=member.user_id)

    return await deps.db.read(work)


async def create_key(
    deps: AdminDeps,
    *,
    organization: str,
    user: str,
    name: str,
    documents: DocumentPolicy = DocumentPolicy.ANY,
    introspection: bool = True,
    lifetime: timedelta | None = None,
) -> NewKey:
    """A key of a member, with its secret: 256 random bits of which only a hash is stored."""
    label, secret = valid_name(name, what="key"), KEY_PREFIX + secrets.token_urlsafe(32)

    async def work(tx: Tx) -> ApiKey:
        now = deps.clock()
        org = await _organization(tx, organization)
        member = await _member(tx, org, user)
        key = ApiKey(
            id=deps.new_id("key"),
            org_id=org.id,
            user_id=member.user_id,
            name=label,
            documents=documents,
            introspection=introspection,
            created_at=now,
            expires_at=now + lifetime if lifetime else None,
        )
        if not await keys.create_key(tx, key, secret_hash=secret_hash(secret)):
            raise NotFound(user, path=["user"], what=f"member of {org.name!r}")
        return key

    return NewKey(await deps.db.write(work), secret)


async def list_keys(deps: AdminDeps, *, organization: str) -> list[ApiKey]:
    """Every key of the organization, oldest first."""

    async def work(tx: Tx) -> list[ApiKey]:
        return await keys.list_keys(tx, (await _organization(tx, organization)).id)

    return await deps.db.read(work)


async def revoke_key(deps: AdminDeps, *, organization: str, key_id: str) -> None:
    """Make a key worthless at once; NotFound if the organization has no such key."""

    async def work(tx: Tx) -> None:
        org = await _organization(tx, organization)
        if not await keys.revoke_key(tx, org_id=org.id, key_id=key_id, at=deps.clock()):
            raise NotFound(key_id, what=f"key of {org.name!r}")

    await deps.db.write(work)


async def _organization(tx: Tx, key: str) -> Organization:
    found = await tenants.find_organization(tx, key)
    if found is None:
        raise NotFound(key, path=["organization"], what="organization")
    return found


async def _member(tx: Tx, org: Organization, key: str) -> Member:
    found = await tenants.find_member(tx, org_id=org.id, key=key)
    if found is None:
        raise NotFound(key, path=["user"], what=f"member of {org.name!r}")
    return found


async def _target(tx: Tx, org: Organization, client: str | None, deal: str | None) -> Client | Deal | None:
    """The narrowest of the two, which must exist; None if neither is given."""
    found_client = None
    if client is not None:
        found_client = await tenants.find_client(tx, org_id=org.id, key=client)
        if found_client is None:
            raise NotFound(client, path=["client"], what=f"client of {org.name!r}")
    if deal is None:
        return found_client
    deals = await tenants.find_deals(tx, org_id=org.id, key=deal, client=found_client)
    if not deals:
        raise NotFound(deal, path=["deal"], what=f"deal of {(found_client or org).name!r}")
    if len(deals) > 1:
        raise InvalidInput(f"{len(deals)} clients have a deal {deal!r}; name the client too.", path=["client"])
    return deals[0]


async def _ensure_target(
    tx: Tx, deps: AdminDeps, org: Organization, client: str | None, deal: str | None
) -> Client | Deal | None:
    """As `_target`, after making the client, and the deal within it, where missing."""
    if client is None:
        return await _target(tx, org, None, deal)
    now, org_id = deps.clock(), org.id
    made = await tenants.find_client(tx, org_id=org_id, key=client) or await tenants.merge_client(
        tx, org_id=org_id, name=client, new_id=deps.new_id("cli"), at=now
    )
    if deal is None:
        return made
    existing = await tenants.find_deals(tx, org_id=org_id, key=deal, client=made)
    return (
        existing[0]
        if existing
        else await tenants.merge_deal(tx, org_id=org_id, client=made, name=deal, new_id=deps.new_id("deal"), at=now)
    )


async def _enrol(tx: Tx, deps: AdminDeps, enrolment: Enrolment, target: Client | Deal | None) -> Enrolment:
    if target is None:
        return enrolment
    await tenants.assign(tx, org_id=enrolment.org_id, user_id=enrolment.user_id, target=target.id, at=deps.clock())
    return _with_target(enrolment, target)


def _with_target(enrolment: Enrolment, target: Client | Deal) -> Enrolment:
    client, deal = (target.client, target) if isinstance(target, Deal) else (target, None)
    return Enrolment(enrolment.org_id, enrolment.user_id, enrolment.role, client.id, deal.id if deal else None)


async def _keep_an_owner(tx: Tx, org: Organization, *, without: str) -> None:
    members = await tenants.list_members(tx, org.id)
    owners = {member.name for member in members if member.role is Role.OWNER}
    if owners == {without}:
        raise Conflict(f"{without!r} is the last owner of {org.name!r}; make somebody else an owner first.")
