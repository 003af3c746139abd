"""Forgetting on purpose: a record's words go from everywhere, in one transaction; that it existed stays."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from graph_mem.core.lifecycle import ReingestPolicy
from graph_mem.core.model import OrganizationId, Principal, Record, RecordId, is_id
from graph_mem.core.segments import chunks
from graph_mem.errors import Conflict, DatabaseUnavailable, Forbidden, InvalidInput, NotFound
from graph_mem.services import Deps, applying, lifecycle
from graph_mem.services.standards import Standards, standards_of
from graph_mem.store import audit, erasure, records, runs, standing
from graph_mem.store.db import Tx
from graph_mem.store.erasure import Needles, Plan, Remnant, Secret

_TIMEOUT_S = 120.0
_LEAST_PASSAGE = 24
_SCAN_TIMEOUT_S = 3600.0
_LATELY = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, or with a dry run would be: the ids, how many nodes of each kind, and for a proof the words."""

    ids: tuple[RecordId, ...]
    counts: dict[str, int]
    dry_run: bool
    needles: tuple[str, ...]


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

    `strict` takes the title as well. Errors: InvalidInput if `confirm_id` is another id; NotFound; Forbidden.
    """
    if confirm_id != id:
        raise InvalidInput("`confirmId` is not the id to erase, expected the same id again.", path=("confirmId",))
    if not reason.strip():
        raise InvalidInput("`reason` is empty, expected why this is erased.", path=("reason",))
    standards = await standards_of(deps, principal.org_id)

    async def work(tx: Tx) -> Erased:
        record = await _record(tx, principal, id)
        if not lifecycle.may_decide(principal, record.place, standards.lifecycle):
            raise Forbidden(f"Your role {principal.role} erases nothing in this scope.")
        plan = await erasure.plan(tx, principal, record.id)
        if not dry_run:
            plan = await _lock(tx, principal, record.id, plan)
        secrets = await erasure.secrets(tx, principal, plan.ids)
        needles = Needles.of([text for secret in secrets for text in secret.texts], only=record.place.owner_id)
        counts = await erasure.counts(tx, principal, plan, needles)
        if not dry_run:
            bans = [ban for secret in secrets for ban in secret.bans]
            await _carry_out(
                tx, deps, standards, principal, plan, secrets=secrets, needles=needles, reason=reason, strict=strict,
                bans=bans if standards.lifecycle.after_erase is ReingestPolicy.REFUSE else [],
            )  # fmt: skip
        return Erased(tuple(plan.ids), counts, dry_run, passages(secrets))

    if dry_run:
        return await deps.db.read(work)
    erased = await deps.db.write(work, timeout_s=_TIMEOUT_S)
    with suppress(DatabaseUnavailable):  # it is erased; the nightly cycle hushes again
        await hush(deps, principal.org_id, erased.ids)
    deps.wakeups.notify()
    return erased


async def hush(deps: Deps, org_id: OrganizationId, ids: Sequence[RecordId]) -> None:
    """Take the query out of traces that were being written while the records they name were erased."""
    await deps.traces.flush()
    await deps.db.write(lambda tx: erasure.hush_traces(tx, org_id, ids))


async def hush_lately(deps: Deps, org_id: OrganizationId) -> None:
    """The same for whatever was erased in the last days, in case a process died in between."""
    ids = await deps.db.read(lambda tx: erasure.erased_since(tx, org_id, deps.clock() - _LATELY))
    if ids:
        await hush(deps, org_id, ids)


async def _record(tx: Tx, principal: Principal, id: str) -> Record:
    found = await records.by_ids(tx, principal, [RecordId(id)]) if is_id(id, "mem", "fact") else {}
    if RecordId(id) not in found:
        raise NotFound(id, path=("id",))
    return found[RecordId(id)]


async def _lock(tx: Tx, principal: Principal, id: RecordId, plan: Plan) -> Plan:
    """The plan as it is once everything in it is locked."""
    await standing.lock(tx, principal, [*plan.ids, *plan.shared_fact_ids])
    locked = await erasure.plan(tx, principal, id)
    if set(locked.ids) - set(plan.ids):
        raise Conflict("A copy or a fact of it was saved at this moment; try again.")
    return locked


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
) -> None:
    before = await records.by_ids(tx, principal, plan.ids)
    named = {secret.id: secret.title for secret in secrets if secret.title and not strict and not _tells(secret)}
    at = deps.clock()
    await erasure.erase(tx, principal, plan, needles, named=list(named), bans=bans, at=at)
    await runs.forget(tx, org_id=principal.org_id, record_ids=list(plan.ids))
    said = None if any(part in reason for part in (*needles.exact, *needles.parts)) else reason
    for record in before.values():
        name = {"name": named[record.id]} if record.id in named else {}
        event = applying.event_of(
            deps, record.id, "erased", by=principal.user_id, at=at, version=record.version + 1,
            detail={**name, "strict": strict, **({"reason": said} if said else {})},
            strength=standards.strength(record, at),
        )  # fmt: skip
        await audit.append(tx, record.place, event)


def _tells(secret: Secret) -> bool:
    """Whether the title says what the text says."""
    return any(secret.title and (secret.title in text or text in secret.title) for text in secret.texts)


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
        return await erasure.remnants(tx, wanted.parts, org_id=org_id)

    return await deps.db.read(work, timeout_s=_SCAN_TIMEOUT_S)
