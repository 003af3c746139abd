"""What the commands `search` and `sweep` do."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import shorten
from typing import Any, cast

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from graph_mem import app
from graph_mem.cli.acting import enrolled
from graph_mem.cli.documents import as_object
from graph_mem.cli.output import Output
from graph_mem.config import Settings
from graph_mem.core.fitting import Fit
from graph_mem.core.model import RecordId, is_id
from graph_mem.core.retrieval import Query, ScopeName, SearchPage
from graph_mem.errors import InvalidInput
from graph_mem.services import fitting, recall
from graph_mem.services.fitting import Labelled

_BEST_SHOWN = 21
_SHOWN_CHARS = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A search as the command line names it."""

    organization: str
    user: str
    client: str | None
    deal: str | None
    text: str
    first: int


async def show_results(settings: Settings, asked: Asked, output: Output) -> None:
    """Search, and print the page."""
    async with app.opened(settings, light=True) as deps:
        place, principal = await enrolled(
            deps, organization=asked.organization, user=asked.user, client=asked.client, deal=asked.deal
        )
        await deps.embedder.settled()
        scope = ScopeName(place.client_id, place.deal_id) if asked.client or asked.deal else None
        page = await recall.search_page(deps, principal, Query(asked.text, scope=scope), first=asked.first)
    trace = page.trace
    if trace.degraded_reason:
        output.note(f"{trace.mode.value}: {trace.degraded_reason}")
    output.note(
        f"{trace.fused_candidates} candidates, {trace.below_floor} below the floor, {trace.passed_over} passed over,"
        f" {trace.pending} pending; {trace.took_ms:.0f} ms; trace {trace.id}"
    )
    output.show(_document(page), _table(page))
    if not falls([hit.score.final for hit in page.hits]):
        output.note(f"The order weighs variety and sources beside the score; see trace {trace.id}")


def falls(scores: Sequence[float]) -> bool:
    """Whether none of the scores is above the one before it, as they are shown."""
    return all(round(before, 3) >= round(after, 3) for before, after in pairwise(scores))


def _document(page: SearchPage) -> dict[str, object]:
    return {
        "traceId": page.trace.id,
        "mode": page.trace.mode.value,
        "degradedReason": page.trace.degraded_reason,
        "hits": [
            {
                "rank": hit.rank,
                "id": hit.record.id,
                "tier": hit.tier.value,
                "score": as_object(hit.score),
                "snippet": hit.snippet,
            }
            for hit in page.hits
        ],
    }


def _table(page: SearchPage) -> Table:
    """One row a hit, its text first of all: two lines of it, and the id to go on with."""
    table = Table("#", "tier", "score", "words", "meaning", "strength", box=box.SIMPLE_HEAD)
    table.add_column("text and id", ratio=1)
    for hit in page.hits:
        score = hit.score
        table.add_row(
            str(hit.rank),
            hit.tier.value,
            f"{score.final:.3f}",
            _share(score.lexical),
            _share(score.vector),
            f"{score.strength:.2f}",
            Text(f"{shorten(hit.snippet, _SHOWN_CHARS, placeholder='...')}\n{hit.record.id}"),
        )
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


async def show_sweep(
    settings: Settings, lines: Sequence[str], *, organization: str, user: str, apply: bool, output: Output
) -> None:
    """Fit to the labelled queries in `lines`, print what each setting gives, and apply the best if told to."""
    labelled = [_labelled(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    async with app.opened(settings, light=True) as deps:
        _, principal = await enrolled(deps, organization=organization, user=user)
        await deps.embedder.settled()
        found = await fitting.try_settings(deps, principal, labelled)
        version = (await fitting.apply(deps, principal, found)).version if apply else None
    if version is None:
        output.note("Nothing was changed: --apply puts the best setting in force.")
    else:
        output.note(f"In force as version {version}.")
    output.show({**_fit_document(found), "appliedVersion": version}, _fit_view(found))


def _labelled(number: int, line: str) -> Labelled:
    wrong = InvalidInput(
        f'Line {number}: expected {{"query": "...", "relevant": [ids]}}.', path=("labelled", str(number))
    )
    try:
        value: object = json.loads(line)
    except ValueError:
        raise wrong from None
    if not isinstance(value, dict):
        raise wrong
    row = cast("dict[str, Any]", value)
    text, relevant = row.get("query"), row.get("relevant")
    if not isinstance(text, str) or not isinstance(relevant, list):
        raise wrong
    ids = [id for id in cast("list[Any]", relevant) if isinstance(id, str) and is_id(id, "mem", "fact")]
    if len(ids) != len(cast("list[Any]", relevant)):
        raise wrong
    return Labelled(text, frozenset(map(RecordId, ids)))


def _fit_document(found: Fit) -> dict[str, object]:
    config = found.config
    return {
        "best": {
            "lexicalWeight": config.lexical_weight,
            "vectorWeight": config.vector_weight,
            "fusedFloor": config.fused_floor,
            "tierHigh": config.tier_high,
            "tierStandard": config.tier_standard,
        },
        "before": as_object(found.before),
        "after": as_object(found.after),
        "trials": [{"lexicalWeight": trial.lexical_weight, **as_object(trial.figures)} for trial in found.trials],
        "tiers": {name: as_object(figures) for name, figures in found.tiers.items()},
    }


def _fit_view(found: Fit) -> Group:
    trials = Table("lexical weight", "nDCG@10", "recall@10")
    for trial in found.trials[:_BEST_SHOWN]:
        best = trial.lexical_weight == found.config.lexical_weight
        trials.add_row(
            f"{trial.lexical_weight:.2f}{' best' if best else ''}",
            f"{trial.figures.ndcg:.3f}",
            f"{trial.figures.recall:.3f}",
        )
    tiers = Table("tier", "from", "results", "right")
    starts = {"HIGH": found.config.tier_high, "STANDARD": found.config.tier_standard, "LOW": found.config.fused_floor}
    for name, start in starts.items():
        figures = found.tiers.get(name)
        right = f"{figures.precision:.3f}" if figures else "-"
        tiers.add_row(name, f"{start:.3f}", str(figures.results if figures else 0), right)
    return Group(trials, tiers)
