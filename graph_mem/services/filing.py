"""Putting proposals together: ids, keys and shapes, the same way wherever one is filed."""

from collections.abc import Mapping, Sequence
from typing import Any

from graph_mem.core.model import Fact, Memory, Place, Record, UserId
from graph_mem.core.proposals import AUTOMATIC, Proposal, ProposalKind, ProposalState, proposal_key, shape_of
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.services import Deps


def shape(record: Record, vocabulary: Vocabulary, what: str = "") -> str:
    """The sort of change that trust is counted for: the label, marked where it is a position or protected."""
    marks = [what] if what else []
    if isinstance(record, Memory):
        label = vocabulary.labels.get(record.label)
        marks += ["position"] if record.position else []
        marks += ["protected"] if label is not None and label.protected else []
        marks += ["evergreen"] if record.signals.evergreen else []
    return shape_of(record.label, *marks)


def of_fact(deps: Deps, fact: Fact, evidence_ids: Sequence[str], *, by: UserId) -> Proposal:
    """The proposal to let a provisional fact into its slot."""
    return proposal(
        deps,
        fact.place,
        ProposalKind.PROMOTE_FACT,
        [fact.id],
        shape=shape_of("fact"),
        score=fact.confidence,
        gate="the write gate: provisional for whoever saved it",
        reason="Saved by somebody whose facts do not count here at once.",
        basis=(),
        by=by,
        signals={"confidence": fact.confidence, "sources": len(evidence_ids)},
        evidence_ids=evidence_ids,
    )


def proposal(
    deps: Deps,
    place: Place,
    kind: ProposalKind,
    subject_ids: Sequence[str],
    *,
    shape: str,
    score: float,
    gate: str,
    reason: str,
    basis: Sequence[object],
    by: UserId = AUTOMATIC,
    signals: Mapping[str, float] | None = None,
    evidence_ids: Sequence[str] = (),
    change: Mapping[str, Any] | None = None,
) -> Proposal:
    """A pending proposal; `basis` as in `proposal_key`."""
    return Proposal(
        id=deps.new_id("prop"),
        key=proposal_key(place, kind, subject_ids, *basis),
        place=place,
        kind=kind,
        shape=shape,
        state=ProposalState.PENDING,
        subject_ids=tuple(subject_ids),
        evidence_ids=tuple(evidence_ids),
        signals=signals or {},
        score=score,
        gate=gate,
        reason=reason,
        proposed_at=deps.clock(),
        proposed_by=by,
        change=change or {},
    )
