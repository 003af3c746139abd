"""What else the cycle proposes: provisional facts that wait, entities that may be one, what is due for rehearsal."""

from collections.abc import Sequence
from dataclasses import replace

from graph_mem.core import candidates
from graph_mem.core.candidates import Candidate
from graph_mem.core.model import Entity, EntityId, Fact, Page, Record
from graph_mem.core.proposals import Proposal, ProposalKind, shape_of
from graph_mem.services import filing
from graph_mem.services.scanning import MOST_OF_A_KIND, Round
from graph_mem.store import candidates as store
from graph_mem.store import records, rehearsals, reviews
from graph_mem.store.candidates import Cursor
from graph_mem.store.db import Tx
from graph_mem.store.rehearsals import Enrolled

_PAGE = 1000


async def waiting(round: Round) -> list[Proposal]:
    """Proposals for provisional facts that have none."""
    made: list[Proposal] = []
    cursor = Cursor()
    while len(made) < MOST_OF_A_KIND and (page := await _provisional(round, cursor)):
        cursor = store.behind(page[-1][0])
        proposals = [filing.of_fact(round.deps, fact, sources, by=fact.author) for fact, sources in page]
        made += await _unfiled(round, proposals)
    return made[:MOST_OF_A_KIND]


async def _provisional(round: Round, cursor: Cursor) -> list[tuple[Fact, list[str]]]:
    async def work(tx: Tx) -> list[tuple[Fact, list[str]]]:
        partition = round.place.partition_token
        return await store.provisional(tx, round.principal, partition=partition, after=cursor, limit=_PAGE)

    return await round.deps.db.read(work)


async def _unfiled(round: Round, made: Sequence[Proposal]) -> list[Proposal]:
    async def work(tx: Tx) -> set[str]:
        return await reviews.known(tx, [one.key for one in made])

    known = await round.deps.db.read(work) if made else frozenset[str]()
    return [one for one in made if one.key not in known]


async def twins(round: Round) -> list[Proposal]:
    """Proposals to merge entities whose names are nearly one, with memories that mention them."""
    entities = {entity.id: entity for entity in await _entities(round)}
    found = candidates.twins(list(entities.values()))
    made = [_merge(round, entities[EntityId(one.subject_ids[0])], one) for one in found]
    fresh = sorted(await _unfiled(round, made), key=lambda one: -one.score)[:MOST_OF_A_KIND]
    ids = sorted({id for one in fresh for id in one.subject_ids})

    async def work(tx: Tx) -> dict[str, list[str]]:
        return await store.mentioning(tx, round.principal, ids)

    cited = await round.deps.db.read(work) if ids else dict[str, list[str]]()
    return [
        replace(one, evidence_ids=tuple(dict.fromkeys(m for id in one.subject_ids for m in cited.get(id, ()))))
        for one in fresh
    ]


async def _entities(round: Round) -> list[Entity]:
    found: list[Entity] = []
    last = ("", "")

    async def work(tx: Tx) -> list[Entity]:
        partition = round.place.partition_token
        return await store.entities(tx, round.principal, partition=partition, after=last, limit=_PAGE)

    while page := await round.deps.db.read(work):
        found += page
        last = (page[-1].name, page[-1].id)
    return found


def _merge(round: Round, heir: Entity, found: Candidate) -> Proposal:
    return filing.proposal(
        round.deps,
        heir.place,
        found.kind,
        found.subject_ids,
        shape=shape_of(heir.label),
        score=found.score,
        gate=found.gate,
        reason=found.reason,
        basis=found.basis,
        signals=found.signals,
    )


async def due(round: Round) -> list[Proposal]:
    """Proposals to look again at what is due for rehearsal."""

    async def work(tx: Tx) -> tuple[list[Enrolled], dict[str, Record]]:
        enrolled = await rehearsals.page(tx, round.principal, until=round.now, page=Page(MOST_OF_A_KIND))
        return enrolled, {**await records.by_ids(tx, round.principal, [one.record_id for one in enrolled])}

    enrolled, found = await round.deps.db.read(work)
    return [
        _again(round, one, found[one.record_id])
        for one in enrolled
        if one.record_id in found
        and found[one.record_id].place.owner_id == round.place.owner_id
        and not round.pending(ProposalKind.REVALIDATE, one.record_id)
    ]


def _again(round: Round, one: Enrolled, record: Record) -> Proposal:
    return filing.proposal(
        round.deps,
        record.place,
        ProposalKind.REVALIDATE,
        [one.record_id],
        shape=filing.shape(record, round.standards.vocabulary),
        score=round.standards.strength(record, round.now),
        gate=f"rehearsal box {one.rehearsal.box}, due {one.rehearsal.due_at:%Y-%m-%d}",
        reason="It is time to look whether it still holds.",
        basis=(one.rehearsal.due_at,),
    )
