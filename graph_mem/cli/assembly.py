"""Assembles a context, or shows one that a run saw, for the commands of that name."""

from dataclasses import dataclass

import typer

from graph_mem import app
from graph_mem.cli.acting import enrolled
from graph_mem.cli.documents import as_object
from graph_mem.cli.output import Output
from graph_mem.config import Settings
from graph_mem.core.retrieval import ScopeName
from graph_mem.core.runs import Rebuilt, RunTrace
from graph_mem.core.text import how_many
from graph_mem.errors import NotFound
from graph_mem.services import context
from graph_mem.services.context import Assembled, Request


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A context as the command line names it."""

    organization: str
    user: str
    client: str | None
    deal: str | None
    run_id: str
    instruction: str
    budget_tokens: int
    search: bool


async def assemble(settings: Settings, asked: Asked, output: Output) -> None:
    """Print what an agent would see, with its account kept under the run's name."""
    async with app.opened(settings, light=True, start_model=asked.search) as deps:
        place, principal = await enrolled(
            deps, organization=asked.organization, user=asked.user, client=asked.client, deal=asked.deal
        )
        if asked.search:
            await deps.embedder.settled()
        request = Request(
            run_id=asked.run_id,
            instruction=asked.instruction,
            scope=ScopeName(place.client_id, place.deal_id),
            budget_tokens=asked.budget_tokens,
            semantic_tail=asked.search,
        )
        made = await context.assemble(deps, principal, request)
    output.note(_summary(made.view.trace))
    _show(output, _document(made), "\n\n".join(part.text for part in (made.prefix, made.tail) if part and part.text))


async def show_run(settings: Settings, *, organization: str, user: str, run_id: str, output: Output) -> None:
    """Print the prefix that a run saw, from the versions that its account names."""
    async with app.opened(settings, start_model=False) as deps:
        _, principal = await enrolled(deps, organization=organization, user=user)
        view = await context.run_trace(deps, principal, run_id=run_id)
        if view is None:
            raise NotFound(run_id, path=("runId",))
        rebuilt: Rebuilt = await context.rebuild(deps, principal, view.trace)
    output.note(f"{_summary(view.trace)}; prefix {rebuilt.state.value}")
    document = {
        **_account(view.trace),
        "state": rebuilt.state.value,
        "prefix": rebuilt.text,
        "missing": rebuilt.missing,
    }
    _show(output, document, rebuilt.text or f"Not to be had any more: {rebuilt.state.value}.")


def _show(output: Output, document: object, text: str) -> None:
    """`text` byte for byte, which a console would wrap to the width of the terminal."""
    if output.as_json:
        output.show(document, "")
    else:
        typer.echo(text)


def _summary(trace: RunTrace) -> str:
    over = ", canon alone is over it" if trace.over_budget else ""
    return (
        f"run {trace.run_id}: {trace.used} of {trace.budget} tokens{over};"
        f" {how_many(len(trace.policies), 'policy', 'policies')}, {how_many(len(trace.variables), 'variable')},"
        f" {how_many(len(trace.pins), 'pin')}, {how_many(len(trace.tail_record_ids), 'result')}"
    )


def _account(trace: RunTrace) -> dict[str, object]:
    return {
        "runId": trace.run_id,
        "traceId": trace.id,
        "budget": trace.budget,
        "used": trace.used,
        "overBudget": trace.over_budget,
        "prefixHash": trace.prefix_hash,
        "policies": [as_object(ref) for ref in trace.policies],
        "variables": [as_object(ref) for ref in trace.variables],
        "pins": [{"pinId": pin.pin.id, "memoryId": pin.memory_id, "truncated": bool(pin.cut)} for pin in trace.pins],
        "absentPins": [{"pinId": one.pin.id, "reason": one.reason.value} for one in trace.absent],
        "tailRecordIds": list(trace.tail_record_ids),
    }


def _document(made: Assembled) -> dict[str, object]:
    tail = made.tail
    return {
        **_account(made.view.trace),
        "prefix": made.prefix.text,
        "tail": None if tail is None else {"text": tail.text, "tokens": tail.tokens, "omitted": tail.omitted},
    }
