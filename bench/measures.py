"""Figures of a run, as the field computes them, and how often each tier is right."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import ir_measures
from ir_measures import RR, R, nDCG

from bench.sets import DataSet, Document, Question
from graph_mem.core.retrieval import Tier

_MEASURES = {"nDCG@10": nDCG @ 10, "Recall@5": R @ 5, "Recall@10": R @ 10, "MRR@10": RR @ 10}


@dataclass(frozen=True, slots=True)
class Answered:
    """What one run answered to a question: documents best first, with tiers where the run has any."""

    question: Question
    documents: Sequence[str]
    tiers: Sequence[Tier] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run over one set."""

    run: str
    data: str
    measures: Mapping[str, float]
    tiers: Mapping[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])


def figures(run: str, data: DataSet, answers: Sequence[Answered]) -> Figures:
    """The figures of `answers`: by ir-measures, and what the set is about."""
    qrels = [
        ir_measures.Qrel(one.question.id, document, grade)
        for one in answers
        for document, grade in one.question.relevant.items()
    ]
    scored = [
        ir_measures.ScoredDoc(one.question.id, document, float(-place))
        for one in answers
        for place, document in enumerate(one.documents)
    ]
    found = ir_measures.calc_aggregate(list(_MEASURES.values()), qrels, scored)
    measures = {name: float(found[measure]) for name, measure in _MEASURES.items()}
    return Figures(run, data.name, measures | _special(data, answers), _tiers(answers))


def _special(data: DataSet, answers: Sequence[Answered]) -> dict[str, float]:
    if data.are_facts:
        current = [one for one in answers if one.question.as_of is None]
        as_of = [one for one in answers if one.question.as_of is not None]
        stale = _share(_stale_rows(data, current))
        return {"current first": _first(current), "stale rows": stale, "as-of first": _first(as_of)}
    sessions = {document.id: document.session for document in data.documents}
    if any(document.meta.get("session") for document in data.documents):
        return {"session hit@10": _share(_session_hit(one, sessions) for one in answers)}
    return {}


def _stale_rows(data: DataSet, answers: Sequence[Answered]) -> Iterable[bool]:
    """Of every row of `answers`, whether a later fact of its subject and relation replaced it."""
    latest = {
        _slot(document): document.id for document in sorted(data.documents, key=lambda one: str(one.meta["time"]))
    }
    replaced = {document.id for document in data.documents if latest[_slot(document)] != document.id}
    return (document in replaced for one in answers for document in one.documents)


def _slot(document: Document) -> tuple[str, str]:
    return document.meta["subject"], document.meta["relation"]


def _first(answers: Sequence[Answered]) -> float:
    return _share(bool(one.documents) and one.documents[0] in one.question.relevant for one in answers)


def _session_hit(one: Answered, sessions: Mapping[str, str]) -> bool:
    wanted = {sessions[document] for document in one.question.relevant if document in sessions}
    return any(sessions.get(document) in wanted for document in one.documents[:10])


def _share(hits: Iterable[bool]) -> float:
    counted = list(hits)
    return sum(counted) / len(counted) if counted else 0.0


def _tiers(answers: Sequence[Answered]) -> dict[str, tuple[int, float]]:
    found: dict[str, list[bool]] = {}
    for one in answers:
        for document, tier in zip(one.documents, one.tiers, strict=False):
            found.setdefault(tier.value, []).append(document in one.question.relevant)
    return {tier.value: (len(found[tier.value]), _share(found[tier.value])) for tier in Tier if tier.value in found}
