"""A small agent that remembers: context before the run, an answer, and what it learned saved after it.

    graph-mem up --json                        # prints the address and a token
    python examples/agent.py --token TOKEN     # --url if it is not http://127.0.0.1:8000

The model is scripted, so this runs offline. A real one takes its place by having the same `answer`.
"""

import argparse
import asyncio
import os
import re
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

import httpx
from client import GraphMem, SavedFact

FACT = re.compile(r'<evidence \w+ id="fact_[^\n]*\n(.*)')
RATE = re.compile(r"(?P<client>[A-Z]\w+) pays (?P<rate>\d+) euros")


@dataclass(frozen=True, slots=True)
class Learned:
    """Something the model found worth keeping: a sentence with the slot that it is the value of."""

    subject: str
    relation: str
    statement: str


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    learned: tuple[Learned, ...] = ()


class Model(Protocol):
    async def answer(self, *, system: str, user: str) -> Answer:
        """What to say to `user`, under the rules of `system`."""
        ...


class ScriptedModel:
    """Looks for a client's rate, first in the request itself, then in the evidence it was given."""

    async def answer(self, *, system: str, user: str) -> Answer:
        request, _, evidence = user.partition("\n\n# Retrieved")
        if told := RATE.search(request):
            statement = f"{told['client']} pays {told['rate']} euros an hour."
            return Answer(f"Noted: {statement}", (Learned(told["client"], "billing rate", statement),))
        facts = "\n".join(FACT.findall(evidence))  # what holds today goes before what somebody once said
        if known := RATE.search(facts) or RATE.search(evidence) or RATE.search(system):
            return Answer(f"{known['client']} pays {known['rate']} euros an hour.")
        return Answer("I do not know; nothing that I was given says so.")


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of the agent, with the hash of the prefix it had: the same from run to run until canon changes."""

    answer: str
    prefix_hash: str
    saved: tuple[SavedFact, ...]


async def run(memory: GraphMem, model: Model, request: str, *, budget_tokens: int = 4000) -> Turn:
    """Context -> answer -> capture and facts."""
    run_id = f"example-{uuid4()}"
    context = await memory.context(run_id=run_id, instruction=request, budget_tokens=budget_tokens)
    user = f"{request}\n\n{context.tail}" if context.tail else request
    answer = await model.answer(system=context.prefix, user=user)
    saved: list[SavedFact] = []
    for one in answer.learned:
        source = await memory.capture(one.statement, run_id=run_id, key=f"{run_id} {one.subject} {one.relation}")
        saved.append(
            await memory.save_fact(
                subject=one.subject,
                relation=one.relation,
                statement=one.statement,
                source_ids=(source.folded_into or source.id,),
            )
        )
    return Turn(answer.text, context.prefix_hash, tuple(saved))


CONVERSATION = (
    "What does Northwind pay an hour?",
    "Northwind pays 185 euros an hour since today, please keep that.",
    "What does Northwind pay an hour?",
    "Correction: Northwind pays 190 euros an hour.",
    "What does Northwind pay an hour?",
)


async def main() -> None:
    options = argparse.ArgumentParser(description="A small agent that remembers, with a scripted model.")
    options.add_argument("--url", default=os.environ.get("GRAPH_MEM_URL", "http://127.0.0.1:8000"))
    options.add_argument(
        "--token", default=os.environ.get("GRAPH_MEM_TOKEN"), required="GRAPH_MEM_TOKEN" not in os.environ
    )
    given = options.parse_args()
    headers = {"Authorization": f"Bearer {given.token}"}
    async with httpx.AsyncClient(base_url=given.url.removesuffix("/graphql"), headers=headers, timeout=30) as http:
        memory = GraphMem(http)
        for request in CONVERSATION:
            turn = await run(memory, ScriptedModel(), request)
            outcomes = " ".join(f"[{one.outcome}]" for one in turn.saved)
            print(f"> {request}\n{turn.answer} {outcomes}\n  prefix {turn.prefix_hash[:12]}\n")


if __name__ == "__main__":
    asyncio.run(main())
