"""Who calls: a credential becomes a principal, once per operation; and the context that resolvers get."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

import strawberry
from graphql import OperationDefinitionNode, OperationType

from graph_mem.api.limits import RateLimiter
from graph_mem.api.tokens import TokenVerifier
from graph_mem.core.model import OrganizationId, Principal, UserId
from graph_mem.core.people import KEY_PREFIX, ApiKey, DocumentPolicy, secret_hash
from graph_mem.errors import DatabaseUnavailable, ServiceUnavailable, Unauthenticated
from graph_mem.services import Deps, identity
from graph_mem.services.admin import AdminDeps

T = TypeVar("T")
K = TypeVar("K")

RECOGNIZED_WITHIN_S = 10.0
FRESH_FOR_S = 2.0
"""How long a process believes what the graph said of a principal: within this a removal takes effect."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a credential proved. What its bearer may do is looked up for every operation."""

    org_id: OrganizationId
    user_id: UserId
    expires_at: datetime | None = None
    documents: DocumentPolicy = DocumentPolicy.ANY
    introspection: bool = True
    key_hash: str | None = field(default=None, repr=False)


class Recent(Generic[K, T]):
    """Answers not older than `max_age_s`; at most `size` of them."""

    def __init__(
        self, *, max_age_s: float, size: int = 10_000, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_age_s = max_age_s
        self._size = size
        self._monotonic = monotonic
        self._held: OrderedDict[K, tuple[float, T]] = OrderedDict()

    def get(self, key: K) -> T | None:
        at, value = self._held.get(key, (float("-inf"), None))
        return value if self._monotonic() - at <= self._max_age_s else None

    def put(self, key: K, value: T, *, asked_at: float) -> None:
        """Keep `value`, true at the moment `asked_at`: the question's, so that a slow answer ages too."""
        self._held[key] = (asked_at, value)
        self._held.move_to_end(key)
        if len(self._held) > self._size:
            self._held.popitem(last=False)

    def now(self) -> float:
        return self._monotonic()


class Sessions:
    """Opens sessions and tells, at any later moment, whether one still holds and for whom."""

    def __init__(
        self,
        deps: AdminDeps,
        verifier: TokenVerifier,
        *,
        fresh_for_s: float = FRESH_FOR_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deps = deps
        self._verifier = verifier
        self._principals: Recent[tuple[OrganizationId, UserId], Principal] = Recent(
            max_age_s=fresh_for_s, monotonic=monotonic
        )
        self._keys: Recent[str, ApiKey] = Recent(max_age_s=fresh_for_s, monotonic=monotonic)

    async def open(self, credential: str) -> Session:
        """The session that a token or API key gives; Unauthenticated if it gives none."""
        if credential.startswith(KEY_PREFIX):
            key_hash = secret_hash(credential)
            key = await self._key(key_hash)
            return Session(
                key.org_id,
                key.user_id,
                expires_at=key.expires_at,
                documents=key.documents,
                introspection=key.introspection,
                key_hash=key_hash,
            )
        claims = await self._verifier.verify(credential)
        return Session(claims.org_id, claims.user_id, expires_at=claims.expires_at)

    async def principal(self, session: Session) -> Principal:
        """The caller as the graph has them, at most two seconds old; Unauthenticated once the session is over."""
        if session.expires_at is not None and session.expires_at <= self._deps.clock():
            raise Unauthenticated("The token has expired.")
        if session.key_hash is not None:
            await self._key(session.key_hash)
        who = (session.org_id, session.user_id)
        found = self._principals.get(who)
        if found is None:
            asked_at = self._principals.now()
            found = await _in_time(identity.principal(self._deps, org_id=session.org_id, user_id=session.user_id))
            if found is None:
                raise Unauthenticated("The token's user is no member of its organization.")
            self._principals.put(who, found, asked_at=asked_at)
        return found

    async def _key(self, key_hash: str) -> ApiKey:
        found = self._keys.get(key_hash)
        if found is None:
            asked_at = self._keys.now()
            found = await _in_time(identity.api_key(self._deps, key_hash=key_hash))
            if found is None:
                raise Unauthenticated("The API key is not valid.")
            self._keys.put(key_hash, found, asked_at=asked_at)
        return found


async def _in_time(asking: Awaitable[T]) -> T:
    """The answer of the graph, which the driver would wait for longer than a caller can."""
    try:
        async with asyncio.timeout(RECOGNIZED_WITHIN_S):
            return await asking
    except TimeoutError:
        raise DatabaseUnavailable(f"The graph did not say within {RECOGNIZED_WITHIN_S:g} s who you are.") from None


@dataclass(slots=True)
class Context:
    """What the resolvers of one operation share. Never kept longer: a socket makes one per operation."""

    deps: Deps
    request_id: str
    caller: Principal | None = None
    session: Session | None = None
    limiter: RateLimiter | None = None
    address: str = ""
    operation: OperationDefinitionNode | None = None
    unrecognized: ServiceUnavailable | None = None
    introspection: bool = True
    recognized_s: float = 0.0
    """How long it took to know who calls."""
    _made: dict[Callable[["Context"], Any], Any] = field(default_factory=dict[Callable[["Context"], Any], Any])

    @property
    def principal(self) -> Principal:
        """Who calls; Unauthenticated for nobody, ServiceUnavailable while nobody can be recognized."""
        if self.caller is None:
            raise self.unrecognized or Unauthenticated("This needs a token: send Authorization: Bearer ....")
        return self.caller

    @property
    def expires_at(self) -> datetime | None:
        return self.session.expires_at if self.session else None

    @property
    def may_introspect(self) -> bool:
        return self.introspection and self.session is not None and self.session.introspection

    @property
    def mutates(self) -> bool:
        return self.operation is not None and self.operation.operation is OperationType.MUTATION

    @property
    def subscribes(self) -> bool:
        return self.operation is not None and self.operation.operation is OperationType.SUBSCRIPTION

    def once(self, make: Callable[["Context"], T]) -> T:
        """`make(self)`, built at most once per operation: the place for data loaders."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("T", self._made[make])

    def spend(self, cost: float) -> None:
        """Charge the caller's budget; RateLimited if it is used up."""
        if self.limiter is not None:
            self.limiter.spend(self.budget_key, cost)

    @property
    def budget_key(self) -> str:
        """Whose budget pays: the user's, or for callers without a token their address's."""
        return f"{self.caller.org_id}/{self.caller.user_id}" if self.caller else f"address/{self.address}"


Info = strawberry.Info[Context, None]
