"""Policies, variables and pins: their current state, and every version that a run may have seen.

Writers of one organization's canon take turns: each write first takes the organization's canon lock, so what it
reads afterwards stays true until it commits.
"""

from collections.abc import Sequence
from typing import Any, LiteralString

from graph_mem.core.canon import Pin, Policy, Variable
from graph_mem.core.model import OrganizationId, Place, Principal, RecordId, Scope, place_of, token
from graph_mem.core.runs import VersionRef
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.visibility import access, admitted, place_properties, visible

_WHERE: LiteralString = ".org, .owner, .level, .clientId, .dealId"
POLICY_COLUMNS: LiteralString = f"{{.id, {_WHERE}, .name, .text, .priority, .active, .version}}"
VARIABLE_COLUMNS: LiteralString = f"{{.id, {_WHERE}, .name, .value, .version}}"
PIN_COLUMNS: LiteralString = f"{{.id, {_WHERE}, .memoryId, .slot, .order, .version}}"

LOCK = """
MERGE (l:Lease {name: $name})
SET l.lock = $lock
"""


async def lock(tx: Tx, org_id: OrganizationId, *, by: str) -> None:
    """Let nobody else change the canon of `org_id` before this transaction ends."""
    await rows(tx, LOCK, name=f"canon {org_id}", lock=by)


POLICIES = f"""
MATCH (p:Policy) WHERE {visible("p")}
RETURN p {POLICY_COLUMNS} AS node
"""
POLICY = f"""
MATCH (p:Policy {{id: $id}}) WHERE {visible("p")}
RETURN p {POLICY_COLUMNS} AS node
"""
POLICY_NAMED = f"""
MATCH (p:Policy {{key: $key}}) WHERE {visible("p")}
RETURN p {POLICY_COLUMNS} AS node
"""
SAVE_POLICY = """
MERGE (p:Policy {id: $id})
SET p += $properties
CREATE (v:PolicyVersion)-[:VERSION_OF]->(p)
SET v = $properties, v.key = null, v.id = $id + '/' + $properties.version, v.policyId = $id,
    v.savedAt = datetime.realtime().epochMillis, v.savedBy = $by
"""
POLICY_VERSIONS = f"""
MATCH (v:PolicyVersion) WHERE v.id IN $ids AND {visible("v")}
RETURN v {{.policyId, {_WHERE}, .name, .text, .priority, .active, .version}} AS node
"""


async def policies(tx: Tx, principal: Principal) -> list[Policy]:
    """Every policy that `principal` may read, inactive ones too, in no order."""
    return admitted(principal, (found["node"] for found in await rows(tx, POLICIES, **access(principal))), policy_of)


async def policy(tx: Tx, principal: Principal, id: str) -> Policy | None:
    return await _one(tx, principal, POLICY, policy_of, id=id)


async def policy_named(tx: Tx, principal: Principal, place: Place, name: str) -> Policy | None:
    """The policy called `name` at exactly this place."""
    return await _one(tx, principal, POLICY_NAMED, policy_of, key=_key("policy", place, name))


async def save_policy(tx: Tx, principal: Principal, policy: Policy) -> None:
    """Make `policy` the current state, and keep it as a version."""
    properties = {
        **place_properties(policy.place),
        "key": _key("policy", policy.place, policy.name),
        "name": policy.name,
        "text": policy.text,
        "priority": policy.priority,
        "active": policy.active,
        "version": policy.version,
    }
    await rows(tx, SAVE_POLICY, id=policy.id, properties=properties, by=principal.user_id)


async def policy_versions(tx: Tx, principal: Principal, refs: Sequence[VersionRef]) -> list[Policy]:
    """The named versions that `principal` may read."""
    found = await rows(tx, POLICY_VERSIONS, ids=_version_ids(refs), **access(principal))
    return admitted(principal, ({**one["node"], "id": one["node"]["policyId"]} for one in found), policy_of)


VARIABLES = f"""
MATCH (v:Variable) WHERE {visible("v")} AND v.scope IN $chain AND v.value IS NOT NULL
RETURN v {VARIABLE_COLUMNS} AS node
"""
VARIABLE_NAMED = f"""
MATCH (v:Variable {{key: $key}}) WHERE {visible("v")}
RETURN v {VARIABLE_COLUMNS} AS node
"""
SAVE_VARIABLE = """
MERGE (n:Variable {id: $id})
SET n += $properties, n.value = $properties.value
CREATE (v:VariableVersion)-[:VERSION_OF]->(n)
SET v = $properties, v.key = null, v.id = $id + '/' + $properties.version, v.variableId = $id,
    v.savedAt = datetime.realtime().epochMillis, v.savedBy = $by
"""
VARIABLE_VERSIONS = f"""
MATCH (v:VariableVersion) WHERE v.id IN $ids AND {visible("v")}
RETURN v {{.variableId, {_WHERE}, .name, .value, .version}} AS node
"""


async def variables(tx: Tx, principal: Principal, scope: Scope) -> list[Variable]:
    """Every value set in `scope` and around it, unresolved, in no order."""
    found = await rows(tx, VARIABLES, chain=chain(principal, scope), **access(principal))
    return admitted(principal, (one["node"] for one in found), variable_of)


async def variable_named(tx: Tx, principal: Principal, place: Place, name: str) -> Variable | None:
    """What was last set, or removed, under `name` at exactly this place."""
    return await _one(tx, principal, VARIABLE_NAMED, variable_of, key=_key("variable", place, name))


async def save_variable(tx: Tx, principal: Principal, variable: Variable) -> None:
    """Make `variable` the current state, and keep it as a version. A removed one stays as a node without value."""
    properties = {
        **place_properties(variable.place),
        "key": _key("variable", variable.place, variable.name),
        "name": variable.name,
        "value": variable.value,
        "version": variable.version,
    }
    await rows(tx, SAVE_VARIABLE, id=variable.id, properties=properties, by=principal.user_id)


async def variable_versions(tx: Tx, principal: Principal, refs: Sequence[VersionRef]) -> list[Variable]:
    """The named versions that `principal` may read."""
    found = await rows(tx, VARIABLE_VERSIONS, ids=_version_ids(refs), **access(principal))
    return admitted(principal, ({**one["node"], "id": one["node"]["variableId"]} for one in found), variable_of)


PINS = f"""
MATCH (p:Pin) WHERE {visible("p")} AND p.scope IN $chain
RETURN p {PIN_COLUMNS} AS node
"""
PIN = f"""
MATCH (p:Pin {{id: $id}}) WHERE {visible("p")}
RETURN p {PIN_COLUMNS} AS node
"""
PIN_OF = f"""
MATCH (p:Pin {{key: $key}}) WHERE {visible("p")}
RETURN p {PIN_COLUMNS} AS node
"""
SAVE_PIN = f"""
MATCH (m:Memory {{id: $properties.memoryId}}) WHERE {visible("m")} AND m.standing <> 'ERASED'
MERGE (p:Pin {{id: $id}})
SET p += $properties, p.savedAt = datetime.realtime().epochMillis, p.savedBy = $by
MERGE (p)-[:PINS]->(m)
RETURN p.id AS id
"""
REMOVE_PIN = f"""
MATCH (p:Pin {{id: $id}}) WHERE {visible("p")}
DETACH DELETE p
"""


async def pins(tx: Tx, principal: Principal, scope: Scope) -> list[Pin]:
    """Every pin in `scope` and around it, in no order."""
    found = await rows(tx, PINS, chain=chain(principal, scope), **access(principal))
    return admitted(principal, (one["node"] for one in found), pin_of)


async def pin(tx: Tx, principal: Principal, id: str) -> Pin | None:
    return await _one(tx, principal, PIN, pin_of, id=id)


async def pin_of_memory(tx: Tx, principal: Principal, place: Place, memory_id: RecordId) -> Pin | None:
    """The pin of a memory at exactly this place."""
    return await _one(tx, principal, PIN_OF, pin_of, key=_key("pin", place, memory_id))


async def save_pin(tx: Tx, principal: Principal, pin: Pin) -> bool:
    """Make `pin` the current state; False if its memory has gone meanwhile."""
    properties = {
        **place_properties(pin.place),
        "key": _key("pin", pin.place, pin.memory_id),
        "memoryId": pin.memory_id,
        "slot": pin.slot,
        "order": pin.order,
        "version": pin.version,
    }
    given = {"id": pin.id, "properties": properties, "by": principal.user_id, **access(principal)}
    return await row(tx, SAVE_PIN, **given) is not None


async def remove_pin(tx: Tx, principal: Principal, id: str) -> None:
    await rows(tx, REMOVE_PIN, id=id, **access(principal))


EVERGREEN = f"""
MATCH (r:Memory|Fact {{id: $id}}) WHERE {visible("r")}
SET r.evergreen = $evergreen, r.version = r.version + 1
"""


async def set_evergreen(tx: Tx, principal: Principal, id: RecordId, *, evergreen: bool) -> None:
    """Raise the floor of a locked record's strength, or take it away."""
    await rows(tx, EVERGREEN, id=id, evergreen=evergreen, **access(principal))


def chain(principal: Principal, scope: Scope) -> list[str]:
    """The index tokens of `scope` and those around it."""
    return [one.token(principal.org_id) for one in scope.chain()]


def policy_of(node: Row) -> Policy:
    return Policy(
        id=node["id"],
        place=place_of(node),
        name=node["name"],
        text=node["text"],
        priority=node["priority"],
        active=node["active"],
        version=node["version"],
    )


def variable_of(node: Row) -> Variable:
    return Variable(
        id=node["id"], place=place_of(node), name=node["name"], value=node["value"], version=node["version"]
    )


def pin_of(node: Row) -> Pin:
    return Pin(
        id=node["id"],
        place=place_of(node),
        memory_id=RecordId(node["memoryId"]),
        slot=node["slot"],
        order=node["order"],
        version=node["version"],
    )


def _key(kind: str, place: Place, name: str) -> str:
    return token(kind, place.partition_token, place.scope_token, name)


def _version_ids(refs: Sequence[VersionRef]) -> list[str]:
    return [f"{ref.id}/{ref.version}" for ref in refs]


async def _one(tx: Tx, principal: Principal, statement: LiteralString, make: Any, **given: Any) -> Any:
    found = await row(tx, statement, **given, **access(principal))
    made = admitted(principal, [found["node"]] if found else [], make)
    return made[0] if made else None
