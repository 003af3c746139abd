"""From what texts state to provisional facts, each with its proposal: the only thing extraction ever writes."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from graph_mem.core import candidates, seats
from graph_mem.core.candidates import Seen
from graph_mem.core.gates import Verdict
from graph_mem.core.model import Memory, Principal, RecordId, Standing
from graph_mem.core.proposals import ProposalKind, shape_of
from graph_mem.core.seats import Seat
from graph_mem.core.text import how_many
from graph_mem.errors import InvalidInput, NotFound, ServiceUnavailable
from graph_mem.models.claims import StatedClaim
from graph_mem.models.statements import RuleClaims
from graph_mem.services import Deps, facts, filing
from graph_mem.services.facts import NewFact
from graph_mem.services.standards import Standards
from graph_mem.store import candidates as store
from graph_mem.store import reviews
from graph_mem.store.db import Tx

_CITED = 5
AWAY_AFTER = 3
"""A model that fails on so many texts in a row is asked no more in this cycle; the next one goes on with them."""


@dataclass(slots=True)
class _Found:
    """A claim with the memories that make it, the first of which decides where it belongs."""

    claim: StatedClaim
    seat: Seat
    by: list[Seen]


@dataclass(frozen=True, slots=True)
class _Worth:
    found: _Found
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Claimed:
    """The proposals that were filed, and how many of the texts, from the first, need not be read again."""

    ids: list[str]
    read: int


async def propose(
    deps: Deps, principal: Principal, standards: Standards, seen: Sequence[Seen], *, most: int
) -> Claimed:
    """File what `seen` state and no fact says yet: at most `most` proposals, best score first."""
    found, read = await _read(deps, principal, standards, seen)
    worth = [_Worth(one, _verdict(one, standards)) for one in found]
    passed = sorted((one for one in worth if one.verdict.passed), key=lambda one: -one.verdict.score)
    filed: list[str] = []
    for one in passed[:most]:
        try:
            filed += await _file(deps, principal, standards, one)
        except (InvalidInput, NotFound):
            continue
    return Claimed(filed, read if len(passed) <= most else 0)


async def _read(
    deps: Deps, principal: Principal, standards: Standards, seen: Sequence[Seen]
) -> tuple[list[_Found], int]:
    """The claims of the texts, the same claim of several texts once, without those that are facts or refused; and how
    many texts were read before the model went away."""

    async def texts(tx: Tx) -> dict[RecordId, str]:
        return await store.texts(tx, principal, [one.memory.id for one in seen])

    words = await deps.db.read(texts)
    extractor = deps.claims or RuleClaims(deps.extractor)
    found: dict[str, _Found] = {}
    failed = read = 0
    for one in seen:
        text = words.get(one.memory.id)
        claims = await _claims(extractor.claims(text, vocabulary=standards.vocabulary)) if text else ()
        read, failed = read + 1, failed + 1 if claims is None else 0
        if failed == AWAY_AFTER:
            break
        for claim in claims or ():
            seat = _seat(one.memory, claim, standards)
            found.setdefault(seat.rejection_key, _Found(claim, seat, [])).by.append(one)

    async def work(tx: Tx) -> set[str]:
        return await store.said(tx, principal, [one.seat for one in found.values()])

    said = await deps.db.read(work)
    return [one for key, one in found.items() if key not in said], read - failed


async def _claims(coming: Awaitable[tuple[StatedClaim, ...]]) -> tuple[StatedClaim, ...] | None:
    """The claims of one text; None where the model fails on it, none where it refuses it."""
    try:
        return await coming
    except InvalidInput:
        return ()
    except ServiceUnavailable:
        return None


def _seat(memory: Memory, claim: StatedClaim, standards: Standards) -> Seat:
    return seats.seat(
        memory.place,
        subject=claim.subject,
        relation=claim.relation,
        statement=claim.statement,
        many=standards.facts.is_many(claim.relation),
    )


def _verdict(found: _Found, standards: Standards) -> Verdict:
    return candidates.claim_score(
        statements=len(found.by),
        retrievals=sum(one.memory.signals.retrievals for one in found.by),
        query_kinds=len({kind for one in found.by for kind in one.memory.signals.query_kinds}),
        confidence=found.claim.confidence,
        config=standards.lifecycle,
    )


async def _file(deps: Deps, principal: Principal, standards: Standards, worth: _Worth) -> list[str]:
    """The provisional fact and its proposal, in one transaction."""
    found, verdict = worth.found, worth.verdict
    sources = [one.memory.id for one in found.by[:_CITED]]
    place = found.by[0].memory.place
    new = NewFact(
        subject=found.claim.subject,
        relation=found.claim.relation,
        statement=found.claim.statement,
        client_id=place.scope.client_id,
        deal_id=place.scope.deal_id,
        private=place.private,
        confidence=found.claim.confidence,
        source_ids=tuple(sources),
        extracted=True,
    )

    async def work(tx: Tx) -> list[str]:
        still = await store.texts(tx, principal, sources)
        if len(still) < len(sources) or await store.said(tx, principal, [found.seat]):
            return []
        saved = await facts.save_within(tx, deps, principal, new, rules=standards.facts)
        if saved.fact is None or saved.fact.standing is not Standing.PROVISIONAL:
            return []
        proposal = filing.proposal(
            deps,
            saved.fact.place,
            ProposalKind.PROMOTE_FACT,
            [saved.fact.id],
            shape=shape_of("fact", "extracted"),
            score=verdict.score,
            gate=verdict.reason,
            reason=f"Stated by {how_many(len(found.by), 'memory, which was', 'memories, which were')} retrieved"
            f" {how_many(_retrievals(found), 'time')}.",
            basis=(),
            signals={
                "confidence": found.claim.confidence,
                "statements": len(found.by),
                "retrievals": _retrievals(found),
            },
            evidence_ids=sources,
        )
        return await reviews.file(tx, [proposal])

    return await deps.db.write(work)


def _retrievals(found: _Found) -> int:
    return sum(one.memory.signals.retrievals for one in found.by)
