"""Tokens: what is signed by us or by the provider counts, for us, now; nothing else."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from graph_mem.api.tokens import ProviderKeys, TokenSettings, TokenVerifier, issue
from graph_mem.core.model import OrganizationId, UserId
from graph_mem.errors import ServiceUnavailable, Unauthenticated
from graph_mem.services import new_id

SECRET = "0123456789abcdef0123456789abcdef"
OURS = TokenSettings(secret=SECRET, leeway_s=0.0)
ORG, USER = OrganizationId(new_id("org")), UserId(new_id("usr"))


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def claims(**changed: Any) -> dict[str, Any]:
    usual = {"sub": USER, "org": ORG, "aud": "graph-mem", "iss": "graph-mem", "exp": now() + timedelta(hours=1)}
    return {name: value for name, value in (usual | changed).items() if value is not None}


def signed(**changed: Any) -> str:
    return jwt.encode(claims(**changed), SECRET, algorithm="HS256")


async def test_our_token_says_who_and_until_when() -> None:
    at = now()
    token = issue(OURS, org_id=ORG, user_id=USER, now=at, lifetime=timedelta(hours=1))
    found = await TokenVerifier(OURS).verify(token)
    assert (found.org_id, found.user_id, found.expires_at) == (ORG, USER, at + timedelta(hours=1))


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": "other"},
        {"aud": None},
        {"iss": "other"},
        {"iss": None},
        {"exp": None},
        {"exp": datetime(2020, 1, 1, tzinfo=UTC)},
        {"nbf": datetime(2100, 1, 1, tzinfo=UTC)},
        {"sub": None},
        {"sub": "alice"},
        {"sub": ORG},
        {"org": None},
        {"org": USER},
        {"org": ["x"]},
        {"org": "org_x' OR 1=1"},
    ],
)
async def test_token_that_is_not_for_us_now_is_refused(changed: dict[str, Any]) -> None:
    await TokenVerifier(OURS).verify(signed())  # the control
    with pytest.raises(Unauthenticated):
        await TokenVerifier(OURS).verify(signed(**changed))


async def test_leeway_forgives_a_skewed_clock_and_no_more() -> None:
    verifier = TokenVerifier(replace(OURS, leeway_s=30))
    assert await verifier.verify(signed(exp=now() - timedelta(seconds=20)))
    with pytest.raises(Unauthenticated):
        await verifier.verify(signed(exp=now() - timedelta(seconds=40)))


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "....", "é", "\x00", "x" * 100_000])
async def test_text_that_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(Unauthenticated):
        await TokenVerifier(OURS).verify(token)


async def test_token_cannot_choose_to_go_unsigned_or_signed_otherwise() -> None:
    for token in (
        jwt.encode(claims(), None, algorithm="none"),
        jwt.encode(claims(), SECRET * 2, algorithm="HS512"),
        jwt.encode(claims(), "another secret that is long enough", algorithm="HS256"),
        signed()[:-4] + "AAAA",
    ):
        with pytest.raises(Unauthenticated):
            await TokenVerifier(OURS).verify(token)


@pytest.mark.parametrize("settings", [TokenSettings(), TokenSettings(secret="short")])
def test_weak_or_missing_secret_stops_the_start(settings: TokenSettings) -> None:
    with pytest.raises(ValueError, match="secret"):
        TokenVerifier(settings)


class Provider:
    """An identity provider with keys that it may rotate or lose."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.asked = 0
        self.down = False

    def add(self, kid: str, algorithm: str = "RS256") -> Any:
        made = (
            rsa.generate_private_key(public_exponent=65537, key_size=2048)
            if algorithm == "RS256"
            else ec.generate_private_key(ec.SECP256R1())
        )
        to_jwk: Callable[[Any], str] = jwt.get_algorithm_by_name(algorithm).to_jwk
        self.keys[kid] = json.loads(to_jwk(made.public_key())) | {"kid": kid, "use": "sig"}
        return made

    def answer(self, _: httpx.Request) -> httpx.Response:
        self.asked += 1
        return httpx.Response(503) if self.down else httpx.Response(200, json={"keys": list(self.keys.values())})


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def verifier(provider: Provider, clock: Clock) -> TokenVerifier:
    keys = ProviderKeys("http://provider/jwks", transport=httpx.MockTransport(provider.answer), monotonic=clock)
    return TokenVerifier(TokenSettings(jwks_url="http://provider/jwks"), keys=keys)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
async def test_token_of_the_provider_counts(provider: Provider, verifier: TokenVerifier, algorithm: str) -> None:
    private = provider.add("a", algorithm)
    for _ in range(3):
        token = jwt.encode(claims(), private, algorithm=algorithm, headers={"kid": "a"})
        assert (await verifier.verify(token)).user_id == USER
    assert provider.asked == 1


async def test_rotated_key_is_found_and_an_invented_one_does_not_make_us_ask_each_time(
    provider: Provider, verifier: TokenVerifier, clock: Clock
) -> None:
    old = provider.add("old")
    await verifier.verify(jwt.encode(claims(), old, algorithm="RS256", headers={"kid": "old"}))
    new = provider.add("new")
    clock.now += 11
    await verifier.verify(jwt.encode(claims(), new, algorithm="RS256", headers={"kid": "new"}))
    assert provider.asked == 2
    for number in range(20):
        with pytest.raises(Unauthenticated):
            await verifier.verify(jwt.encode(claims(), new, algorithm="RS256", headers={"kid": f"x{number}"}))
    assert provider.asked == 2


async def test_withdrawn_key_stops_to_count(provider: Provider, verifier: TokenVerifier, clock: Clock) -> None:
    private = provider.add("a")
    token = jwt.encode(claims(), private, algorithm="RS256", headers={"kid": "a"})
    await verifier.verify(token)
    del provider.keys["a"]
    provider.add("b")
    clock.now += 601
    with pytest.raises(Unauthenticated):
        await verifier.verify(token)


async def test_provider_that_is_down_is_a_temporary_failure_or_none(
    provider: Provider, verifier: TokenVerifier, clock: Clock
) -> None:
    private = provider.add("a")
    token = jwt.encode(claims(), private, algorithm="RS256", headers={"kid": "a"})
    provider.down = True
    with pytest.raises(ServiceUnavailable):
        await verifier.verify(token)
    provider.down = False
    clock.now += 11
    await verifier.verify(token)
    provider.down = True
    clock.now += 601
    await verifier.verify(token)  # the keys we have still count


async def test_public_key_is_no_secret(provider: Provider, verifier: TokenVerifier) -> None:
    """The classic confusion: HS256 keyed with the provider's public key."""
    provider.add("a")
    public = json.dumps(provider.keys["a"]).encode()
    header, payload = (
        base64.urlsafe_b64encode(json.dumps(part, default=lambda at: int(at.timestamp())).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "kid": "a"}, claims())
    )
    signature = jwt.get_algorithm_by_name("HS256").sign(header + b"." + payload, public.ljust(64, b"x"))
    token = b".".join([header, payload, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()
    with pytest.raises(Unauthenticated):
        await verifier.verify(token)
