"""Organizations, clients, deals, members: who a principal is.

These statements come before there is a principal, so none carries the visibility predicate; each one names
the organization it works in, or is for the operator of the whole installation.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

from graph_mem.core.model import ClientId, DealId, OrganizationId, Principal, Role, UserId
from graph_mem.core.people import Assignment, Client, Deal, Member, Organization
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.times import ms

LOAD_PRINCIPAL = """
MATCH (u:User {id: $user})-[m:MEMBER_OF]->(:Organization {id: $org})
RETURN m.role AS role,
  [(u)-[:ASSIGNED_TO]->(c:Client {org: $org}) | c.id] AS clients,
  [(u)-[:ASSIGNED_TO]->(d:Deal {org: $org}) | [d.id, d.clientId]]
  + [(u)-[:ASSIGNED_TO]->(:Client {org: $org})<-[:IN]-(d:Deal) | [d.id, d.clientId]] AS deals
"""


async def load_principal(tx: Tx, *, org_id: OrganizationId, user_id: UserId) -> Principal | None:
    """The member `user_id` of `org_id` with role and assignments as they stand; None for a stranger."""
    found = await row(tx, LOAD_PRINCIPAL, org=org_id, user=user_id)
    if found is None:
        return None
    return Principal(
        org_id,
        user_id,
        Role(found["role"]),
        frozenset(ClientId(client) for client in found["clients"]),
        {DealId(deal): ClientId(client) for deal, client in found["deals"]},
    )


MERGE_ORGANIZATION = """
MERGE (o:Organization {name: $name})
ON CREATE SET o.id = $id, o.createdAt = $at
RETURN o.id AS id, o.id = $id AS created
"""


async def merge_organization(tx: Tx, *, name: str, new_id: str, at: datetime) -> tuple[Organization, bool]:
    """The organization called `name`, and whether it is new."""
    found = await _one(tx, MERGE_ORGANIZATION, name=name, id=new_id, at=ms(at))
    return Organization(OrganizationId(found["id"]), name), found["created"]


FIND_ORGANIZATION = """
MATCH (o:Organization) WHERE o.name = $key OR o.id = $key
RETURN o.id AS id, o.name AS name ORDER BY o.id = $key DESC LIMIT 1
"""


async def find_organization(tx: Tx, key: str) -> Organization | None:
    """The organization with the name or id `key`."""
    found = await row(tx, FIND_ORGANIZATION, key=key)
    return Organization(OrganizationId(found["id"]), found["name"]) if found else None


LIST_ORGANIZATIONS = "MATCH (o:Organization) RETURN o.id AS id, o.name AS name ORDER BY o.name"


async def list_organizations(tx: Tx) -> list[Organization]:
    """Every organization of this installation, for its operator."""
    return [Organization(OrganizationId(found["id"]), found["name"]) for found in await rows(tx, LIST_ORGANIZATIONS)]


LIST_MEMBERSHIPS = "MATCH (u:User)-[:MEMBER_OF]->(o:Organization) RETURN o.id AS org, u.id AS user"


async def list_memberships(tx: Tx) -> list[tuple[OrganizationId, UserId]]:
    """Who is a member where, in the whole installation: each has a private partition."""
    return [(OrganizationId(found["org"]), UserId(found["user"])) for found in await rows(tx, LIST_MEMBERSHIPS)]


HOLDS_RECORDS = """
RETURN EXISTS { MATCH (n:Memory|Fact|Entity|Policy|Variable|Event|Proposal|ScratchNote WHERE n.org = $org) } AS held
"""


async def holds_records(tx: Tx, org_id: OrganizationId) -> bool:
    """Whether anything was ever saved in the organization."""
    return (await _one(tx, HOLDS_RECORDS, org=org_id))["held"]


REMOVE_ORGANIZATION = """
MATCH (o:Organization {id: $org})
OPTIONAL MATCH (n:Client|Deal|ApiKey|Settings|Trace|RunTrace|AccessEntry|Idempotency WHERE n.org = $org)
DETACH DELETE n, o
"""


async def remove_organization(tx: Tx, org_id: OrganizationId, *, at: datetime) -> None:
    """Delete the organization with its clients, deals, memberships, keys, settings and traces of empty searches.

    Members who are members nowhere else give up their names, as `remove_member` has them do.
    """
    members = [member.user_id for member in await list_members(tx, org_id)]
    await rows(tx, REMOVE_ORGANIZATION, org=org_id)
    await release_names(tx, members, at=at)


MERGE_MEMBER = """
MATCH (o:Organization {id: $org})
MERGE (u:User {name: $name}) ON CREATE SET u.id = $id, u.createdAt = $at
MERGE (u)-[m:MEMBER_OF]->(o) ON CREATE SET m.role = $role, m.since = $at
SET m.role = $role
RETURN u.id AS id
"""


async def merge_member(tx: Tx, *, org_id: OrganizationId, name: str, role: Role, new_id: str, at: datetime) -> UserId:
    """The user called `name`, now a member of `org_id` in `role`."""
    found = await _one(tx, MERGE_MEMBER, org=org_id, name=name, role=role.value, id=new_id, at=ms(at))
    return UserId(found["id"])


FIND_MEMBER = """
MATCH (u:User)-[m:MEMBER_OF]->(:Organization {id: $org})
WHERE u.name = $key OR u.id = $key
RETURN u.id AS id, u.name AS name, m.role AS role ORDER BY u.id = $key DESC LIMIT 1
"""


async def find_member(tx: Tx, *, org_id: OrganizationId, key: str) -> Member | None:
    """The member of `org_id` with the name or id `key`."""
    found = await row(tx, FIND_MEMBER, org=org_id, key=key)
    return _member(found) if found else None


LIST_MEMBERS = """
MATCH (u:User)-[m:MEMBER_OF]->(:Organization {id: $org})
RETURN u.id AS id, u.name AS name, m.role AS role ORDER BY name
"""


async def list_members(tx: Tx, org_id: OrganizationId) -> list[Member]:
    """Everyone in the organization, by name."""
    return [_member(found) for found in await rows(tx, LIST_MEMBERS, org=org_id)]


LOCK_ORGANIZATION = "MATCH (o:Organization {id: $org}) SET o.lock = $at"


async def lock_organization(tx: Tx, org_id: OrganizationId, *, at: datetime) -> None:
    """Let nobody else change the members of `org_id` before this transaction ends."""
    await rows(tx, LOCK_ORGANIZATION, org=org_id, at=ms(at))


REMOVE_MEMBER = """
MATCH (u:User {id: $user})-[m:MEMBER_OF]->(:Organization {id: $org})
OPTIONAL MATCH (u)-[a:ASSIGNED_TO]->({org: $org})
OPTIONAL MATCH (k:ApiKey {org: $org})-[:OF]->(u)
SET k.revokedAt = coalesce(k.revokedAt, $at)
REMOVE k.hash
DELETE m, a
"""

RELEASE_NAMES = """
UNWIND $users AS id
MATCH (u:User {id: id}) WHERE u.name IS NOT NULL AND NOT EXISTS { (u)-[:MEMBER_OF]->() }
SET u.formerName = u.name, u.removedAt = $at
REMOVE u.name
"""


async def release_names(tx: Tx, users: Sequence[str], *, at: datetime) -> None:
    """Have those of `users` who are members nowhere give up their names."""
    await rows(tx, RELEASE_NAMES, users=users, at=ms(at))


async def remove_member(tx: Tx, *, org_id: OrganizationId, user_id: UserId, at: datetime) -> None:
    """End the membership with its assignments and keys.

    A user who is a member nowhere keeps the id, as author of what they wrote, and gives up the name: whoever
    takes it next is somebody else and inherits no private partition.
    """
    await rows(tx, REMOVE_MEMBER, org=org_id, user=user_id, at=ms(at))
    await release_names(tx, [user_id], at=at)


MERGE_CLIENT = """
MATCH (o:Organization {id: $org})
MERGE (c:Client {org: $org, name: $name}) ON CREATE SET c.id = $id, c.createdAt = $at
MERGE (c)-[:IN]->(o)
RETURN c.id AS id
"""


async def merge_client(tx: Tx, *, org_id: OrganizationId, name: str, new_id: str, at: datetime) -> Client:
    """The client of `org_id` called `name`."""
    found = await _one(tx, MERGE_CLIENT, org=org_id, name=name, id=new_id, at=ms(at))
    return Client(ClientId(found["id"]), name)


MERGE_DEAL = """
MATCH (c:Client {id: $client, org: $org})
MERGE (d:Deal {clientId: $client, name: $name}) ON CREATE SET d.id = $id, d.org = $org, d.createdAt = $at
MERGE (d)-[:IN]->(c)
RETURN d.id AS id
"""


async def merge_deal(tx: Tx, *, org_id: OrganizationId, client: Client, name: str, new_id: str, at: datetime) -> Deal:
    """The deal of `client` called `name`."""
    found = await _one(tx, MERGE_DEAL, org=org_id, client=client.id, name=name, id=new_id, at=ms(at))
    return Deal(DealId(found["id"]), client, name)


FIND_CLIENT = """
MATCH (c:Client {org: $org}) WHERE c.name = $key OR c.id = $key
RETURN c.id AS id, c.name AS name ORDER BY c.id = $key DESC LIMIT 1
"""


async def find_client(tx: Tx, *, org_id: OrganizationId, key: str) -> Client | None:
    """The client of `org_id` with the name or id `key`."""
    found = await row(tx, FIND_CLIENT, org=org_id, key=key)
    return Client(ClientId(found["id"]), found["name"]) if found else None


FIND_DEALS = """
MATCH (d:Deal {org: $org})-[:IN]->(c:Client)
WHERE (d.name = $key OR d.id = $key) AND ($client IS NULL OR c.id = $client)
RETURN d.id AS dealId, d.name AS dealName, c.id AS clientId, c.name AS clientName
"""


async def find_deals(tx: Tx, *, org_id: OrganizationId, key: str, client: Client | None) -> list[Deal]:
    """The deals with the name or id `key`, of `client` alone where one is given."""
    found = await rows(tx, FIND_DEALS, org=org_id, key=key, client=client.id if client else None)
    return [_deal(deal) for deal in found]


ASSIGN = """
MATCH (u:User {id: $user})-[:MEMBER_OF]->(:Organization {id: $org})
MATCH (t:Client|Deal {id: $target}) WHERE t.org = $org
MERGE (u)-[a:ASSIGNED_TO]->(t) ON CREATE SET a.since = $at
RETURN t.id AS id
"""


async def assign(tx: Tx, *, org_id: OrganizationId, user_id: UserId, target: ClientId | DealId, at: datetime) -> bool:
    """Whether the member is now assigned to `target`; False if there is no such member or target."""
    return await row(tx, ASSIGN, org=org_id, user=user_id, target=target, at=ms(at)) is not None


UNASSIGN = """
MATCH (u:User {id: $user})-[a:ASSIGNED_TO]->(t:Client|Deal {id: $target}) WHERE t.org = $org
DELETE a
RETURN t.id AS id
"""


async def unassign(tx: Tx, *, org_id: OrganizationId, user_id: UserId, target: ClientId | DealId) -> bool:
    """Whether there was such an assignment; there is none now."""
    return await row(tx, UNASSIGN, org=org_id, user=user_id, target=target) is not None


ASSIGNMENTS = """
MATCH (u:User {id: $user})-[:ASSIGNED_TO]->(t:Client|Deal) WHERE t.org = $org
OPTIONAL MATCH (t)-[:IN]->(of:Client)
WITH t, coalesce(of, t) AS c
RETURN c.id AS clientId, c.name AS clientName,
  CASE WHEN t:Deal THEN t.id END AS dealId, CASE WHEN t:Deal THEN t.name END AS dealName
ORDER BY clientName, dealName
"""


async def assignments(tx: Tx, *, org_id: OrganizationId, user_id: UserId) -> list[Assignment]:
    """What the member is assigned to, as it was given: clients without their deals."""
    found = await rows(tx, ASSIGNMENTS, org=org_id, user=user_id)
    return [Assignment(_client(one), _deal(one) if one["dealId"] else None) for one in found]


def _member(found: Row) -> Member:
    return Member(UserId(found["id"]), found["name"], Role(found["role"]))


def _client(found: Row) -> Client:
    return Client(ClientId(found["clientId"]), found["clientName"])


def _deal(found: Row) -> Deal:
    return Deal(DealId(found["dealId"]), _client(found), found["dealName"])


async def _one(tx: Tx, statement: LiteralString, **parameters: object) -> Row:
    found = await row(tx, statement, **parameters)
    assert found is not None, "a statement that merges returns one row"  # noqa: S101 # an invariant of Cypher
    return found
