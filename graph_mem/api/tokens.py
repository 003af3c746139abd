"""Signed tokens: made with our secret, checked against it or against the keys of an identity provider."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import jwt

from graph_mem.core.model import OrganizationId, UserId, is_id
from graph_mem.errors import ServiceUnavailable, Unauthenticated

_ASYMMETRIC = ("RS256", "ES256")
_SYMMETRIC = ("HS256",)
MIN_SECRET_BYTES = 32
"""RFC 7518, 3.2: a key for HS256 is at least as long as its hash."""


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """How tokens are signed and checked. One of `secret` and `jwks_url` decides which signatures count."""

    audience: str = "graph-mem"
    issuer: str = "graph-mem"
    secret: str | None = None
    jwks_url: str | None = None
    leeway_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Claims:
    """What a valid token says: who, in which organization, until when. Nothing about what they may do.

    `expires_at` has the leeway for skewed clocks in it.
    """

    org_id: OrganizationId
    user_id: UserId
    expires_at: datetime


def issue(
    settings: TokenSettings, *, org_id: OrganizationId, user_id: UserId, now: datetime, lifetime: timedelta
) -> str:
    """A token for `user_id` in `org_id`, signed with the secret."""
    claims = {
        "sub": user_id,
        "org": org_id,
        "aud": settings.audience,
        "iss": settings.issuer,
        "iat": now,
        "exp": now + lifetime,
    }
    return jwt.encode(claims, _secret(settings), algorithm=_SYMMETRIC[0])


class TokenVerifier:
    """Checks tokens against the secret or the provider's keys; the algorithm is ours to choose, never the token's."""

    def __init__(self, settings: TokenSettings, *, keys: "ProviderKeys | None" = None) -> None:
        if settings.jwks_url is None:
            _secret(settings)
        self._settings = settings
        self._keys = keys or (ProviderKeys(settings.jwks_url) if settings.jwks_url else None)

    async def verify(self, token: str) -> Claims:
        """The claims of `token`; Unauthenticated if it is not ours, not meant for us or not valid now."""
        try:
            if self._keys is None:
                return self._decode(token, _secret(self._settings), _SYMMETRIC)
            key = await self._keys.find(jwt.get_unverified_header(token).get("kid"))
            return self._decode(token, key, _ASYMMETRIC)
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("The token has expired.") from None
        except jwt.PyJWTError:
            raise Unauthenticated("The token is not valid here.") from None

    def _decode(self, token: str, key: "jwt.PyJWK | str", algorithms: Sequence[str]) -> Claims:
        claims = jwt.decode(
            token,
            key,
            algorithms=list(algorithms),
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=self._settings.leeway_s,
            options={"require": ["exp", "sub", "org"], "strict_aud": False},
        )
        org, user = claims["org"], claims["sub"]
        if not (isinstance(org, str) and is_id(org, "org") and is_id(user, "usr")):
            raise jwt.InvalidTokenError("`sub` and `org` must be a user's and an organization's id")
        return Claims(OrganizationId(org), UserId(user), _expiry(float(claims["exp"]) + self._settings.leeway_s))


class ProviderKeys:
    """The public keys behind a JWKS url, kept for ten minutes.

    A token with an unknown key id makes us ask again, because providers rotate; at most once in ten seconds,
    because anybody can send such a token.
    """

    MAX_AGE_S = 600.0
    COOL_DOWN_S = 10.0

    def __init__(
        self,
        url: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._transport = transport
        self._monotonic = monotonic
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()

    async def find(self, kid: str | None) -> jwt.PyJWK:
        """The key called `kid`; `InvalidKeyError` if the provider has none of that name."""
        if self._stale(kid):
            async with self._asking:
                if self._stale(kid):
                    await self._refresh()
        if kid not in self._keys:
            raise jwt.InvalidKeyError("no such key at the provider")
        return self._keys[kid]

    def _stale(self, kid: str | None) -> bool:
        age_s = self._monotonic() - self._asked_at
        return age_s > self.MAX_AGE_S or (kid not in self._keys and age_s > self.COOL_DOWN_S)

    async def _refresh(self) -> None:
        self._asked_at = self._monotonic()
        try:
            async with httpx.AsyncClient(transport=self._transport, timeout=5.0) as client:
                response = await client.get(self._url)
                response.raise_for_status()
                found = jwt.PyJWKSet.from_dict(response.json())
        except (httpx.HTTPError, ValueError, jwt.PyJWKSetError) as error:
            if not self._keys:
                raise ServiceUnavailable("The identity provider's keys cannot be read.") from error
            return
        self._keys = {key.key_id: key for key in found.keys if key.public_key_use in (None, "sig")}


def _secret(settings: TokenSettings) -> str:
    if settings.secret is None:
        raise ValueError("tokens need a secret or a JWKS url")
    if len(settings.secret.encode()) < MIN_SECRET_BYTES:
        raise ValueError(f"the secret for tokens must have at least {MIN_SECRET_BYTES} bytes")
    return settings.secret


def _expiry(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)
