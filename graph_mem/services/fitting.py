"""Fits an organization's retrieval to labelled queries of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from graph_mem.core.fitting import DEPTH, Fit, Judged, fit
from graph_mem.core.model import Principal, RecordId
from graph_mem.core.retrieval import Query, RetrievalConfig
from graph_mem.errors import InvalidInput
from graph_mem.services import Deps, asking, judging, legs, settings
from graph_mem.services.legs import Asked

_FITTED = ("lexical_weight", "vector_weight", "fused_floor", "tier_high", "tier_standard")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A query with the records that answer it."""

    text: str
    relevant: frozenset[RecordId]


async def try_settings(deps: Deps, principal: Principal, labelled: Sequence[Labelled]) -> Fit:
    """What fits `labelled` best, measured on the organization's own records.

    Errors: InvalidInput without any labelled query.
    """
    usable = [one for one in labelled if one.relevant]
    if not usable:
        raise InvalidInput("No query has a relevant record, expected at least one.", path=("labelled",))
    config = await deps.settings.retrieval(principal.org_id)
    return fit([await _judged(deps, principal, one, config) for one in usable], config)


async def _judged(deps: Deps, principal: Principal, one: Labelled, config: RetrievalConfig) -> Judged:
    query = Query(one.text)
    where = await asking.where(deps, principal, query, await deps.settings.vocabulary(principal.org_id))
    asked = Asked(query, where, depth=judging.depth(DEPTH, config), wanted=DEPTH + 1, now=deps.clock())
    harvest = await legs.run(deps, principal, asked)
    passages, shares = judging.shares(query, harvest, judging.calibration(deps))
    return Judged(passages, shares, one.relevant)


async def apply(deps: Deps, principal: Principal, found: Fit) -> RetrievalConfig:
    """Put a fit in force for the caller's organization."""
    changes = {name: getattr(found.config, name) for name in _FITTED}
    return await settings.update_retrieval(deps, principal, expected_version=found.config.version, changes=changes)
