"""The words of graph-mem as frozen values: who calls, where a record lives, what a record is.

Times are aware UTC. Signals and scores are in 0..1. `*_token` are opaque index keys, never shown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, NewType

OrganizationId = NewType("OrganizationId", str)
UserId = NewType("UserId", str)
ClientId = NewType("ClientId", str)
DealId = NewType("DealId", str)
RecordId = NewType("RecordId", str)
EntityId = NewType("EntityId", str)

FAR = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
"""The open end of an interval: index range predicates cannot match an absent value."""

_BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ID = re.compile(r"[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}")


def is_id(text: str, *kinds: str) -> bool:
    """Whether `text` has the form `<kind>_<ulid>`, of one of `kinds` if any are given."""
    return bool(_ID.fullmatch(text)) and (not kinds or text.partition("_")[0] in kinds)


def made_at(id: str) -> datetime:
    """When `id` was made: the first ten characters of a ULID count milliseconds since 1970, in base 32."""
    digits = id.partition("_")[2][:10]
    ms = sum(_BASE32.index(digit) << 5 * place for place, digit in enumerate(reversed(digits)))
    return datetime.fromtimestamp(ms / 1000, UTC)


def token(*parts: str) -> str:
    """One index key for `parts`: a letter, 24 hexadecimal digits and a zero.

    Every Lucene analyzer leaves such a word alone, and no filter value can grow past what an index takes.
    """
    return "k" + sha256("\x1f".join(parts).encode()).hexdigest()[:24] + "0"


class Role(StrEnum):
    OWNER = "OWNER"
    ADMIN = "ADMIN"
    SOLUTIONS_ENGINEER = "SOLUTIONS_ENGINEER"
    PROJECT_MANAGER = "PROJECT_MANAGER"
    MEMBER = "MEMBER"
    AGENT = "AGENT"

    @property
    def sees_all_shared(self) -> bool:
        return self in (Role.OWNER, Role.ADMIN)


class ScopeLevel(StrEnum):
    ORGANIZATION = "ORGANIZATION"
    CLIENT = "CLIENT"
    DEAL = "DEAL"


class Processing(StrEnum):
    SAVED = "SAVED"
    PROCESSING = "PROCESSING"
    READY = "READY"
    FAILED = "FAILED"


class Standing(StrEnum):
    CURRENT = "CURRENT"
    PROVISIONAL = "PROVISIONAL"
    SUPERSEDED = "SUPERSEDED"
    FOLDED = "FOLDED"
    ARCHIVED = "ARCHIVED"
    REJECTED = "REJECTED"
    ERASED = "ERASED"


class RecordKind(StrEnum):
    MEMORY = "MEMORY"
    FACT = "FACT"


class SourceKind(StrEnum):
    USER = "USER"
    AGENT = "AGENT"
    DOCUMENT = "DOCUMENT"
    TRANSCRIPT = "TRANSCRIPT"
    RUN = "RUN"
    IMPORT = "IMPORT"
    RECALLED = "RECALLED"


class EntityRole(StrEnum):
    PARTICIPANT = "PARTICIPANT"
    TOPIC = "TOPIC"
    MENTIONED = "MENTIONED"


class RelationState(StrEnum):
    ACTIVE = "ACTIVE"
    RETRACTED = "RETRACTED"


SUPERSEDES = "SUPERSEDES"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a record lives: the organization, one of its clients, or a deal of a client."""

    level: ScopeLevel = ScopeLevel.ORGANIZATION
    client_id: ClientId | None = None
    deal_id: DealId | None = None

    def token(self, org_id: OrganizationId) -> str:
        return token("scope", org_id, self.level, self.client_id or "", self.deal_id or "")

    def chain(self) -> tuple["Scope", ...]:
        """This scope and those around it, narrowest first: deal, client, organization."""
        if self.level is ScopeLevel.DEAL:
            return (self, Scope(ScopeLevel.CLIENT, self.client_id), ORGANIZATION)
        return (self, ORGANIZATION) if self.level is ScopeLevel.CLIENT else (self,)


ORGANIZATION = Scope()


@dataclass(frozen=True, slots=True)
class Place:
    """Scope and owner: all that decides who may see a record, and which records are copies of each other."""

    org_id: OrganizationId
    scope: Scope
    owner_id: UserId | None = None

    @property
    def private(self) -> bool:
        return self.owner_id is not None

    @property
    def partition_token(self) -> str:
        return token("partition", self.org_id, self.owner_id or "")

    @property
    def scope_token(self) -> str:
        return self.scope.token(self.org_id)


def place_of(node: Mapping[str, Any]) -> Place:
    """Where a node with these properties lives. Errors: KeyError, ValueError if they name no place."""
    client, deal, owner = node.get("clientId"), node.get("dealId"), node.get("owner")
    return Place(
        OrganizationId(node["org"]),
        Scope(ScopeLevel(node["level"]), ClientId(client) if client else None, DealId(deal) if deal else None),
        UserId(owner) if owner else None,
    )


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: an organization and a user, with the role and assignments that the graph holds.

    `client_ids` and `deals` are what a role without sight of all shared scopes may read; `deals` maps each
    assigned deal, and each deal of an assigned client, to its client.
    """

    org_id: OrganizationId
    user_id: UserId
    role: Role
    client_ids: frozenset[ClientId] = frozenset()
    deals: Mapping[DealId, ClientId] = field(default_factory=dict[DealId, ClientId])

    @property
    def scopes(self) -> tuple[Scope, ...] | None:
        """Every scope this principal may read; None for all of the organization."""
        if self.role.sees_all_shared:
            return None
        clients = (Scope(ScopeLevel.CLIENT, client) for client in sorted(self.client_ids))
        deals = (Scope(ScopeLevel.DEAL, client, deal) for deal, client in sorted(self.deals.items()))
        return (ORGANIZATION, *clients, *deals)

    def reads(self, place: Place) -> bool:
        """Whether this principal may see records at `place`. The second layer's whole rule."""
        if place.org_id != self.org_id or place.owner_id not in (None, self.user_id):
            return False
        match place.scope.level:
            case ScopeLevel.ORGANIZATION:
                return True
            case ScopeLevel.CLIENT:
                return self.role.sees_all_shared or place.scope.client_id in self.client_ids
            case ScopeLevel.DEAL:
                return self.role.sees_all_shared or (
                    place.scope.deal_id is not None and self.deals.get(place.scope.deal_id) == place.scope.client_id
                )


@dataclass(frozen=True, slots=True)
class Source:
    kind: SourceKind
    author: UserId
    uri: str | None = None
    run_id: str | None = None
    occurred_at: datetime | None = None
    trust: float = 0.5

    def token(self, place: Place) -> str | None:
        """The index key of this source within its partition and scope; None without a uri."""
        return token("source", place.partition_token, place.scope_token, self.uri) if self.uri else None


@dataclass(frozen=True, slots=True)
class Interval:
    """When a record held (`valid_*`) and when the store believed it (`known_*`); ends are exclusive.

    `gaps` are spans inside `known_*` in which it was wrongly not current.
    """

    valid_from: datetime
    known_from: datetime
    valid_to: datetime = FAR
    known_to: datetime = FAR
    gaps: tuple[tuple[datetime, datetime], ...] = ()

    def held(self, at: datetime) -> bool:
        return self.valid_from <= at < self.valid_to

    def known(self, at: datetime) -> bool:
        return self.known_from <= at < self.known_to and not any(start <= at < end for start, end in self.gaps)


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of strength as stored; `core.strength` collapses them at read time.

    `query_kinds` are the distinct kinds of query that retrieved the record. `centrality` is None where it has
    not been computed, `confidence` where nobody stated one.
    """

    retrievals: int = 0
    query_kinds: tuple[str, ...] = ()
    last_retrieved_at: datetime | None = None
    last_validated_at: datetime | None = None
    centrality: float | None = None
    confidence: float | None = None
    source_trust: float = 0.5
    evergreen: bool = False
    starting_strength: float | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """A durable text. `text` is byte for byte as saved, None once erased.

    `import_key` is the same for the same text from the same source at the same place; only imports have one.
    """

    id: RecordId
    place: Place
    label: str
    position: bool
    text: str | None
    source: Source
    processing: Processing
    standing: Standing
    version: int
    importance: float
    created_at: datetime
    fresh_at: datetime
    interval: Interval
    signals: Signals = Signals()
    title: str | None = None
    metadata: Mapping[str, Any] | None = None
    failure: str | None = None
    fold_count: int = 0
    import_key: str | None = None

    @property
    def kind(self) -> RecordKind:
        return RecordKind.MEMORY


@dataclass(frozen=True, slots=True)
class Fact:
    """Subject, relation and one self-contained sentence."""

    id: RecordId
    place: Place
    subject: str
    relation: str
    statement: str
    standing: Standing
    version: int
    confidence: float
    created_at: datetime
    interval: Interval
    author: UserId
    revoked_at: datetime | None = None
    signals: Signals = Signals()

    @property
    def kind(self) -> RecordKind:
        return RecordKind.FACT

    @property
    def label(self) -> str:
        return "fact"


Record = Memory | Fact


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, project, company... that memories and facts are about."""

    id: EntityId
    place: Place
    name: str
    label: str
    aliases: tuple[str, ...] = ()
    centrality: float | None = None


@dataclass(frozen=True, slots=True)
class EntityLink:
    entity: Entity
    role: EntityRole


@dataclass(frozen=True, slots=True)
class Relation:
    """An explicit link from a record to another. `retires` is False for a finding that supersedes a position."""

    id: str
    kind: str
    from_id: RecordId
    to_id: RecordId
    state: RelationState
    by: UserId
    at: datetime
    reason: str | None = None
    retires: bool = False


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    version: int
    saved_at: datetime
    saved_by: UserId
    text: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a record's history; it stays when the record is erased."""

    id: str
    record_id: str
    at: datetime
    by: str
    kind: str
    version: int | None = None
    detail: Mapping[str, Any] | None = None
    strength: float | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Which slice of a list: at most `first` rows after the cursor's keys."""

    first: int
    after: tuple[Any, ...] | None = None
