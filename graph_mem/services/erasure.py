"""Forgetting on purpose: a record's words go from everywhere, in one transaction; that it existed stays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from graph_mem.core.lifecycle import ReingestPolicy
from graph_mem.core.model import OrganizationId, Principal, Record, RecordId, is_id
from graph_mem.core.segments import chunks
from graph_mem.core.text import check_reason
from graph_mem.errors import Conflict, Forbidden, InvalidInput, NotFound
from graph_mem.services import Deps, applying, lifecycle
from graph_mem.services.standards import Standards, standards_of
from graph_mem.store import audit, erasure, records, runs
from graph_mem.store import remnants as remains
from graph_mem.store.db import Tx
from graph_mem.store.erasure import Plan, Secret
from graph_mem.store.remnants import Needles, Remnant

_TIMEOUT_S = 120.0
_TRIES = 10
_LEAST_PASSAGE = 24
_SCAN_TIMEOUT_S = 3600.0
_LATELY = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, or with a dry run would be: the ids, how many nodes of each kind, and for a proof the words.

    `elsewhere`: what the caller may read of where the same words stand that erasing leaves to whoever wrote them.
    """

    ids: tuple[RecordId, ...]
    counts: dict[str, int]
    dry_run: bool
    needles: tuple[str, ...]
    elsewhere: tuple[Remnant, ...] = ()


async def erase(
    deps: Deps,
    principal: Principal,
    id: str,
    *,
    confirm_id: str,
    reason: str,
    strict: bool = False,
    dry_run: bool = False,
) -> Erased:
    """Take the words of a record, of its exact copies and of what only it attests out of everything that holds them.

    `strict` takes the title as well. Errors: InvalidInput if `confirm_id` is another id; NotFound; Forbidden; Conflict
    if copies or facts of it are saved without end.
    """
    if confirm_id != id:
        raise InvalidInput("`confirmId` is not the id to erase, expected the same id again.", path=("confirmId",))
    if not reason.strip():
        raise InvalidInput("`reason` is empty, expected why this is erased.", path=("reason",))
    check_reason(reason)
    standards = await standards_of(deps, principal.org_id)

    async def work(tx: Tx) -> tuple[Erased, Plan] | None:
        record = await _record(tx, principal, id)
        if not lifecycle.may_decide(principal, record.place, standards.lifecycle):
            raise Forbidden(f"Your role {principal.role} erases nothing in this scope.")
        at = deps.clock()
        plan = await (
            erasure.plan(tx, principal, record.id) if dry_run else erasure.lock(tx, principal, record.id, at=at)
        )
        if plan is None:
            return None
        secrets = await erasure.secrets(tx, principal, plan.ids)
        needles = Needles.of([text for secret in secrets for text in secret.texts], only=record.place.owner_id)
        counts = await erasure.counts(tx, principal, plan, needles)
        if not dry_run:
            bans = [ban for secret in secrets for ban in secret.bans]
            await _carry_out(
                tx, deps, standards, principal, plan, secrets=secrets, needles=needles, at=at, reason=reason,
                bans=bans if standards.lifecycle.after_erase is ReingestPolicy.REFUSE else [], strict=strict,
            )  # fmt: skip
        return Erased(tuple(plan.ids), counts, dry_run, passages(secrets)), plan

    for _ in range(_TRIES):
        found = await (deps.db.read(work) if dry_run else deps.db.write(work, timeout_s=_TIMEOUT_S))
        if found is not None:
            deps.wakeups.notify()
            return await _told(deps, principal, *found)
    raise Conflict("Copies or facts of it are being saved all the time; try again when that is over.")


async def _told(deps: Deps, principal: Principal, erased: Erased, plan: Plan) -> Erased:
    """`erased` with where else the caller may read the same words."""
    needles = Needles.of(erased.needles)

    async def work(tx: Tx) -> tuple[list[Remnant], int]:
        return await remains.elsewhere(tx, principal, needles, but=[*plan.ids, *plan.entity_ids])

    found, number = await deps.db.read(work, timeout_s=_TIMEOUT_S)
    return replace(erased, elsewhere=tuple(found), counts={**erased.counts, "elsewhere": number})


async def forget_lately(deps: Deps, org_id: OrganizationId) -> None:
    """Take out of run traces what a context under way may have noted of a record while that was erased."""

    async def work(tx: Tx) -> None:
        ids = await erasure.erased_since(tx, org_id, deps.clock() - _LATELY)
        await runs.forget(tx, org_id=org_id, record_ids=ids)

    await deps.db.write(work)


async def _record(tx: Tx, principal: Principal, id: str) -> Record:
    found = await records.by_ids(tx, principal, [RecordId(id)]) if is_id(id, "mem", "fact") else {}
    if RecordId(id) not in found:
        raise NotFound(id, path=("id",))
    return found[RecordId(id)]


async def _carry_out(
    tx: Tx,
    deps: Deps,
    standards: Standards,
    principal: Principal,
    plan: Plan,
    *,
    secrets: Sequence[Secret],
    needles: Needles,
    reason: str,
    strict: bool,
    bans: Sequence[str],
    at: datetime,
) -> None:
    before = await records.by_ids(tx, principal, plan.ids)
    named = {} if strict else {one.id: one.title for one in secrets if one.title and not _tells(one, needles)}
    await erasure.erase(tx, principal, plan, needles, named=list(named), bans=bans, at=at)
    await runs.forget(tx, org_id=principal.org_id, record_ids=list(plan.ids))
    said = None if needles.told_by(reason) else reason
    for record in before.values():
        name = {"name": named[record.id]} if record.id in named else {}
        event = applying.event_of(
            deps, record.id, "erased", by=principal.user_id, at=at, version=record.version + 1,
            detail={**name, "strict": strict, **({"reason": said} if said else {})},
            strength=standards.strength(record, at),
        )  # fmt: skip
        await audit.append(tx, record.place, event)


def _tells(secret: Secret, needles: Needles) -> bool:
    """Whether the title says what its text says, or what another says that goes with it."""
    title = secret.title or ""
    return needles.told_by(title) or any(title in text for text in secret.texts)


def passages(secrets: Sequence[Secret]) -> tuple[str, ...]:
    """What a proof looks for: each text whole, and the parts that an index would have cut it in."""
    found = {text for secret in secrets for text in secret.texts}
    for text in list(found):
        found |= {part for span in chunks(text) if len(part := text[span.start : span.end].strip()) >= _LEAST_PASSAGE}
    return tuple(sorted(found))


async def remnants(deps: Deps, needles: Sequence[str], *, org_id: OrganizationId | None = None) -> list[Remnant]:
    """Whatever in the whole database, or in one organization, still holds one of `needles`.

    For an operator: no principal may see this.
    """
    wanted = Needles.of(needles, least=1)

    async def work(tx: Tx) -> list[Remnant]:
        return await remains.remnants(tx, wanted.parts, org_id=org_id)

    return await deps.db.read(work, timeout_s=_SCAN_TIMEOUT_S)
