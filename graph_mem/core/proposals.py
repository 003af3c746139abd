"""Proposals: changes that wait for a person. What one is, what makes two the same, and what a decision may do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from graph_mem.core.model import Place, UserId
from graph_mem.errors import Conflict


class ProposalKind(StrEnum):
    PROMOTE_FACT = "PROMOTE_FACT"
    PROMOTE_MEMORY = "PROMOTE_MEMORY"
    DEMOTE = "DEMOTE"
    ARCHIVE = "ARCHIVE"
    MERGE_ENTITIES = "MERGE_ENTITIES"
    REVALIDATE = "REVALIDATE"


class ProposalState(StrEnum):
    PENDING = "PENDING"
    KEPT = "KEPT"
    AUTO_KEPT = "AUTO_KEPT"
    REVERTED = "REVERTED"


class Decision(StrEnum):
    KEEP = "KEEP"
    REVERT = "REVERT"


class Effect(StrEnum):
    """What a decision does to the graph."""

    APPLY = "APPLY"
    UNDO = "UNDO"
    NOTHING = "NOTHING"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that somebody may keep. `subject_ids` would change, `evidence_ids` speak for it.

    `shape` is the sort of change within its kind that trust is counted for, `change` the values it would set,
    `gate` the rule that let it through. `undone`: it was kept unasked and a person took it back.
    """

    id: str
    key: str
    place: Place
    kind: ProposalKind
    shape: str
    state: ProposalState
    subject_ids: tuple[str, ...]
    evidence_ids: tuple[str, ...]
    signals: Mapping[str, float]
    score: float
    gate: str
    reason: str
    proposed_at: datetime
    proposed_by: UserId
    change: Mapping[str, Any] = field(default_factory=dict[str, Any])
    decided_at: datetime | None = None
    decided_by: UserId | None = None
    decision_reason: str | None = None
    undone: bool = False
    version: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from a decision: the state it leads to and what becomes of the change."""

    state: ProposalState
    effect: Effect
    undone: bool = False


def step(proposal: Proposal, decision: Decision) -> Step:
    """Where `decision` takes `proposal`; Conflict if it stands there already.

    A change that was kept unasked goes back into the queue, for a person to decide on; what a person reverted is
    over.
    """
    match proposal.state, decision:
        case (ProposalState.PENDING, Decision.KEEP):
            return Step(ProposalState.KEPT, Effect.APPLY, proposal.undone)
        case (ProposalState.AUTO_KEPT, Decision.KEEP):
            return Step(ProposalState.KEPT, Effect.NOTHING, proposal.undone)
        case (ProposalState.PENDING, Decision.REVERT):
            return Step(ProposalState.REVERTED, Effect.NOTHING, proposal.undone)
        case (ProposalState.KEPT, Decision.REVERT):
            return Step(ProposalState.REVERTED, Effect.UNDO, proposal.undone)
        case (ProposalState.AUTO_KEPT, Decision.REVERT):
            return Step(ProposalState.PENDING, Effect.UNDO, undone=True)
        case _:
            raise Conflict(
                f"The proposal is {proposal.state} already, decided by {proposal.decided_by}.",
                current_version=proposal.version,
            )


def proposal_key(place: Place, kind: ProposalKind, subject_ids: Sequence[str], *basis: object) -> str:
    """What makes two proposals the same one: kind, subjects, and the `basis` it was made on.

    The basis changes when there is reason to ask again, so that a declined proposal is not filed the next night.
    """
    parts = (place.org_id, place.owner_id or "", kind, *sorted(subject_ids), *map(str, basis))
    return sha256("\x1f".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class TrustCount:
    """What people decided about one shape of change. Automatic decisions are not among them."""

    kind: ProposalKind
    shape: str
    kept: int
    reverted: int


AUTOMATIC = UserId("graph-mem")
"""Who files proposals and keeps them unasked: nobody a person could be."""

LOW_RISK = frozenset({ProposalKind.ARCHIVE, ProposalKind.DEMOTE})
"""Kinds that change nothing that is said: their effect is on rank, and taken back without loss."""


def low_risk(kind: ProposalKind, shape: str) -> bool:
    """Whether a change may ever be kept unasked: on findings that nobody committed to, protects or refuted."""
    return kind in LOW_RISK and not shape.endswith("]")


def shape_of(label: str, *marks: str) -> str:
    """The shape of a change: what it is about, and in brackets, which no label has, what makes it delicate."""
    return f"{label} [{', '.join(marks)}]" if marks else label
