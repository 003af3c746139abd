"""From a query to its whole ranking: legs, fusion, strength, order, variety, and the account of all that."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from graph_mem.core.fusion import Fused, Legs, Passage, fuse, meaning_share, words_share
from graph_mem.core.model import Place, Principal, RecordId
from graph_mem.core.participants import named
from graph_mem.core.ranking import Candidate, Ranked, diversify, rank, spread, words_of
from graph_mem.core.retrieval import (
    Calibration,
    Query,
    RankingProfile,
    RetrievalConfig,
    Tier,
    Trace,
    TracedHit,
)
from graph_mem.core.strength import days_between, floor_of, freshness, strength
from graph_mem.core.text import how_many, snippet
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.core.words import identifiers
from graph_mem.services import Deps, asking, legs
from graph_mem.services.legs import Asked, Harvest
from graph_mem.store.found import Found
from graph_mem.store.search import Where
from graph_mem.store.words import plain

KEPT = 100
"""How much of a ranking its trace keeps, at least."""

_NOTED = 10_000
_DEEPEST = 2_000
_COMPARED = 20
"""At least so many of the best are compared for variety."""

_LARGEST = 200
"""No more are compared, each with each, on the thread that everybody waits for: what the largest page needs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole ranking in its final order, with the units it was made from and the account of it."""

    query: Query
    where: Where
    ranked: Sequence[Ranked]
    units: Mapping[str, Found]
    exhausted: bool
    trace: Trace
    counted: frozenset[Place]
    """Where the pending are, and the passed over."""

    @property
    def places(self) -> frozenset[Place]:
        """Where everything is that the trace names or counts."""
        return self.counted | {unit.place for unit in self.units.values()}

    def snippet(self, id: RecordId) -> str:
        """The part of a ranked record's best passage that answers the query."""
        passage = next(one.passage_id for one in self.ranked if one.record_id == id)
        return snippet(self.units[passage].content, self.query.text[:4_000])


async def ask(deps: Deps, principal: Principal, query: Query, *, first: int) -> Answer:
    """The ranking of `query`, good for a page of `first`."""
    started, now = time.perf_counter(), deps.clock()
    config = await deps.settings.retrieval(principal.org_id)
    vocabulary = await deps.settings.vocabulary(principal.org_id)
    where = await asking.where(deps, principal, query, vocabulary)
    asked = Asked(query, where, depth=depth(first, config), wanted=first + 1, now=now)
    harvest = await legs.run(deps, principal, asked)
    units = _units(harvest)
    fusing = fuse(*shares(query, harvest, calibration(deps)), config)
    candidates = [_candidate(one, units[one.passage_id], config, vocabulary, now) for one in fusing.kept]
    ranked, unnamed = _named_only(rank(candidates, config), units, query)
    if query.min_tier is not None:
        ranked = [one for one in ranked if one.tier.rank <= query.min_tier.rank]
    compared = ranked[: min(_LARGEST, max(_COMPARED, 2 * first))]
    varied = diversify(ranked, [words_of(units[one.passage_id].content) for one in compared], config)
    sources = {unit.record_id: unit.source for unit in units.values() if unit.source}
    placed = spread(varied, sources, page=min(_LARGEST, first), share=config.source_share)
    trace = Trace(
        id=deps.new_id("trc"),
        at=now,
        by=principal.user_id,
        query=noted(query.text),
        mode=harvest.mode,
        degraded_reason=harvest.degraded_reason,
        legs=harvest.legs,
        scopes=where.scopes,
        config=config,
        fused_candidates=fusing.candidates,
        below_floor=fusing.below_floor,
        passed_over=harvest.surroundings.passed_over,
        pending=harvest.surroundings.pending,
        diversified=config.mmr_lambda < 1,
        took_ms=(time.perf_counter() - started) * 1000,
        hits=_traced(placed[: max(KEPT, first)]),
        notes=(*unnamed, *_notes(units, harvest)),
    )
    return Answer(query, where, placed, units, harvest.exhausted, trace, harvest.surroundings.places)


def _named_only(ranked: list[Ranked], units: Mapping[str, Found], query: Query) -> tuple[list[Ranked], tuple[str, ...]]:
    """`ranked` where nothing is HIGH that lacks every identifier of the query, and a note if anything was.

    Part and order numbers that differ in a character are near in words and in meaning, and are different things.
    """
    high = {one.record_id: units[one.passage_id].content for one in ranked if one.tier is Tier.HIGH}
    named = identifiers(query.text) if high else []
    missed = {id for id, content in high.items() if named and not any(name.search(content) for name in named)}
    if not missed:
        return ranked, ()
    kept = [replace(one, tier=Tier.STANDARD) if one.record_id in missed else one for one in ranked]
    note = f"No identifier of the query stands in {how_many(len(missed), 'result')}, which would be HIGH otherwise."
    return kept, (note,)


def noted(text: str) -> str:
    """A query as its trace keeps it: what no store takes is left out, and it ends somewhere."""
    return plain(text[:_NOTED])


def depth(first: int, config: RetrievalConfig) -> int:
    """How many units each leg looks at for a page of `first`, at least: three pages where age may move results."""
    pages = 3 if config.profile is RankingProfile.BLEND and config.memories_fade else 2
    return min(_DEEPEST, pages * first)


def shares(query: Query, harvest: Harvest, calibration: Calibration) -> tuple[list[Passage], Legs]:
    """What the legs brought, as passages and their shares."""
    units = _units(harvest)
    name = named(query.text, (name for one in units.values() for name in one.participants))
    passages = [
        Passage(
            one.unit_id,
            one.record_id,
            one.neighbours,
            participant=name is not None and any(name == other.casefold() for other in one.participants),
        )
        for one in units.values()
    ]
    words = harvest.wording.words if harvest.wording else 1
    # A query without a word has none in common with any text: that is no share, and not a leg that is missing.
    lexical = dict[str, float]() if harvest.wording is None else None
    if harvest.words is not None:
        lexical = {
            one.unit_id: words_share(one.raw, words=words, units=harvest.surroundings.units) for one in harvest.words
        }
    vector = None
    if harvest.meaning is not None:
        vector = {one.unit_id: meaning_share(one.raw, calibration) for one in harvest.meaning}
    return passages, Legs(lexical, vector)


def _units(harvest: Harvest) -> dict[str, Found]:
    return {one.unit_id: one for one in (*(harvest.words or ()), *(harvest.meaning or ()))}


def _candidate(fused: Fused, found: Found, config: RetrievalConfig, vocabulary: Vocabulary, now: datetime) -> Candidate:
    label = vocabulary.labels.get(found.label)
    measured = strength(
        found.signals,
        fresh_at=found.fresh_at,
        now=now,
        floor=floor_of(label, evergreen=found.signals.evergreen),
        weights=config.strength_weights,
    )
    half_life = label.half_life_days if label else None
    return Candidate(
        fused,
        strength=measured.value,
        importance=found.importance,
        freshness=freshness(days_between(found.fresh_at, now), half_life),
        own=found.place.private,
    )


def _notes(units: Mapping[str, Found], harvest: Harvest) -> tuple[str, ...]:
    over = how_many(harvest.over, "fact")
    ended = (f"{over} that would answer held until a day that is over.",) if harvest.over else ()
    return (*ended, *_uncentred(units))


def _uncentred(units: Mapping[str, Found]) -> tuple[str, ...]:
    if units and all(one.signals.centrality is None for one in units.values()):
        return ("Centrality is not computed for any of these records and took no part in their strength.",)
    return ()


def _traced(ranked: Sequence[Ranked]) -> tuple[TracedHit, ...]:
    return tuple(TracedHit(place, one.record_id, one.tier, one.score) for place, one in enumerate(ranked, start=1))


def calibration(deps: Deps) -> Calibration:
    """What scores mean with the embedding model in use."""
    profile = deps.embedder.profile
    return Calibration(profile.cosine_unrelated, profile.cosine_same)
