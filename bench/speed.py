"""How long a search takes: beside the embedding and one call with both legs, in the service, and over HTTP."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import numpy as np
import uvicorn
from neo4j import READ_ACCESS, Query
from neo4j.vector import Vector

from bench.loading import Loaded
from graph_mem import app
from graph_mem.api.tokens import issue
from graph_mem.config import Settings
from graph_mem.core import retrieval
from graph_mem.core.model import Principal
from graph_mem.services import Deps, recall
from graph_mem.store.visibility import access
from graph_mem.store.words import lucene, wording

ONE_CALL = """CYPHER 25
CALL () {
  UNWIND $partitions AS partition
  MATCH (v) SEARCH v IN (VECTOR INDEX passages FOR $vector
    WHERE v.partition = partition AND v.standing = 'CURRENT' LIMIT 50) SCORE AS near
  RETURN v AS n, near AS s, 'vector' AS leg
 UNION ALL
  CALL db.index.fulltext.queryNodes('words', $query, {limit: 50}) YIELD node AS w, score AS told
  WHERE told > 0
  RETURN w AS n, told AS s, 'words' AS leg
}
RETURN n.id AS id, n.content AS content, s AS score, leg
"""
"""What anyone would write: both legs, filtered inside the indexes, in one round trip; 50 + 50 rows."""

SEARCH = """query($input: SearchInput!) { search(input: $input, first: 10) {
  mode traceId passedOver belowFloor hits { rank tier score { final fused lexical vector strength } snippet
    node { __typename id standing ... on Memory { text } ... on Fact { statement } } } } }"""


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of one way to search."""

    way: str
    p50: float
    p95: float

    @classmethod
    def of(cls, way: str, seconds: Sequence[float]) -> "Times":
        p50, p95 = np.percentile(np.array(seconds) * 1000, [50, 95])
        return cls(way, float(p50), float(p95))


async def times(deps: Deps, settings: Settings, loaded: Loaded, *, questions: int) -> list[Times]:
    """All ways in turn, question by question, so that whatever else the machine does falls on each alike.

    Every question is asked with a text of its own each time: no way gets a cached vector.
    """
    taken: dict[str, list[float]] = {"embedding + one call": [], "search in the service": [], "search over HTTP": []}
    async with _served(settings, loaded.owner) as client:
        for number, question in enumerate(loaded.set.questions[: questions + _WARM_UP]):
            text = question.text
            spent = [
                await _one_call(deps, loaded.owner, f"{text} "),
                await _search(deps, loaded.owner, text),
                await _http(client, f" {text}"),
            ]
            if number >= _WARM_UP:
                for seconds, one in zip(spent, taken.values(), strict=True):
                    one.append(seconds)
    return [Times.of(way, seconds) for way, seconds in taken.items()]


_WARM_UP = 20


async def _one_call(deps: Deps, principal: Principal, text: str) -> float:
    started = time.perf_counter()
    vector = await deps.embedder.query(text)
    asked = wording(text)
    partitions = access(principal)["partitions"]
    query = lucene(asked, [partitions]) if asked else "+keys:none"
    given = {"partitions": partitions, "vector": Vector.from_numpy(vector), "query": query}
    async with deps.db.driver.session(database=deps.db.name, default_access_mode=READ_ACCESS) as session:
        _ = [row async for row in await session.run(Query(ONE_CALL), given)]
    return time.perf_counter() - started


async def _search(deps: Deps, principal: Principal, text: str) -> float:
    started = time.perf_counter()
    await recall.search_page(deps, principal, retrieval.Query(text), first=10)
    return time.perf_counter() - started


async def _http(client: httpx.AsyncClient, text: str) -> float:
    started = time.perf_counter()
    answer = await client.post("/graphql", json={"query": SEARCH, "variables": {"input": {"text": text}}})
    answer.raise_for_status()
    if answer.json().get("errors"):
        raise RuntimeError(answer.text[:500])
    return time.perf_counter() - started


@asynccontextmanager
async def _served(settings: Settings, principal: Principal) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API, served on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = uvicorn.Config(app.build(settings), port=port, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 # uvicorn offers no event for it
        await asyncio.sleep(0.1)
    token = issue(
        app.token_settings(settings),
        org_id=principal.org_id,
        user_id=principal.user_id,
        now=datetime.now(UTC),
        lifetime=timedelta(hours=1),
    )
    head = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=head, timeout=60) as client:
        yield client
    server.should_exit = True
    await serving
