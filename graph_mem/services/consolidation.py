"""The consolidation cycle: it looks at everything, writes nothing but proposals, and files none twice.

Each partition is read by itself: the shared one, then each member's own, whose proposals only that member sees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graph_mem.core import trust
from graph_mem.core.lifecycle import ArchiveMode
from graph_mem.core.model import OrganizationId, Place, Principal, Role, Scope, UserId
from graph_mem.core.proposals import (
    AUTOMATIC,
    Effect,
    Proposal,
    ProposalKind,
    ProposalState,
    Step,
    TrustCount,
    low_risk,
)
from graph_mem.errors import Conflict, Forbidden
from graph_mem.services import Deps, applying, claiming, erasure, gathering, lifecycle
from graph_mem.services.applying import Decider
from graph_mem.services.scanning import MOST_OF_A_KIND, Round, scan
from graph_mem.services.standards import Standards, standards_of
from graph_mem.store import candidates as store
from graph_mem.store import reviews, tenants
from graph_mem.store.db import Tx

_BATCH = 100
_EVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Report:
    """What a cycle did. `filed` are proposals that wait or were kept unasked, `by_kind` how many of each."""

    filed: int = 0
    auto_kept: int = 0
    looked_at: int = 0
    enrolled: int = 0
    by_kind: Mapping[str, int] = field(default_factory=dict[str, int])

    def __add__(self, other: "Report") -> "Report":
        kinds = sorted({*self.by_kind, *other.by_kind})
        return Report(
            self.filed + other.filed,
            self.auto_kept + other.auto_kept,
            self.looked_at + other.looked_at,
            self.enrolled + other.enrolled,
            {kind: self.by_kind.get(kind, 0) + other.by_kind.get(kind, 0) for kind in kinds},
        )


async def consolidate(deps: Deps, principal: Principal) -> Report:
    """Run the cycle on the shared records and on the caller's own, now. Errors: Forbidden but for owner and admin."""
    if not principal.role.sees_all_shared:
        raise Forbidden(f"Only an owner or admin runs the cycle; your role is {principal.role}.")
    standards = await standards_of(deps, principal.org_id)
    return await _shared(deps, principal.org_id, standards) + await _own(deps, principal, standards)


async def cycle(deps: Deps, org_id: OrganizationId) -> Report:
    """Run the cycle on everything of an organization."""
    standards = await standards_of(deps, org_id)

    async def members(tx: Tx) -> list[UserId]:
        return [member.user_id for member in await tenants.list_members(tx, org_id)]

    await erasure.forget_lately(deps, org_id)
    report = await _shared(deps, org_id, standards)
    for user_id in await deps.db.read(members):
        report += await _own(deps, Principal(org_id, user_id, Role.OWNER), standards)
    return report


async def _shared(deps: Deps, org_id: OrganizationId, standards: Standards) -> Report:
    return await _run(deps, Principal(org_id, AUTOMATIC, Role.OWNER), standards, Place(org_id, Scope()))


async def _own(deps: Deps, principal: Principal, standards: Standards) -> Report:
    own = Place(principal.org_id, Scope(), principal.user_id)
    return await _run(deps, replace(principal, role=Role.OWNER), standards, own)


async def _run(deps: Deps, principal: Principal, standards: Standards, place: Place) -> Report:
    """One run over one partition."""
    enrolled = await lifecycle.enrol(deps, principal, since=_EVER)
    await deps.db.write(lambda tx: reviews.withdraw(tx, principal))
    pending = await deps.db.read(lambda tx: reviews.open_subjects(tx, principal))
    round = Round(deps, principal, standards, place, deps.clock(), pending)
    found = await scan(round)
    claimed = await claiming.propose(deps, principal, standards, found.recent, most=MOST_OF_A_KIND)
    others = [*await gathering.waiting(round), *await gathering.twins(round), *await gathering.due(round)]
    filed = [*claimed.ids, *await _file(round, [*found.proposals, *others])]
    made = await deps.db.read(lambda tx: reviews.by_ids(tx, principal, filed))
    kept = await _keep_trusted(round, made)
    read_until = found.read_until(claimed.read, now=round.now)
    await deps.db.write(lambda tx: store.mark(tx, round.mark, read_until))
    deps.wakeups.notify()
    kinds = [one.kind.value for one in made]
    return Report(len(filed), kept, found.looked_at, enrolled, {kind: kinds.count(kind) for kind in sorted(set(kinds))})


async def _file(round: Round, proposals: Sequence[Proposal]) -> list[str]:
    """The ids of those that were not there before."""
    filed: list[str] = []
    for start in range(0, len(proposals), _BATCH):
        batch = proposals[start : start + _BATCH]

        async def work(tx: Tx, batch: Sequence[Proposal] = batch) -> list[str]:
            return await reviews.file(tx, batch)

        filed += await round.deps.db.write(work)
    return filed


async def _keep_trusted(round: Round, made: Sequence[Proposal]) -> int:
    """Keep unasked what the organization lets be kept unasked; returns how many."""
    config = round.standards.lifecycle
    if not config.auto_keep and config.archive is not ArchiveMode.AUTO:
        return 0

    async def work(tx: Tx) -> list[TrustCount]:
        return await reviews.trust(tx, round.principal, owner_id=round.place.owner_id)

    earned = {(one.kind, one.shape): one for one in await round.deps.db.read(work)}
    unasked = [one for one in made if _unasked(round, one, earned.get((one.kind, one.shape)))]
    return sum([await _keep(round, one.id) for one in unasked])


def _unasked(round: Round, one: Proposal, count: TrustCount | None) -> bool:
    config, safe = round.standards.lifecycle, low_risk(one.kind, one.shape)
    if one.kind is ProposalKind.ARCHIVE and config.archive is ArchiveMode.AUTO:
        return safe
    return count is not None and trust.keeps_unasked(count, config, low_risk=safe)


async def _keep(round: Round, id: str) -> bool:
    """Keep a pending proposal in nobody's name; False if its subject moved on meanwhile."""
    who = Decider(round.principal, AUTOMATIC, round.standards)

    async def work(tx: Tx) -> bool:
        proposal = await reviews.lock(tx, round.principal, id)
        if proposal is None or proposal.state is not ProposalState.PENDING:
            return False
        await applying.apply(tx, round.deps, who, proposal)
        step = Step(ProposalState.AUTO_KEPT, Effect.APPLY)
        await reviews.decide(tx, round.principal, id, step, by=AUTOMATIC, at=round.now, reason=None)
        return True

    try:
        return await round.deps.db.write(work)
    except Conflict:
        return False
