"""What a search is asked, how it is configured, and the account it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from graph_mem.core.model import FAR, EntityId, Interval, Record, RecordId, RecordKind, Scope, UserId
from graph_mem.errors import InvalidInput


class RetrievalMode(StrEnum):
    HYBRID = "HYBRID"
    VECTOR = "VECTOR"
    LEXICAL = "LEXICAL"
    SUBSTRING = "SUBSTRING"


class LegState(StrEnum):
    RAN = "RAN"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"


class Tier(StrEnum):
    HIGH = "HIGH"
    STANDARD = "STANDARD"
    LOW = "LOW"

    @property
    def rank(self) -> int:
        """0 for the best."""
        return list(Tier).index(self)


class Fusion(StrEnum):
    WEIGHTED = "WEIGHTED"
    RRF = "RRF"


class RankingProfile(StrEnum):
    STRENGTH = "STRENGTH"
    BLEND = "BLEND"


SIGNALS = ("recency", "frequency", "diversity", "centrality", "confidence", "validation", "sourceTrust")

DEFAULT_STRENGTH_WEIGHTS: Mapping[str, float] = {
    "recency": 1.0,
    "frequency": 1.0,
    "diversity": 0.5,
    "centrality": 1.0,
    "confidence": 0.5,
    "validation": 1.0,
    "sourceTrust": 0.5,
}


@dataclass(frozen=True, slots=True)
class Calibration:
    """What raw scores mean with one embedding model: the cosine of texts that have nothing in common, and of a text
    with its own paraphrase. Between them lies 0..1. Source of the values: bench/README.md."""

    cosine_unrelated: float = 0.2
    cosine_same: float = 0.9


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """How one organization searches. Weights and thresholds are 0..1 unless a line says otherwise.

    `lexical_weight` and `vector_weight` are shares; the defaults are those of the embedding model.
    `neighbour_weight` is what a passage gains of the fused score of the better passage next to it in its source,
    `participant_weight` what a record gains, of its own, whose participant the query names. `strength_influence` is the
    most that strength can take from a score: matches that are not that near to each other keep their order.
    In `source_share` of a page, at its end, sources that are not on it yet go before nearly equal matches.
    """

    version: int = 0
    fusion: Fusion = Fusion.WEIGHTED
    profile: RankingProfile = RankingProfile.STRENGTH
    lexical_weight: float = 0.4
    vector_weight: float = 0.6
    lexical_only_cap: float = 0.35
    fused_floor: float = 0.02
    vector_threshold: float = 0.05
    tier_high: float = 0.56
    tier_standard: float = 0.44
    mmr_lambda: float = 0.7
    fusion_weight: float = 0.7
    importance_weight: float = 0.3
    fresh_weight: float = 0.2
    memories_fade: bool = True
    neighbour_weight: float = 0.25
    participant_weight: float = 0.3
    strength_influence: float = 0.1
    source_share: float = 0.5
    strength_weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_STRENGTH_WEIGHTS))
    updated_at: datetime | None = None
    updated_by: UserId | None = None

    def __post_init__(self) -> None:
        for name in _SHARES:
            _check_share(name, getattr(self, name))
        if self.lexical_weight + self.vector_weight <= 0:
            raise InvalidInput(
                "lexicalWeight and vectorWeight are both 0, expected one above.", path=("lexicalWeight",)
            )
        if self.tier_standard > self.tier_high:
            raise InvalidInput(
                f"tierStandard is {self.tier_standard}, expected at most tierHigh, {self.tier_high}.",
                path=("tierStandard",),
            )
        _check_strength_weights(self.strength_weights)

    def tier(self, fused: float) -> Tier:
        if fused >= self.tier_high:
            return Tier.HIGH
        return Tier.STANDARD if fused >= self.tier_standard else Tier.LOW

    def changed(self, changes: Mapping[str, Any]) -> "RetrievalConfig":
        """This configuration with some values replaced; InvalidInput for an unknown name or a value out of range."""
        unknown = sorted(set(changes) - OVERRIDABLE)
        if unknown:
            raise InvalidInput(f"Unknown settings: {', '.join(unknown)[:200]}.", path=tuple(unknown[:1]))
        return replace(self, **{name: _typed(name, value) for name, value in changes.items()})

    def overrides(self, defaults: "RetrievalConfig") -> dict[str, Any]:
        """What this configuration has other than `defaults`, as plain JSON values."""
        mine = {name: getattr(self, name) for name in sorted(OVERRIDABLE)}
        return {
            name: dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
            for name, value in mine.items()
            if value != getattr(defaults, name)
        }


_SHARES = (
    "lexical_weight",
    "vector_weight",
    "lexical_only_cap",
    "fused_floor",
    "vector_threshold",
    "tier_high",
    "tier_standard",
    "mmr_lambda",
    "fusion_weight",
    "importance_weight",
    "fresh_weight",
    "neighbour_weight",
    "participant_weight",
    "strength_influence",
    "source_share",
)
OVERRIDABLE = frozenset(f.name for f in fields(RetrievalConfig)) - {"version", "updated_at", "updated_by"}


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{camel(name)} is {value!r}, expected 0 to 1.", path=(camel(name),))


def _check_strength_weights(weights: object) -> None:
    path = ("strengthWeights",)
    given = cast("Mapping[str, object]", weights) if isinstance(weights, Mapping) else None
    if given is None or set(given) - set(SIGNALS):
        raise InvalidInput(f"strengthWeights expects an object with some of: {', '.join(SIGNALS)}.", path=path)
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            raise InvalidInput(f"strengthWeights.{name} is {value!r}, expected 0 to 100.", path=path)
    if not any(given.values()):
        raise InvalidInput("strengthWeights are all 0, expected one above.", path=path)


def _typed(name: str, value: Any) -> Any:
    match name:
        case "fusion":
            return Fusion(value)
        case "profile":
            return RankingProfile(value)
        case "memories_fade":
            return bool(value)
        case _:
            return value


def camel(name: str) -> str:
    """`lexical_weight` as the API writes it: `lexicalWeight`."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, its end exclusive; None is open."""

    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScopeName:
    """A scope as a caller names it; nothing given is the organization's own."""

    client_id: str | None = None
    deal_id: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One question to the memory. `scope` None: everything the caller may read."""

    text: str
    scope: ScopeName | None = None
    kinds: tuple[RecordKind, ...] = ()
    labels: tuple[str, ...] = ()
    entity_ids: tuple[EntityId, ...] = ()
    source_uri: str | None = None
    created: Span | None = None
    occurred: Span | None = None
    min_tier: Tier | None = None
    include_archived: bool = False
    as_of: datetime | None = None
    known_at: datetime | None = None

    @property
    def is_audit(self) -> bool:
        """Whether this looks at what is not current: such a read strengthens nothing."""
        return self.include_archived or self.as_of is not None or self.known_at is not None


def held_then(
    interval: Interval, *, as_of: datetime | None, known_at: datetime | None, stated_to: datetime | None = None
) -> bool:
    """Whether a record held at `as_of` by what was known at `known_at`; None asks nothing of that clock.

    An end that only the supersession set, later than `known_at`, was not known then: `stated_to` counts instead.
    """
    if known_at is not None and not interval.known(known_at):
        return False
    if as_of is None:
        return True
    ended_later = known_at is not None and known_at < interval.known_to < FAR
    valid_to = (stated_to or FAR) if ended_later else interval.valid_to
    return interval.valid_from <= as_of < valid_to


@dataclass(frozen=True, slots=True)
class Leg:
    """How one leg fared. `reason` says why it did not run, or how its query was cut."""

    name: str
    state: LegState
    reason: str | None = None
    candidates: int = 0
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """Every number that made a rank. `fused` holds the parts `neighbour` and `participant` already."""

    final: float
    fused: float
    strength: float
    lexical: float | None = None
    vector: float | None = None
    fade_part: float = 0.0
    mmr: float | None = None
    neighbour: float = 0.0
    participant: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `rank` counts from 1 over the whole ranking, pages included."""

    rank: int
    record: Record
    tier: Tier
    score: Score
    snippet: str


@dataclass(frozen=True, slots=True)
class TracedHit:
    rank: int
    record_id: RecordId
    tier: Tier
    score: Score


@dataclass(frozen=True, slots=True)
class Trace:
    """The stored account of one retrieval. `hits` is the whole ranking, of which the answer was a page.

    `scopes` None: everything in the organization that the caller may read. `query` is None once erased.
    """

    id: str
    at: datetime
    by: UserId
    query: str | None
    mode: RetrievalMode
    degraded_reason: str | None
    legs: tuple[Leg, ...]
    scopes: tuple[Scope, ...] | None
    config: RetrievalConfig
    fused_candidates: int
    below_floor: int
    passed_over: int
    pending: int
    diversified: bool
    took_ms: float
    hits: tuple[TracedHit, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of a ranking, with the account of how it came to be."""

    hits: tuple[Hit, ...]
    has_next: bool
    has_previous: bool
    trace: Trace
