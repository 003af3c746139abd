"""A typed client of the four operations that an agent needs; their documents are in `graphql/operations`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

OPERATIONS = Path(__file__).parents[1] / "graphql" / "operations"


class Refused(Exception):
    """The service answered with an error; `code` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Context:
    """`prefix` belongs in the system prompt, where it keeps the prompt cache warm; `tail` after the user's prompt."""

    prefix: str
    prefix_hash: str
    tail: str
    tail_ids: tuple[str, ...]
    over_budget: bool
    trace_id: str


@dataclass(frozen=True, slots=True)
class Hit:
    id: str
    tier: str
    text: str


@dataclass(frozen=True, slots=True)
class Captured:
    """`folded_into` is the memory that held this text already, where one did."""

    id: str
    folded_into: str | None


@dataclass(frozen=True, slots=True)
class SavedFact:
    """`outcome` says what saving did: CREATED, SUPERSEDED, DEDUPLICATED, PROVISIONAL or REJECTED_BEFORE."""

    id: str | None
    outcome: str
    revoked: str | None


class GraphMem:
    """graph-mem behind `http`, whose base address and Authorization header are set."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def context(self, *, run_id: str, instruction: str, budget_tokens: int, search: bool = True) -> Context:
        """Everything the agent must see before the run, and with `search` what may help it."""
        given = {
            "runId": run_id,
            "instruction": instruction,
            "budgetTokens": budget_tokens,
            "semanticTail": search,
        }
        found = (await self._run("context", input=given))["context"]
        tail: dict[str, Any] = found["tail"] or {"text": "", "items": []}
        return Context(
            prefix=found["prefix"]["text"],
            prefix_hash=found["prefix"]["hash"],
            tail=tail["text"],
            tail_ids=tuple(item["node"]["id"] for item in tail["items"]),
            over_budget=found["trace"]["overBudget"],
            trace_id=found["trace"]["id"],
        )

    async def search(self, text: str, *, first: int = 5) -> list[Hit]:
        """The best answers to `text`."""
        page = (await self._run("search", input={"text": text}, first=first))["search"]
        return [
            Hit(hit["node"]["id"], hit["tier"], hit["node"].get("text") or hit["node"].get("statement") or "")
            for hit in page["hits"]
        ]

    async def capture(self, text: str, *, run_id: str, label: str = "note", key: str | None = None) -> Captured:
        """Remember `text`; with the same `key` once only."""
        given = {"text": text, "label": label, "runId": run_id, "sourceKind": "AGENT", "idempotencyKey": key}
        memory = (await self._mutate("capture", "captureMemory", given))["memory"]
        return Captured(memory["id"], memory["foldedInto"] and memory["foldedInto"]["id"])

    async def save_fact(
        self, *, subject: str, relation: str, statement: str, source_ids: tuple[str, ...] = ()
    ) -> SavedFact:
        """Say what is true now; what was true before is revoked in the same instant."""
        given = {"subject": subject, "relation": relation, "statement": statement, "sourceIds": list(source_ids)}
        saved = await self._mutate("saveFact", "saveFact", given)
        fact, revoked = saved["fact"], saved["revoked"]
        return SavedFact(fact and fact["id"], saved["outcome"], revoked and revoked["statement"])

    async def _mutate(self, document: str, field: str, given: dict[str, Any]) -> dict[str, Any]:
        payload = (await self._run(document, input=given))[field]
        for error in payload["errors"]:
            raise Refused(error["code"], error["message"])
        return payload

    async def _run(self, document: str, **variables: Any) -> dict[str, Any]:
        query = (OPERATIONS / f"{document}.graphql").read_text(encoding="utf-8")
        answer = await self._http.post(
            "/graphql",
            json={"query": query, "variables": variables},
            headers={"Accept": "application/graphql-response+json"},
        )
        body: dict[str, Any] = answer.json()
        for error in body.get("errors", ()):
            raise Refused(error["extensions"]["code"], error["message"])
        return body["data"]
