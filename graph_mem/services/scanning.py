"""One pass over the current memories of a partition: the best candidates of each kind, in memory that stays flat."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from graph_mem.core import candidates, gates
from graph_mem.core.candidates import Candidate, Seen
from graph_mem.core.lifecycle import ArchiveMode
from graph_mem.core.model import Place, Principal, RecordId
from graph_mem.core.proposals import Proposal, ProposalKind
from graph_mem.services import Deps, filing
from graph_mem.services.claiming import AWAY_AFTER
from graph_mem.services.standards import Standards
from graph_mem.store import candidates as store
from graph_mem.store import reviews
from graph_mem.store.candidates import Cursor
from graph_mem.store.db import Tx
from graph_mem.store.times import ms

MOST_OF_A_KIND = 200
"""Proposals of one kind that one cycle files: as many as people can look at; the best first, the others later."""

_PAGE = 1000
_TEXTS = 500
_JUDGED = 50


@dataclass(frozen=True, slots=True)
class Round:
    """One run of the cycle over one partition: by whose eyes, by which rules, when, and what is pending already."""

    deps: Deps
    principal: Principal
    standards: Standards
    place: Place
    now: datetime
    open: Mapping[ProposalKind, frozenset[str]]

    def pending(self, kind: ProposalKind, id: str) -> bool:
        return id in self.open.get(kind, frozenset())

    @property
    def mark(self) -> str:
        """Under which name it is kept how far texts were read for claims."""
        return f"claims {self.place.partition_token}"


@dataclass(frozen=True, slots=True)
class Scan:
    """How many memories were looked at, what follows from them, and those that changed or came up since last time, the
    first to change first; `more`: not all of these."""

    looked_at: int
    proposals: tuple[Proposal, ...]
    recent: tuple[Seen, ...]
    more: bool

    def read_until(self, read: int, *, now: datetime) -> Cursor:
        """Up to where texts have been read once the first `read` of `recent` have."""
        if read == len(self.recent) and not self.more:
            return Cursor(ms(now))
        return changed(self.recent[read - 1]) if read else Cursor()


class _Best:
    """The `most` best of what was offered: those with the highest score, or with the `lowest`."""

    def __init__(self, most: int, *, lowest: bool = False) -> None:
        self._most, self._sign = most, -1.0 if lowest else 1.0
        self._heap: list[tuple[float, str, Seen]] = []

    def offer(self, seen: Seen, score: float) -> None:
        item = (self._sign * score, seen.memory.id, seen)
        (heapq.heappush if len(self._heap) < self._most else heapq.heappushpop)(self._heap, item)

    def best(self) -> list[Seen]:
        """Best first."""
        return [seen for _, _, seen in sorted(self._heap, key=lambda item: (-item[0], item[1]))]


async def scan(round: Round) -> Scan:
    """Look at every current memory of the partition once."""
    best = {
        ProposalKind.ARCHIVE: _Best(MOST_OF_A_KIND, lowest=True),
        ProposalKind.DEMOTE: _Best(MOST_OF_A_KIND, lowest=True),
        ProposalKind.PROMOTE_MEMORY: _Best(MOST_OF_A_KIND),
    }
    rising, recent = _Best(_JUDGED), list[Seen]()
    since, more = await round.deps.db.read(lambda tx: store.marked(tx, round.mark)), False
    looked_at, cursor = 0, Cursor()
    while page := await _page(round, cursor):
        looked_at, cursor = looked_at + len(page), store.behind(page[-1].memory)
        recent = sorted([*recent, *(one for one in page if changed(one) > since)], key=changed)
        recent, more = recent[:_TEXTS], more or len(recent) > _TEXTS
        for one in page:
            if round.deps.judge is not None and one.memory.signals.retrievals:
                rising.offer(one, gates.judge(candidates.measured(one), round.standards.lifecycle).score)
        offered = [(one, found) for one in page for found in _candidates(round, one)]
        for one, found in await _new(round, offered):
            best[found.kind].offer(one, found.score)
    judged = await _judged(round, rising.best())
    everything = [one for each in best.values() for one in each.best()]
    made = [_proposal(round, one, found) for one in (*everything, *judged) for found in _candidates(round, one)]
    proposals = tuple({one.key: one for one in made}.values())
    return Scan(looked_at, proposals, tuple(recent), more)


async def _page(round: Round, cursor: Cursor) -> list[Seen]:
    async def work(tx: Tx) -> list[Seen]:
        partition = round.place.partition_token
        return await store.memories(tx, round.principal, partition=partition, after=cursor, limit=_PAGE)

    return await round.deps.db.read(work)


def _candidates(round: Round, one: Seen) -> Iterator[Candidate]:
    """What a memory is a candidate for and not pending as."""
    words, config = round.standards.vocabulary, round.standards.lifecycle
    found = [
        candidates.demotion(one, vocabulary=words, now=round.now),
        candidates.promotion(one, vocabulary=words, config=config),
    ]
    if config.archive is not ArchiveMode.OFF:
        weights = round.standards.weights
        found.append(candidates.weak(one, vocabulary=words, config=config, weights=weights, now=round.now))
    yield from (each for each in found if each is not None and not round.pending(each.kind, one.memory.id))


async def _new(round: Round, found: Sequence[tuple[Seen, Candidate]]) -> list[tuple[Seen, Candidate]]:
    """Those of `found` that were never filed: what people decided about does not stand before the others."""
    keys = [_proposal(round, one, candidate).key for one, candidate in found]
    known = await round.deps.db.read(lambda tx: reviews.known(tx, keys)) if keys else frozenset[str]()
    return [pair for pair, key in zip(found, keys, strict=True) if key not in known]


async def _judged(round: Round, rising: Sequence[Seen]) -> list[Seen]:
    """`rising` with what the judge says of their texts; none without a judge."""
    judge = round.deps.judge
    if judge is None:
        return []

    async def work(tx: Tx) -> dict[RecordId, str]:
        return await store.texts(tx, round.principal, [one.memory.id for one in rising])

    words = await round.deps.db.read(work)
    judged: list[Seen] = []
    for one in (one for one in rising if one.memory.id in words):
        judged.append(replace(one, judged=(await judge.judge(words[one.memory.id])).given))
        if len(judged) >= AWAY_AFTER and not any(last.judged for last in judged[-AWAY_AFTER:]):
            break
    return judged


def _proposal(round: Round, one: Seen, found: Candidate) -> Proposal:
    return filing.proposal(
        round.deps,
        one.memory.place,
        found.kind,
        found.subject_ids,
        shape=filing.shape(one.memory, round.standards.vocabulary),
        score=found.score,
        gate=found.gate,
        reason=found.reason,
        basis=found.basis,
        signals=found.signals,
        change=found.change,
        evidence_ids=found.subject_ids,
    )


def changed(seen: Seen) -> Cursor:
    """When the memory was saved or came up last, and which it is: there may be something to read in it since."""
    used = seen.memory.signals.last_retrieved_at
    return Cursor(ms(seen.memory.fresh_at if used is None else max(seen.memory.fresh_at, used)), seen.memory.id)
