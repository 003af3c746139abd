"""What an agent is given before a run, and the account of it.

Canon and search results meet only in the answer: one is rendered into a `Prefix`, the other into a `Tail`, by
functions that cannot take each other's input.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from graph_mem.core import context as rendering
from graph_mem.core import runs as accounts
from graph_mem.core.canon import Canon, erased
from graph_mem.core.context import EMPTY_TAIL, Prefix, Tail
from graph_mem.core.model import Memory, Principal, RecordId, Scope
from graph_mem.core.retrieval import Query, ScopeName
from graph_mem.core.runs import Rebuilt, RunTrace
from graph_mem.core.text import check_text
from graph_mem.errors import InvalidInput
from graph_mem.services import Deps, recall
from graph_mem.services.scratch import check_run_id
from graph_mem.store import canon, context, runs, scopes
from graph_mem.store.db import Tx

_MAX_INSTRUCTION_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a run asks for, unchecked."""

    run_id: str
    instruction: str
    scope: ScopeName = field(default_factory=ScopeName)
    budget_tokens: int = 4000
    semantic_tail: bool = False


@dataclass(frozen=True, slots=True)
class RunView:
    """A run trace with the memories behind its pins; one that was erased is there without its words."""

    trace: RunTrace
    memories: Mapping[RecordId, Memory]


@dataclass(frozen=True, slots=True)
class Assembled:
    """The two parts and their account. `tail` is None where none was asked for."""

    prefix: Prefix
    tail: Tail | None
    view: RunView


async def assemble(deps: Deps, principal: Principal, request: Request) -> Assembled:
    """The context for a run, with its trace stored.

    Path A is two look-ups: the scope, then all canon. Errors: InvalidInput; NotFound for the scope.
    """
    run_id = _checked(deps, request)
    scope, found = await _canon(deps, principal, request)
    prefix = await asyncio.to_thread(
        rendering.prefix, found, scope, pin_tokens=deps.limits.pin_tokens, count=deps.tokenizer.count
    )
    tail, retrieval_trace_id = None, None
    if request.semantic_tail:
        tail, retrieval_trace_id = await _searched(deps, principal, request, prefix)
    memories = {item.memory.id: item.memory for item in found.pinned}
    trace = accounts.account(
        id=deps.new_id("run"),
        run_id=run_id,
        at=deps.clock(),
        principal=principal,
        scope=scope,
        budget_tokens=request.budget_tokens,
        prefix=prefix,
        tail=tail,
        memories=memories,
        retrieval_trace_id=retrieval_trace_id,
    )
    held = list(accounts.held(prefix, tail, memories))
    await deps.db.write(lambda tx: runs.create(tx, trace, held))
    return Assembled(prefix, tail, RunView(trace, memories))


async def run_trace(deps: Deps, principal: Principal, *, run_id: str) -> RunView | None:
    """The account of the latest context of a run; None for one that the caller may not see all of."""
    run = check_run_id(run_id)

    async def work(tx: Tx) -> RunView | None:
        return await _view(tx, principal, await runs.of_run(tx, principal, run))

    return await deps.db.read(work)


async def run_trace_by_id(deps: Deps, principal: Principal, id: str) -> RunView | None:
    async def work(tx: Tx) -> RunView | None:
        return await _view(tx, principal, await runs.by_id(tx, principal, id))

    return await deps.db.read(work)


async def rebuild(deps: Deps, principal: Principal, trace: RunTrace) -> Rebuilt:
    """The prefix of `trace` from the versions it names, byte for byte, or why it cannot be had any more."""

    async def work(tx: Tx) -> Rebuilt:
        policies = await canon.policy_versions(tx, principal, trace.policies)
        variables = await canon.variable_versions(tx, principal, trace.variables)
        return accounts.rebuilt(trace, policies, variables, await runs.words(tx, principal, trace.pins))

    return await deps.db.read(work)


def _checked(deps: Deps, request: Request) -> str:
    if request.semantic_tail:
        check_text(request.instruction, path=("instruction",), max_bytes=_MAX_INSTRUCTION_BYTES)
    if not 1 <= request.budget_tokens <= deps.limits.budget_tokens:
        raise InvalidInput(
            f"The budget is {request.budget_tokens} tokens, expected 1 to {deps.limits.budget_tokens}.",
            path=("budgetTokens",),
        )
    return check_run_id(request.run_id)


async def _canon(deps: Deps, principal: Principal, request: Request) -> tuple[Scope, Canon]:

    named = request.scope

    async def work(tx: Tx) -> tuple[Scope, Canon]:
        scope = await scopes.resolve(tx, principal, client_id=named.client_id, deal_id=named.deal_id)
        return scope, await context.canon(tx, principal, scope)

    return await deps.db.read(work)


async def _searched(deps: Deps, principal: Principal, request: Request, prefix: Prefix) -> tuple[Tail, str | None]:
    """The tail in what the prefix leaves of the budget, and the trace of its search; none where nothing is left."""
    if prefix.tokens >= request.budget_tokens:
        return EMPTY_TAIL, None
    query = Query(request.instruction, scope=request.scope)
    page = await recall.search_page(deps, principal, query, first=deps.limits.tail_hits)
    tail = await asyncio.to_thread(
        rendering.tail, page.hits, after=prefix, budget_tokens=request.budget_tokens, count=deps.tokenizer.count
    )
    return tail, page.trace.id


async def _view(tx: Tx, principal: Principal, trace: RunTrace | None) -> RunView | None:
    if trace is None:
        return None
    found = await context.pinned_memories(tx, principal, {pin.memory_id for pin in trace.pins})
    gone = {pin.memory_id: erased(pin.pin, pin.memory_id) for pin in trace.pins if pin.memory_id not in found}
    return RunView(trace, {**gone, **found})
