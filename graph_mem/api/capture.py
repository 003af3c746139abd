"""Saving texts, and following what becomes of them."""

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import cast

import strawberry
from strawberry.scalars import JSON

from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.memories import Memory
from graph_mem.api.nodes import IdArgument, ScopeInput
from graph_mem.api.session import Info
from graph_mem.core import model
from graph_mem.core.kinds import kind_of
from graph_mem.core.model import Processing, RecordId, SourceKind
from graph_mem.errors import InvalidInput, NotFound
from graph_mem.services import capture, records
from graph_mem.services.capture import NewMemory
from graph_mem.services.relations import NewRelation


@strawberry.input(description="A link to make together with the memory.")
class RelationInput:
    kind: str = strawberry.field(description="SUPERSEDES or one of the organization's own names.")
    to_id: strawberry.ID = strawberry.field(description="The record it points to; one you cannot see refuses all.")
    reason: str | None = strawberry.field(default=None, description="Why, for whoever reads the history.")


@strawberry.input(
    description="`idempotencyKey`: 128 characters at most, remembered 24 h per principal; the same key with the same "
    "input replays the answer."
)
class CaptureMemoryInput:
    text: str = strawberry.field(description="What to remember: stored byte for byte, 2 MiB at most.")
    label: str = strawberry.field(default="note", description="What kind of memory, in the organization's words.")
    title: str | None = strawberry.field(default=None, description="A title.")
    scope: ScopeInput | None = strawberry.field(default=None, description="Where it lives; left out: organization.")
    private: bool = strawberry.field(default=False, description="For your own eyes only.")
    source_kind: SourceKind = strawberry.field(default=SourceKind.USER, description="What kind of source it has.")
    source_uri: str | None = strawberry.field(default=None, description="Where the source can be found.")
    occurred_at: datetime | None = strawberry.field(default=None, description="When what it tells happened.")
    run_id: strawberry.ID | None = strawberry.field(default=None, description="The agent's run it comes from.")
    importance: float | None = strawberry.field(default=None, description="0..1; left out: the label's default.")
    metadata: JSON | None = strawberry.field(default=None, description="Anything to keep with it: a JSON object.")
    relations: list[RelationInput] = strawberry.field(
        default_factory=list[RelationInput], description="Links to make in the same transaction."
    )
    idempotency_key: str | None = strawberry.field(default=None, description="Makes a repetition harmless.")

    def new(self) -> NewMemory:
        return NewMemory(
            text=self.text,
            label=self.label,
            title=self.title,
            client_id=self.scope.client_id if self.scope else None,
            deal_id=self.scope.deal_id if self.scope else None,
            private=self.private,
            source_kind=self.source_kind,
            source_uri=self.source_uri,
            occurred_at=self.occurred_at,
            run_id=self.run_id,
            importance=self.importance,
            metadata=_object(self.metadata),
            relations=tuple(NewRelation(one.kind, RecordId(one.to_id), one.reason) for one in self.relations),
        )


def _object(metadata: object) -> dict[str, object] | None:
    if metadata is None or isinstance(metadata, dict):
        return cast("dict[str, object] | None", metadata)
    raise InvalidInput(f"The metadata is {kind_of(metadata)}, expected an object.", path=("metadata",))


@strawberry.type(description="What became of a capture.")
class CaptureMemoryPayload:
    memory: Memory | None = strawberry.field(description="The memory; null exactly when there are errors.")
    replayed: bool = strawberry.field(description="True for the answer to an earlier call with the same key.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was stored.")


async def payload(work: "capture.Coming") -> CaptureMemoryPayload:
    """The payload for a capture under way."""
    accepted, errors = await attempt(work)
    memory = Memory.of(accepted.memory) if accepted else None
    return CaptureMemoryPayload(memory=memory, replayed=bool(accepted and accepted.replayed), errors=errors)


@strawberry.type
class CaptureMutation:
    @strawberry.mutation(description="Stores a text and answers at once; everything else happens afterwards.")
    async def capture_memory(self, info: Info, input: CaptureMemoryInput) -> CaptureMemoryPayload:
        context = info.context

        async def work() -> capture.Accepted:
            new = input.new()
            return await capture.accept(context.deps, context.principal, new, idempotency_key=input.idempotency_key)

        return await payload(work())

    @strawberry.mutation(description="Processes a FAILED memory again, now.")
    async def retry_processing(self, info: Info, id: IdArgument) -> CaptureMemoryPayload:
        return await payload(capture.retry(info.context.deps, info.context.principal, id))


@strawberry.type(description="A memory's processing went a step on.")
class MemoryStatusEvent:
    memory: Memory = strawberry.field(description="The memory as it is now.")
    previous: Processing | None = strawberry.field(description="What it was before; null in the first event.")
    at: datetime = strawberry.field(description="When this was seen.")


_POLL_S = 0.5
_DONE = (Processing.READY, Processing.FAILED)


@strawberry.type
class CaptureSubscription:
    @strawberry.subscription(description="The present status at once, then every change; completes at READY or FAILED.")
    async def memory_status(self, info: Info, id: IdArgument) -> AsyncGenerator[MemoryStatusEvent, None]:
        context, previous = info.context, None
        while True:
            found = (await records.by_ids(context.deps, context.principal, [RecordId(id)])).get(RecordId(id))
            if not isinstance(found, model.Memory):
                raise NotFound(id, path=("id",))
            if found.processing is not previous:
                yield MemoryStatusEvent(memory=Memory.of(found), previous=previous, at=context.deps.clock())
                previous = found.processing
            if previous in _DONE:
                return
            await context.deps.wakeups.wait(_POLL_S)
