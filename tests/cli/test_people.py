"""The commands for people, as an operator and as a program calls them."""

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner
from ulid import ULID

from graph_mem.api.tokens import TokenSettings, TokenVerifier
from graph_mem.cli import app
from graph_mem.core.model import is_id
from graph_mem.errors import Conflict, GraphMemError, InvalidInput, NotFound, SetupError

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def here(neo4j_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names the Neo4j of this run and a signing secret."""
    monkeypatch.setenv("GRAPH_MEM_JWT_SECRET", SECRET)


def run(*command: str) -> Any:
    """The JSON document that the command ends with; its error, raised, if it fails."""
    result = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=True)
    if isinstance(result.exception, GraphMemError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def fresh(name: str) -> str:
    return f"{name} {ULID()}"


@pytest.mark.usefixtures("here")
class TestToken:
    async def test_with_create_it_names_whatever_it_made_and_makes_it_once(self) -> None:
        names = ["--org", fresh("org:1 用户"), "--user", fresh("-x.y+z@example.com")]
        command = ["token", *names, "--role", "project_manager", "--client", "AND", "--deal", "_", "--create"]
        first, second = await _apart(*command), await _apart(*command)
        assert first.keys() == {"token", "organizationId", "userId", "clientId", "dealId", "expiresAt"}
        assert all(first[key] == second[key] for key in ("organizationId", "userId", "clientId", "dealId"))
        assert is_id(first["dealId"], "deal")
        claims = await TokenVerifier(TokenSettings(secret=SECRET)).verify(first["token"])
        assert (claims.org_id, claims.user_id) == (first["organizationId"], first["userId"])

    async def test_without_create_it_makes_nothing(self) -> None:
        with pytest.raises(NotFound):
            await _apart("token", "--org", fresh("org"), "--user", "u", "--role", "member")

    async def test_role_is_not_changed_in_passing(self) -> None:
        names = ["--org", fresh("org"), "--user", fresh("user")]
        await _apart("token", *names, "--role", "MEMBER", "--create")
        with pytest.raises(Conflict):
            await _apart("token", *names, "--role", "OWNER")

    async def test_name_that_cannot_be_is_refused(self) -> None:
        with pytest.raises(InvalidInput):
            await _apart("token", "--org", "", "--user", "u", "--role", "member", "--create")

    async def test_an_identity_provider_gives_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GRAPH_MEM_JWT_JWKS_URL", "http://127.0.0.1:1/jwks")
        with pytest.raises(SetupError, match="identity provider"):
            await _apart("token", "--org", fresh("org"), "--user", fresh("u"), "--role", "member", "--create")


@pytest.mark.usefixtures("here")
async def test_people_assignments_and_keys_come_and_go() -> None:
    org, owner, user = fresh("org"), fresh("owner"), fresh("user")
    made = await _apart("org", "create", org, "--owner", owner)
    assert {"organizationId": made["organizationId"], "name": org} in await _apart("org", "list")

    member = await _apart("user", "create", "--org", org, "--user", user, "--role", "agent")
    assert member in await _apart("user", "list", "--org", org)

    whose = ["--org", org, "--user", user]
    assigned = await _apart("assign", "create", *whose, "--client", "Acme", "--deal", "Renewal")
    (listed,) = await _apart("assign", "list", *whose)
    assert (listed["level"], listed["dealId"]) == ("DEAL", assigned["dealId"])
    await _apart("assign", "remove", *whose, "--client", "Acme", "--deal", "Renewal")
    assert await _apart("assign", "list", *whose) == []

    key = await _apart("key", "create", *whose, "--name", "ci", "--documents", "manifest", "--no-introspection")
    assert key["key"].startswith("gm_")
    (shown,) = await _apart("key", "list", "--org", org)
    assert "key" not in shown
    assert (shown["documents"], shown["introspection"], shown["revokedAt"]) == ("MANIFEST", False, None)
    await _apart("key", "revoke", key["keyId"], "--org", org)
    (shown,) = await _apart("key", "list", "--org", org)
    assert shown["revokedAt"]

    await _apart("user", "remove", *whose)
    assert [one["name"] for one in await _apart("user", "list", "--org", org)] == [owner]
    await _apart("org", "remove", "--org", org)
    with pytest.raises(NotFound):
        await _apart("user", "list", "--org", org)


@pytest.mark.usefixtures("here")
async def test_secret_is_shown_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    names = ["--org", fresh("org"), "--user", fresh("user"), "--role", "member"]
    shown = await asyncio.to_thread(CliRunner().invoke, app, ["token", *names, "--create"])
    await TokenVerifier(TokenSettings(secret=SECRET)).verify(shown.stdout.strip())


async def _apart(*command: str) -> Any:
    """`run` in a thread of its own, as a command starts its own event loop."""
    return await asyncio.to_thread(run, *command)
