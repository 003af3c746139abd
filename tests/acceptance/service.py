"""The whole API in this process, for clients that know nothing but GraphQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.routing import Route

from graph_mem.api.edge import Edge
from graph_mem.api.http import GraphQLEndpoint
from graph_mem.api.schema import make_schema
from graph_mem.api.session import Sessions
from graph_mem.api.tokens import TokenSettings, TokenVerifier, issue
from graph_mem.core.model import Principal, Role
from graph_mem.services import Deps, utc_now
from tests.people import Company, company, work_off

TOKENS = TokenSettings(secret="0123456789abcdef0123456789abcdef")


@dataclass
class Client:
    """One user of one organization."""

    http: httpx.AsyncClient
    token: str | None

    async def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The whole answer: `data`, `errors`."""
        headers = {"accept": "application/graphql-response+json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        answer = await self.http.post("/graphql", json={"query": query, "variables": variables}, headers=headers)
        return answer.json()

    async def must(self, query: str, **variables: Any) -> Any:
        """The value of the only field asked for; it must have come without errors."""
        answer = await self.ask(query, **variables)
        assert not answer.get("errors"), answer
        (value,) = answer["data"].values()
        assert not (isinstance(value, dict) and value.get("errors")), value
        return value

    async def refused(self, query: str, **variables: Any) -> str:
        """The code of the error that a mutation's payload, or the answer, must hold."""
        answer = await self.ask(query, **variables)
        if answer.get("errors"):
            return answer["errors"][0]["extensions"]["code"]
        (value,) = answer["data"].values()
        return value["errors"][0]["code"]

    async def capture(self, text: str, **input: Any) -> str:
        """The id of a new memory."""
        found = await self.must(
            "mutation($i: CaptureMemoryInput!) { captureMemory(input: $i) { memory { id } errors { code message } } }",
            i={"text": text, **input},
        )
        return found["memory"]["id"]


@dataclass
class Service:
    """The API and one fresh organization on it."""

    deps: Deps
    http: httpx.AsyncClient
    org: Company
    owner: Client = field(init=False)

    def __post_init__(self) -> None:
        self.owner = self.client(self.org.owner)

    def client(self, who: Principal | None) -> Client:
        token = who and issue(
            TOKENS, org_id=who.org_id, user_id=who.user_id, now=utc_now(), lifetime=timedelta(hours=1)
        )
        return Client(self.http, token)

    async def member(self, name: str, role: Role = Role.MEMBER, **assigned: str) -> Client:
        return self.client(await self.org.member(name, role, **assigned))

    async def settled(self) -> None:
        """Until all background work of the organization is done."""
        await work_off(self.deps, self.org.id)


@asynccontextmanager
async def serving(deps: Deps) -> AsyncIterator[Service]:
    edge = Edge(make_schema(), deps, Sessions(deps, TokenVerifier(replace(TOKENS, leeway_s=0.0)), fresh_for_s=0.0))
    application = Starlette(routes=[Route("/graphql", GraphQLEndpoint(edge))])
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://service", timeout=30) as http:
        yield Service(deps, http, await company(deps))
    await edge.drain()
