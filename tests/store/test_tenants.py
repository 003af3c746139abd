"""What the graph says of a principal."""

import asyncio
from datetime import UTC, datetime

import pytest
from ulid import ULID

from graph_mem.core.model import ORGANIZATION, OrganizationId, Role, Scope, ScopeLevel, UserId
from graph_mem.services import new_id
from graph_mem.store import tenants
from graph_mem.store.db import Database, Tx

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


def fresh(kind: str) -> str:
    return f"{kind} {ULID()}"


async def organization(tx: Tx) -> OrganizationId:
    made, created = await tenants.merge_organization(tx, name=fresh("org"), new_id=new_id("org"), at=NOW)
    assert created
    return made.id


async def member(tx: Tx, org_id: OrganizationId, role: Role = Role.MEMBER) -> UserId:
    return await tenants.merge_member(tx, org_id=org_id, name=fresh("user"), role=role, new_id=new_id("usr"), at=NOW)


async def test_assigned_client_opens_its_deals_and_assigned_deal_opens_no_client(database: Database) -> None:
    async def work(tx: Tx) -> None:
        org_id = await organization(tx)
        user_id = await member(tx, org_id)
        whole = await tenants.merge_client(tx, org_id=org_id, name="whole", new_id=new_id("cli"), at=NOW)
        inner = await tenants.merge_deal(tx, org_id=org_id, client=whole, name="d", new_id=new_id("deal"), at=NOW)
        other = await tenants.merge_client(tx, org_id=org_id, name="other", new_id=new_id("cli"), at=NOW)
        part = await tenants.merge_deal(tx, org_id=org_id, client=other, name="d", new_id=new_id("deal"), at=NOW)
        hidden = await tenants.merge_deal(tx, org_id=org_id, client=other, name="e", new_id=new_id("deal"), at=NOW)
        for target in (whole.id, part.id):
            assert await tenants.assign(tx, org_id=org_id, user_id=user_id, target=target, at=NOW)

        principal = await tenants.load_principal(tx, org_id=org_id, user_id=user_id)

        assert principal is not None
        assert principal.client_ids == {whole.id}
        assert principal.deals == {inner.id: whole.id, part.id: other.id}
        assert hidden.id not in principal.deals
        assert principal.scopes is not None
        assert set(principal.scopes) == {
            ORGANIZATION,
            Scope(ScopeLevel.CLIENT, whole.id),
            Scope(ScopeLevel.DEAL, whole.id, inner.id),
            Scope(ScopeLevel.DEAL, other.id, part.id),
        }

    await database.write(work)


async def test_member_of_one_organization_is_a_stranger_in_another(database: Database) -> None:
    async def work(tx: Tx) -> None:
        ours, theirs = await organization(tx), await organization(tx)
        user_id = await member(tx, ours)
        client = await tenants.merge_client(tx, org_id=theirs, name="c", new_id=new_id("cli"), at=NOW)

        assert await tenants.load_principal(tx, org_id=theirs, user_id=user_id) is None
        assert not await tenants.assign(tx, org_id=ours, user_id=user_id, target=client.id, at=NOW)
        assert not await tenants.assign(tx, org_id=theirs, user_id=user_id, target=client.id, at=NOW)

    await database.write(work)


async def test_assignments_of_another_organization_count_for_nothing(database: Database) -> None:
    """One person, member of two organizations, is two principals."""

    async def work(tx: Tx) -> None:
        ours, theirs = await organization(tx), await organization(tx)
        name = fresh("user")
        user_id = await tenants.merge_member(tx, org_id=ours, name=name, role=Role.MEMBER, new_id=new_id("usr"), at=NOW)
        again = await tenants.merge_member(tx, org_id=theirs, name=name, role=Role.OWNER, new_id=new_id("usr"), at=NOW)
        client = await tenants.merge_client(tx, org_id=theirs, name="c", new_id=new_id("cli"), at=NOW)
        await tenants.assign(tx, org_id=theirs, user_id=user_id, target=client.id, at=NOW)

        principal = await tenants.load_principal(tx, org_id=ours, user_id=user_id)

        assert again == user_id
        assert principal is not None
        assert (principal.role, principal.client_ids, principal.deals) == (Role.MEMBER, frozenset(), {})

    await database.write(work)


async def test_removed_member_keeps_no_right_and_leaves_the_name_to_somebody_else(database: Database) -> None:
    async def work(tx: Tx) -> None:
        org_id, name = await organization(tx), fresh("user")
        first = await tenants.merge_member(tx, org_id=org_id, name=name, role=Role.MEMBER, new_id=new_id("usr"), at=NOW)
        client = await tenants.merge_client(tx, org_id=org_id, name="c", new_id=new_id("cli"), at=NOW)
        await tenants.assign(tx, org_id=org_id, user_id=first, target=client.id, at=NOW)

        await tenants.remove_member(tx, org_id=org_id, user_id=first, at=NOW)

        assert await tenants.load_principal(tx, org_id=org_id, user_id=first) is None
        second = await tenants.merge_member(
            tx, org_id=org_id, name=name, role=Role.MEMBER, new_id=new_id("usr"), at=NOW
        )
        assert second != first
        assert await tenants.assignments(tx, org_id=org_id, user_id=second) == []

    await database.write(work)


async def test_member_removed_from_one_organization_stays_in_the_other(database: Database) -> None:
    async def work(tx: Tx) -> None:
        ours, theirs, name = await organization(tx), await organization(tx), fresh("user")
        ids = {
            await tenants.merge_member(tx, org_id=org, name=name, role=Role.MEMBER, new_id=new_id("usr"), at=NOW)
            for org in (ours, theirs)
        }
        (user_id,) = ids

        await tenants.remove_member(tx, org_id=ours, user_id=user_id, at=NOW)

        assert await tenants.load_principal(tx, org_id=ours, user_id=user_id) is None
        assert await tenants.load_principal(tx, org_id=theirs, user_id=user_id) is not None
        assert await tenants.find_member(tx, org_id=theirs, key=name) is not None

    await database.write(work)


@pytest.mark.parametrize("writers", [8])
async def test_of_many_who_make_the_same_names_at_once_all_get_the_same_ids(database: Database, writers: int) -> None:
    org_name, user_name = fresh("org"), fresh("user")

    async def work(tx: Tx) -> tuple[str, str, str, str]:
        org, _ = await tenants.merge_organization(tx, name=org_name, new_id=new_id("org"), at=NOW)
        user_id = await tenants.merge_member(
            tx, org_id=org.id, name=user_name, role=Role.MEMBER, new_id=new_id("usr"), at=NOW
        )
        client = await tenants.merge_client(tx, org_id=org.id, name="c", new_id=new_id("cli"), at=NOW)
        deal = await tenants.merge_deal(tx, org_id=org.id, client=client, name="d", new_id=new_id("deal"), at=NOW)
        await tenants.assign(tx, org_id=org.id, user_id=user_id, target=deal.id, at=NOW)
        return org.id, user_id, client.id, deal.id

    made = await asyncio.gather(*(database.write(work) for _ in range(writers)))

    assert len(set(made)) == 1
    org_id, user_id = OrganizationId(made[0][0]), UserId(made[0][1])
    assert len(await database.read(lambda tx: tenants.list_members(tx, org_id))) == 1
    assert len(await database.read(lambda tx: tenants.assignments(tx, org_id=org_id, user_id=user_id))) == 1
