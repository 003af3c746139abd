"""What an agent is given before a run, and the account of it."""

from datetime import datetime

import strawberry

from graph_mem.api.canon import CanonMutation, CanonQuery, Pin, Policy, scope_name
from graph_mem.api.memories import Memory
from graph_mem.api.nodes import Node, ScopeInput
from graph_mem.api.scratch import RunIdArgument, ScratchMutation, ScratchNote, ScratchQuery
from graph_mem.api.search import Related, SearchHit
from graph_mem.api.session import Info
from graph_mem.core import context as core
from graph_mem.core.canon import Absence
from graph_mem.core.context import ShownPin
from graph_mem.core.model import is_id
from graph_mem.core.runs import RebuildState
from graph_mem.services import canon, context, pins, scratch
from graph_mem.services.context import Assembled, Request, RunView

strawberry.enum(
    Absence,
    name="PinAbsence",
    description="Why a pin shows nothing. ERASED: erased, or not visible to you. DUPLICATE: another pin shows it.",
)
strawberry.enum(
    RebuildState,
    description="EXACT: the very bytes. ERASED: a memory in it was erased since. CHANGED: it would render differently.",
)


@strawberry.type(description="Static; goes in the system prompt. Same inputs, same bytes.")
class ContextPrefix:
    text: str = strawberry.field(description="Policies, variables and pinned memories, rendered.")
    hash: str = strawberry.field(description="SHA-256 of the text as UTF-8, hexadecimal.")
    tokens: int = strawberry.field(description="How many tokens the text has.")

    @classmethod
    def of(cls, prefix: core.Prefix) -> "ContextPrefix":
        return cls(text=prefix.text, hash=prefix.hash, tokens=prefix.tokens)


@strawberry.type(description="Volatile; goes after the user's prompt, under its own heading.")
class ContextTail:
    text: str = strawberry.field(description="Search results, whole, best first, each fenced as evidence.")
    tokens: int = strawberry.field(description="How many tokens the text has.")
    items: list[SearchHit] = strawberry.field(description="The results that are in it.")
    omitted: int = strawberry.field(description="How many results found no room.")


@strawberry.type(description="A pinned memory as a context showed it.")
class PinnedItem:
    pin_id: strawberry.ID = strawberry.field(description="The pin.")
    memory: Memory = strawberry.field(description="The memory shown, as it is now; without text once erased.")
    tokens: int = strawberry.field(description="How many tokens it took.")
    truncated: bool = strawberry.field(description="True when it was over its limit and cut at a paragraph.")
    followed_supersession: bool = strawberry.field(description="True when the pinned memory had been replaced by it.")
    memory_version: int = strawberry.field(description="The version of the memory that was shown.")

    @classmethod
    def of(cls, shown: ShownPin, view: RunView) -> "PinnedItem":
        return cls(
            pin_id=strawberry.ID(shown.pin.id),
            memory=Memory.of(view.memories[shown.memory_id]),
            tokens=shown.tokens,
            truncated=shown.cut is not None,
            followed_supersession=shown.followed,
            memory_version=shown.memory_version,
        )


@strawberry.type(description="A pin that a context had nothing to show for.")
class AbsentPin:
    pin_id: strawberry.ID = strawberry.field(description="The pin.")
    memory_id: strawberry.ID = strawberry.field(description="The memory that was pinned.")
    reason: Absence = strawberry.field(description="Why it was left out.")


@strawberry.type(description="The prefix of a run, rendered again from the versions that its trace names.")
class RebuiltPrefix:
    state: RebuildState = strawberry.field(description="Whether it could be had again, byte for byte.")
    text: str | None = strawberry.field(description="The prefix; null unless EXACT.")
    missing_ids: list[strawberry.ID] = strawberry.field(description="The memories that were erased since.")


@strawberry.type(description="What one context held, exactly.")
class RunTrace(Node):
    run_id: strawberry.ID = strawberry.field(description="The run, by the id its agent gave it.")
    at: datetime = strawberry.field(description="When it was assembled.")
    by: strawberry.ID = strawberry.field(description="For whom.")
    budget: int = strawberry.field(description="The tokens that were allowed.")
    used: int = strawberry.field(description="The tokens of both parts.")
    over_budget: bool = strawberry.field(description="True when canon alone was over the budget.")
    pins: list[PinnedItem] = strawberry.field(description="The pinned memories shown, in order.")
    absent_pins: list[AbsentPin] = strawberry.field(description="The pins that showed nothing, and why.")
    policy_count: int = strawberry.field(description="How many policies were in force.")
    variable_count: int = strawberry.field(description="How many variables were resolved.")
    semantic_tail: bool = strawberry.field(description="Whether a tail was asked for.")
    tail_record_ids: list[strawberry.ID] = strawberry.field(description="The records in the tail, in order.")
    prefix_hash: str = strawberry.field(description="SHA-256 of the prefix.")
    retrieval_trace_id: strawberry.ID | None = strawberry.field(description="The search behind the tail: see `trace`.")
    view: strawberry.Private[RunView]

    @strawberry.field(description="What the agent saw in the prefix, byte for byte.")
    async def rebuilt_prefix(self, info: Info) -> RebuiltPrefix:
        found = await context.rebuild(info.context.deps, info.context.principal, self.view.trace)
        missing = [strawberry.ID(id) for id in found.missing]
        return RebuiltPrefix(state=found.state, text=found.text, missing_ids=missing)

    @classmethod
    def of(cls, view: RunView) -> "RunTrace":
        trace = view.trace
        absent = [
            AbsentPin(pin_id=strawberry.ID(one.pin.id), memory_id=strawberry.ID(one.pin.memory_id), reason=one.reason)
            for one in trace.absent
        ]
        return cls(
            id=strawberry.ID(trace.id),
            run_id=strawberry.ID(trace.run_id),
            at=trace.at,
            by=strawberry.ID(trace.by),
            budget=trace.budget,
            used=trace.used,
            over_budget=trace.over_budget,
            pins=[PinnedItem.of(shown, view) for shown in trace.pins],
            absent_pins=absent,
            policy_count=len(trace.policies),
            variable_count=len(trace.variables),
            semantic_tail=trace.semantic_tail,
            tail_record_ids=[strawberry.ID(id) for id in trace.tail_record_ids],
            prefix_hash=trace.prefix_hash,
            retrieval_trace_id=strawberry.ID(trace.retrieval_trace_id) if trace.retrieval_trace_id else None,
            view=view,
        )


@strawberry.type(description="The two parts, which never mix, and their account.")
class ContextResult:
    prefix: ContextPrefix = strawberry.field(description="The static part.")
    tail: ContextTail | None = strawberry.field(description="The volatile part; null if it was not asked for.")
    trace: RunTrace = strawberry.field(description="The account, kept under the run's id.")

    @classmethod
    def of(cls, made: Assembled, info: Info) -> "ContextResult":
        return cls(prefix=ContextPrefix.of(made.prefix), tail=_tail(made, info), trace=RunTrace.of(made.view))


def _tail(made: Assembled, info: Info) -> ContextTail | None:
    if made.tail is None:
        return None
    items = made.tail.items
    related = Related(info.context, [hit.record.id for hit in items], wanted=False)
    trace_id = made.view.trace.retrieval_trace_id or ""
    hits = [SearchHit.of(hit, trace_id, related) for hit in items]
    return ContextTail(text=made.tail.text, tokens=made.tail.tokens, items=hits, omitted=made.tail.omitted)


@strawberry.input(description="What a run asks for.")
class ContextInput:
    run_id: strawberry.ID = strawberry.field(description="Names the run; any text up to 200 bytes.")
    instruction: str = strawberry.field(description="What the run is to do; the tail answers it.")
    scope: ScopeInput | None = strawberry.field(default=None, description="Where it works; left out: organization.")
    budget_tokens: int = strawberry.field(default=4000, description="For both parts. Canon is never dropped for it.")
    semantic_tail: bool = strawberry.field(default=False, description="Whether to search for the instruction too.")

    def request(self) -> Request:
        return Request(
            run_id=self.run_id,
            instruction=self.instruction,
            scope=scope_name(self.scope),
            budget_tokens=self.budget_tokens,
            semantic_tail=self.semantic_tail,
        )


@strawberry.type
class ContextQuery(CanonQuery, ScratchQuery):
    @strawberry.field(description="What an agent must see before a run, and with `semanticTail` what may help it.")
    async def context(self, info: Info, input: ContextInput) -> ContextResult | None:
        made = await context.assemble(info.context.deps, info.context.principal, input.request())
        return ContextResult.of(made, info)

    @strawberry.field(description="What the latest context of a run held; null for one that you may not see all of.")
    async def run_trace(self, info: Info, run_id: RunIdArgument) -> RunTrace | None:
        view = await context.run_trace(info.context.deps, info.context.principal, run_id=run_id)
        return RunTrace.of(view) if view else None


@strawberry.type
class ContextMutation(CanonMutation, ScratchMutation):
    pass


async def context_node(info: Info, id: str) -> Node | None:
    """The policy, pin, note or run trace with this id, if the caller may see it."""
    deps, principal = info.context.deps, info.context.principal
    if is_id(id, "pol"):
        policy = await canon.policy(deps, principal, id)
        return Policy.of(policy) if policy else None
    if is_id(id, "pin"):
        pinned = await pins.by_id(deps, principal, id)
        return Pin.of(pinned) if pinned else None
    if is_id(id, "scr"):
        note = await scratch.by_id(deps, principal, id)
        return ScratchNote.of(note) if note else None
    view = await context.run_trace_by_id(deps, principal, id) if is_id(id, "run") else None
    return RunTrace.of(view) if view else None
