"""What an operator does with organizations, people, assignments and keys."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from graph_mem.core.model import Role, ScopeLevel
from graph_mem.core.people import KEY_PREFIX, DocumentPolicy, secret_hash, valid_name
from graph_mem.errors import Conflict, GraphMemError, InvalidInput, NotFound
from graph_mem.services import Clock, admin, identity, new_id, utc_now
from graph_mem.store.db import Database, Tx, rows

ODD_NAMES = ["AND", "a-b", "org:1", "_", "x.y+z@example.com", "用户1", "a" * 200, "'; DROP", "[bold]", "👩‍💻", "é"]


@dataclass
class Desk:
    db: Database
    clock: Clock = utc_now
    new_id: Callable[[str], str] = new_id


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


def fresh(name: str = "x") -> str:
    return f"{name} {ULID()}"


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_any_name_will_do_and_names_the_same_thing_twice(desk: Desk, name: str) -> None:
    organization = fresh()
    first, second = [
        await admin.ensure_principal(
            desk,
            organization=organization,
            user=f"{organization}/{name}"[-200:],
            role=Role.MEMBER,
            client=name,
            deal=name,
        )
        for _ in range(2)
    ]
    assert first == second
    found = await admin.find_principal(
        desk, organization=organization, user=f"{organization}/{name}"[-200:], client=name, deal=name
    )
    assert found == first


@pytest.mark.parametrize("name", ["", " ", "\t", "a\nb", "a\x00", "a\u2028b", "\ud800", "a" * 201])
async def test_name_without_a_face_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises(InvalidInput):
        await admin.ensure_principal(desk, organization=name, user="u", role=Role.MEMBER)


@given(st.text(max_size=300))
def test_valid_name_is_its_own_normal_form(text: str) -> None:
    try:
        name = valid_name(text, what="user")
    except InvalidInput:
        return
    assert valid_name(name, what="user") == name
    assert 1 <= len(name) <= 200


def test_two_spellings_of_one_name_are_one() -> None:
    assert valid_name("e\u0301", what="user") == valid_name("\u00e9", what="user")


async def test_assignment_is_to_the_narrowest_given(desk: Desk) -> None:
    org, user = fresh(), fresh()
    made = await admin.ensure_principal(
        desk, organization=org, user=user, role=Role.SOLUTIONS_ENGINEER, client="Acme", deal="Renewal"
    )
    (assignment,) = await admin.list_assignments(desk, organization=org, user=user)
    assert (assignment.level, assignment.client.id) == (ScopeLevel.DEAL, made.client_id)
    assert assignment.deal is not None
    assert assignment.deal.id == made.deal_id
    await admin.ensure_principal(desk, organization=org, user=user, role=Role.SOLUTIONS_ENGINEER, client="Acme")
    assert {one.level for one in await admin.list_assignments(desk, organization=org, user=user)} == {
        ScopeLevel.DEAL,
        ScopeLevel.CLIENT,
    }


async def test_same_deal_name_in_two_clients_is_two_deals(desk: Desk) -> None:
    org, user = fresh(), fresh()
    ids = {
        (
            await admin.ensure_principal(
                desk, organization=org, user=user, role=Role.MEMBER, client=client, deal="Renewal"
            )
        ).deal_id
        for client in ("Acme", "Globex")
    }
    assert len(ids) == 2
    with pytest.raises(InvalidInput, match="name the client"):
        await admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER, deal="Renewal")


async def test_deal_without_a_client_must_exist(desk: Desk) -> None:
    org, user = fresh(), fresh()
    with pytest.raises(NotFound):
        await admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER, deal="Renewal")
    with pytest.raises(NotFound):
        await admin.list_members(desk, organization=org)  # nothing half-made
    made = await admin.ensure_principal(
        desk, organization=org, user=user, role=Role.MEMBER, client="Acme", deal="Renewal"
    )
    again = await admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER, deal="Renewal")
    assert again == made


async def test_ids_serve_as_well_as_names(desk: Desk) -> None:
    org, user = fresh(), fresh()
    made = await admin.ensure_principal(
        desk, organization=org, user=user, role=Role.MEMBER, client="Acme", deal="Renewal"
    )
    assert made.client_id is not None
    found = await admin.find_principal(
        desk, organization=made.org_id, user=made.user_id, client=made.client_id, deal=made.deal_id
    )
    assert found == made


async def test_create_sets_the_role_and_without_it_another_role_is_a_conflict(desk: Desk) -> None:
    org, user = fresh(), fresh()
    await admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER)
    with pytest.raises(Conflict):
        await admin.find_principal(desk, organization=org, user=user, role=Role.ADMIN)
    made = await admin.ensure_principal(desk, organization=org, user=user, role=Role.ADMIN)
    principal = await identity.principal(desk, org_id=made.org_id, user_id=made.user_id)
    assert principal is not None
    assert principal.role is Role.ADMIN


@pytest.mark.parametrize("missing", ["organization", "user", "client", "deal"])
async def test_nothing_is_made_without_create(desk: Desk, missing: str) -> None:
    names = {"organization": fresh(), "user": fresh(), "client": "Acme", "deal": "Renewal"}
    await admin.ensure_principal(desk, role=Role.MEMBER, **names)
    with pytest.raises(NotFound):
        await admin.find_principal(desk, **names | {missing: fresh("missing")})


async def test_an_organization_comes_with_its_owner_and_never_loses_the_last(desk: Desk) -> None:
    org, owner, other = fresh(), fresh("owner"), fresh("other")
    made = await admin.create_organization(desk, name=org, owner=owner)
    assert made.role is Role.OWNER
    with pytest.raises(Conflict):
        await admin.create_organization(desk, name=org, owner=other)
    for harm in (
        admin.remove_member(desk, organization=org, user=owner),
        admin.save_member(desk, organization=org, user=owner, role=Role.MEMBER),
    ):
        with pytest.raises(Conflict, match="last owner"):
            await harm
    await admin.save_member(desk, organization=org, user=other, role=Role.OWNER)
    await admin.remove_member(desk, organization=org, user=owner)
    assert [member.name for member in await admin.list_members(desk, organization=org)] == [other]


async def test_of_two_owners_who_leave_at_once_one_stays(desk: Desk) -> None:
    org, one, two = fresh(), fresh("one"), fresh("two")
    await admin.create_organization(desk, name=org, owner=one)
    await admin.save_member(desk, organization=org, user=two, role=Role.OWNER)
    left = await asyncio.gather(
        *(admin.remove_member(desk, organization=org, user=user) for user in (one, two)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Conflict) for outcome in left) == 1
    assert len(await admin.list_members(desk, organization=org)) == 1


async def test_organization_with_records_is_not_removed(desk: Desk) -> None:
    org = fresh()
    made = await admin.create_organization(desk, name=org, owner=fresh())

    async def save(tx: Tx) -> None:
        await rows(tx, "CREATE (:Memory {id: $id, org: $org})", id=new_id("mem"), org=made.org_id)

    await desk.db.write(save)
    with pytest.raises(Conflict, match="holds records"):
        await admin.remove_organization(desk, organization=org)


async def test_empty_organization_is_removed_with_all_that_names_it(desk: Desk) -> None:
    org, user = fresh(), fresh()
    made = await admin.ensure_principal(
        desk, organization=org, user=user, role=Role.OWNER, client="Acme", deal="Renewal"
    )
    key = await admin.create_key(desk, organization=org, user=user, name="ci")
    elsewhere = await admin.create_organization(desk, name=fresh(), owner=(second := fresh()))
    await admin.save_member(desk, organization=org, user=second, role=Role.MEMBER)
    await admin.remove_organization(desk, organization=org)
    again = await admin.create_organization(desk, name=org, owner=user)
    assert again.user_id != made.user_id, "the name of somebody who is a member nowhere is free"
    assert await identity.principal(desk, org_id=elsewhere.org_id, user_id=elsewhere.user_id)
    await admin.remove_organization(desk, organization=org)
    assert await identity.principal(desk, org_id=made.org_id, user_id=made.user_id) is None
    assert await identity.api_key(desk, key_hash=secret_hash(key.secret)) is None
    with pytest.raises(NotFound):
        await admin.list_members(desk, organization=org)


async def test_ended_assignment_is_gone_and_ending_it_twice_is_an_error(desk: Desk) -> None:
    org, user = fresh(), fresh()
    made = await admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER, client="Acme")
    await admin.unassign(desk, organization=org, user=user, client="Acme")
    principal = await identity.principal(desk, org_id=made.org_id, user_id=made.user_id)
    assert principal is not None
    assert principal.client_ids == frozenset()
    with pytest.raises(NotFound):
        await admin.unassign(desk, organization=org, user=user, client="Acme")


@pytest.mark.parametrize("change", [admin.assign, admin.unassign])
async def test_assignment_to_nothing_is_refused(desk: Desk, change: Callable[..., object]) -> None:
    org, user = fresh(), fresh()
    await admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER)
    with pytest.raises(InvalidInput):
        await change(desk, organization=org, user=user)  # type: ignore[misc] # both are coroutines


async def test_secret_of_a_key_is_stored_nowhere(desk: Desk) -> None:
    org, user = fresh(), fresh()
    await admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER)
    made = await admin.create_key(desk, organization=org, user=user, name="ci", documents=DocumentPolicy.MANIFEST)
    assert made.secret.startswith(KEY_PREFIX)
    assert len(made.secret) >= len(KEY_PREFIX) + 43

    async def stored(tx: Tx) -> dict[str, object]:
        (found,) = await rows(tx, "MATCH (k:ApiKey {id: $id}) RETURN properties(k) AS found", id=made.key.id)
        return found["found"]

    properties = await desk.db.read(stored)
    assert made.secret not in str(properties)
    assert properties["hash"] == secret_hash(made.secret)
    found = await identity.api_key(desk, key_hash=secret_hash(made.secret))
    assert found is not None
    assert (found.user_id, found.documents) == (made.key.user_id, DocumentPolicy.MANIFEST)


async def test_key_ends_by_time_by_revocation_and_with_its_member(desk: Desk) -> None:
    org, user = fresh(), fresh()
    await admin.ensure_principal(desk, organization=org, user=fresh("owner"), role=Role.OWNER)
    await admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER)

    def later() -> datetime:
        return utc_now() + timedelta(days=2)

    made = [
        await admin.create_key(desk, organization=org, user=user, name="ci", lifetime=timedelta(days=1))
        for _ in range(3)
    ]
    hashes = [secret_hash(one.secret) for one in made]
    assert all([await identity.api_key(desk, key_hash=one) for one in hashes])
    assert await identity.api_key(Desk(desk.db, clock=later), key_hash=hashes[0]) is None
    await admin.revoke_key(desk, organization=org, key_id=made[1].key.id)
    assert await identity.api_key(desk, key_hash=hashes[1]) is None
    await admin.remove_member(desk, organization=org, user=user)
    assert [await identity.api_key(desk, key_hash=one) for one in hashes] == [None, None, None]
    assert all(one.revoked_at for one in await admin.list_keys(desk, organization=org))


async def test_key_of_another_organization_cannot_be_revoked(desk: Desk) -> None:
    ours, theirs, user = fresh(), fresh(), fresh()
    await admin.ensure_principal(desk, organization=ours, user=user, role=Role.MEMBER)
    await admin.create_organization(desk, name=theirs, owner=fresh())
    made = await admin.create_key(desk, organization=ours, user=user, name="ci")
    with pytest.raises(NotFound):
        await admin.revoke_key(desk, organization=theirs, key_id=made.key.id)
    assert await identity.api_key(desk, key_hash=secret_hash(made.secret)) is not None


async def test_concurrent_creation_gives_one_principal(desk: Desk) -> None:
    org, user = fresh(), fresh()
    made = await asyncio.gather(
        *(
            admin.ensure_principal(desk, organization=org, user=user, role=Role.MEMBER, client="Acme", deal="Renewal")
            for _ in range(8)
        ),
        return_exceptions=True,
    )
    assert not [one for one in made if isinstance(one, GraphMemError)]
    assert len(set(made)) == 1
