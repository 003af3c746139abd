"""Policies and variables: what an organization has decided that every run must see."""

from dataclasses import dataclass, field, replace

from graph_mem.core.canon import Policy, Variable, resolved
from graph_mem.core.model import Place, Principal
from graph_mem.core.retrieval import ScopeName
from graph_mem.core.text import check_name, check_text
from graph_mem.errors import Conflict, Forbidden, NotFound
from graph_mem.services import Deps
from graph_mem.store import canon, scopes
from graph_mem.store.db import Tx

_MAX_NAME_BYTES = 200
_MAX_POLICY_BYTES = 64 * 1024
_MAX_VALUE_BYTES = 8 * 1024


@dataclass(frozen=True, kw_only=True)
class NewPolicy:
    """A policy as a caller gives it, unchecked. `scope` None keeps the one it has."""

    name: str
    text: str
    id: str | None = None
    priority: int = 0
    active: bool = True
    scope: ScopeName | None = None
    expected_version: int | None = None


@dataclass(frozen=True, kw_only=True)
class NewValue:
    """A variable as a caller sets it, unchecked. `value` None removes it."""

    name: str
    value: str | None
    scope: ScopeName = field(default_factory=ScopeName)
    private: bool = False
    expected_version: int | None = None


async def save_policy(deps: Deps, principal: Principal, new: NewPolicy) -> Policy:
    """The policy as it now stands: a new one without `id`, a new version otherwise, none if nothing changed.

    Errors: Forbidden for whoever is neither owner nor admin; NotFound; Conflict for a stale version or a name that
    another policy of the scope has.
    """
    _check_decides(principal, "policies")
    name = check_name(new.name, path=("name",), max_bytes=_MAX_NAME_BYTES)
    text = check_text(new.text, path=("text",), max_bytes=_MAX_POLICY_BYTES)
    fresh_id = deps.new_id("pol")

    async def work(tx: Tx) -> Policy:
        await canon.lock(tx, principal.org_id, by=fresh_id)
        held = await _held_policy(tx, principal, new.id)
        _check_version(held, new.expected_version, what="policy")
        wanted = Policy(
            id=held.id if held else fresh_id,
            place=held.place if held and new.scope is None else await _place(tx, principal, new.scope or ScopeName()),
            name=name,
            text=text,
            priority=new.priority,
            active=new.active,
            version=held.version if held else 0,
        )
        await _check_name_is_free(tx, principal, wanted)
        if held is not None and wanted == held:
            return held
        saved = replace(wanted, version=wanted.version + 1)
        await canon.save_policy(tx, principal, saved)
        return saved

    return await deps.db.write(work)


async def set_variable(deps: Deps, principal: Principal, new: NewValue) -> Variable:
    """The variable as it now stands, or as it stood before it was removed.

    Errors: Forbidden for a shared one and whoever is neither owner nor admin; NotFound for removing what is not
    set; Conflict for a stale version, which is 0 for one that was never set.
    """
    if not new.private:
        _check_decides(principal, "shared variables")
    name = check_name(new.name, path=("name",), max_bytes=_MAX_NAME_BYTES)
    if new.value is not None and new.value != "":
        check_text(new.value, path=("value",), max_bytes=_MAX_VALUE_BYTES)
    fresh_id = deps.new_id("var")

    async def work(tx: Tx) -> Variable:
        await canon.lock(tx, principal.org_id, by=fresh_id)
        shared = await _place(tx, principal, new.scope)
        place = replace(shared, owner_id=principal.user_id) if new.private else shared
        held = await canon.variable_named(tx, principal, place, name)
        _check_version(held, new.expected_version, what="variable")
        if new.value is None and (held is None or held.value is None):
            raise NotFound(name, path=("name",))
        if held is not None and held.value == new.value:
            return held
        version = held.version + 1 if held else 1
        saved = Variable(held.id if held else fresh_id, place, name, new.value, version)
        await canon.save_variable(tx, principal, saved)
        return saved if held is None or new.value is not None else replace(held, version=version)

    return await deps.db.write(work)


async def policies(deps: Deps, principal: Principal) -> list[Policy]:
    """Every policy that `principal` may read, inactive ones too: highest priority first, then by name."""

    async def work(tx: Tx) -> list[Policy]:
        return await canon.policies(tx, principal)

    found = await deps.db.read(work)
    return sorted(found, key=lambda policy: (-policy.priority, policy.name, policy.id))


async def policy(deps: Deps, principal: Principal, id: str) -> Policy | None:
    async def work(tx: Tx) -> Policy | None:
        return await canon.policy(tx, principal, id)

    return await deps.db.read(work)


async def variables(deps: Deps, principal: Principal, *, scope: ScopeName) -> list[Variable]:
    """The values that hold in `scope`, by name: organization < client < deal < user."""

    async def work(tx: Tx) -> list[Variable]:
        place = await _place(tx, principal, scope)
        return resolved(await canon.variables(tx, principal, place.scope))

    return await deps.db.read(work)


def _check_decides(principal: Principal, what: str) -> None:
    if not principal.role.sees_all_shared:
        raise Forbidden(f"Only an owner or admin changes {what}; your role is {principal.role}.")


def _check_version(held: Policy | Variable | None, expected: int | None, *, what: str) -> None:
    version = held.version if held else 0
    if expected is not None and expected != version:
        raise Conflict(f"The {what} is at version {version}, expected {expected}.", current_version=version)


async def _held_policy(tx: Tx, principal: Principal, id: str | None) -> Policy | None:
    if id is None:
        return None
    held = await canon.policy(tx, principal, id)
    if held is None:
        raise NotFound(id, path=("id",))
    return held


async def _check_name_is_free(tx: Tx, principal: Principal, wanted: Policy) -> None:
    other = await canon.policy_named(tx, principal, wanted.place, wanted.name)
    if other is not None and other.id != wanted.id:
        raise Conflict(
            f"Policy {other.id} of this scope has the name {wanted.name!r} already; save that one by its id.",
            current_version=other.version,
        )


async def _place(tx: Tx, principal: Principal, scope: ScopeName) -> Place:
    """The shared place that `scope` names."""
    return Place(
        principal.org_id, await scopes.resolve(tx, principal, client_id=scope.client_id, deal_id=scope.deal_id)
    )
