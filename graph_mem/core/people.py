"""Organizations, their people, what these are assigned to and the keys they hold."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from graph_mem.core.model import ClientId, DealId, OrganizationId, Role, ScopeLevel, UserId
from graph_mem.errors import InvalidInput

MAX_NAME = 200
KEY_PREFIX = "gm_"
_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})


class DocumentPolicy(StrEnum):
    """Which documents a key may run: any, or only those of the committed manifest."""

    ANY = "ANY"
    MANIFEST = "MANIFEST"


@dataclass(frozen=True, slots=True)
class Organization:
    id: OrganizationId
    name: str


@dataclass(frozen=True, slots=True)
class Client:
    id: ClientId
    name: str


@dataclass(frozen=True, slots=True)
class Deal:
    id: DealId
    client: Client
    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """A user as one organization knows them."""

    user_id: UserId
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Assignment:
    """A client or a deal that a member works for. A client's assignment opens its deals, not the reverse."""

    client: Client
    deal: Deal | None = None

    @property
    def level(self) -> ScopeLevel:
        return ScopeLevel.CLIENT if self.deal is None else ScopeLevel.DEAL


@dataclass(frozen=True, slots=True)
class Enrolment:
    """The ids behind the names that a token was asked for."""

    org_id: OrganizationId
    user_id: UserId
    role: Role
    client_id: ClientId | None = None
    deal_id: DealId | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A long-lived credential of one member; its secret is nowhere but with whoever was shown it."""

    id: str
    org_id: OrganizationId
    user_id: UserId
    name: str
    documents: DocumentPolicy
    introspection: bool
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


def valid_name(text: str, *, what: str) -> str:
    """`text` in Unicode form NFC, if it can name a `what`: 1 to 200 characters, none of them a control character."""
    name = unicodedata.normalize("NFC", text)
    if not 1 <= len(name) <= MAX_NAME or name.isspace():
        raise InvalidInput(f"The name of {what} must have 1 to {MAX_NAME} characters; found {len(name)}.", path=[what])
    if any(unicodedata.category(character) in _REFUSED_CATEGORIES for character in name):
        raise InvalidInput(f"The name of {what} holds a control character.", path=[what])
    return name


def secret_hash(secret: str) -> str:
    """What the store keeps of an API key: its secret is 256 random bits, for which a fast hash is enough."""
    return sha256(secret.encode()).hexdigest()
