"""Session scratch: what a run notes down for itself."""

from datetime import datetime
from typing import Annotated

import strawberry

from graph_mem.api.canon import scope_name
from graph_mem.api.capture import CaptureMemoryPayload, payload
from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.nodes import Node, ScopeInput
from graph_mem.api.session import Info
from graph_mem.core import scratch as core
from graph_mem.services import scratch

RunIdArgument = Annotated[strawberry.ID, strawberry.argument(description="The run, by the id its agent gave it.")]


@strawberry.type(description="A note of one run, for nobody but you; in no search.")
class ScratchNote(Node):
    run_id: strawberry.ID = strawberry.field(description="The run.")
    text: str = strawberry.field(description="What it says.")
    created_at: datetime = strawberry.field(description="When it was noted.")
    expires_at: datetime = strawberry.field(description="When it is gone, if the run has not ended by then.")

    @classmethod
    def of(cls, note: core.ScratchNote) -> "ScratchNote":
        return cls(
            id=strawberry.ID(note.id),
            run_id=strawberry.ID(note.run_id),
            text=note.text,
            created_at=note.created_at,
            expires_at=note.expires_at,
        )


@strawberry.input(description="A note for a run.")
class AddScratchInput:
    run_id: strawberry.ID = strawberry.field(description="The run, 200 bytes at most.")
    text: str = strawberry.field(description="What to note, 64 KiB at most.")


@strawberry.input(description="What becomes of a note as a memory.")
class PromoteScratchInput:
    id: strawberry.ID = strawberry.field(description="The note.")
    label: str = strawberry.field(default="note", description="What kind of memory.")
    scope: ScopeInput | None = strawberry.field(default=None, description="Where it lives; left out: organization.")
    private: bool = strawberry.field(default=False, description="For your own eyes only.")


@strawberry.type(description="What became of a note.")
class ScratchPayload:
    note: ScratchNote | None = strawberry.field(description="The note; null exactly when there are errors.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was noted.")


@strawberry.type(description="What became of a run's notes.")
class EndRunPayload:
    removed: int | None = strawberry.field(
        description="How many notes were removed; null exactly when there are errors."
    )
    errors: list[MutationError] = strawberry.field(description="Why nothing was removed.")


@strawberry.type
class ScratchQuery:
    @strawberry.field(description="Your notes of a run, oldest first.")
    async def scratch(self, info: Info, run_id: RunIdArgument) -> list[ScratchNote]:
        found = await scratch.notes(info.context.deps, info.context.principal, run_id=run_id)
        return [ScratchNote.of(note) for note in found]


@strawberry.type
class ScratchMutation:
    @strawberry.mutation(description="Notes something for the rest of a run.")
    async def add_scratch(self, info: Info, input: AddScratchInput) -> ScratchPayload:
        context = info.context
        note, errors = await attempt(scratch.add(context.deps, context.principal, run_id=input.run_id, text=input.text))
        return ScratchPayload(note=ScratchNote.of(note) if note else None, errors=errors)

    @strawberry.mutation(description="Captures a note as any other text; the same note again is the same memory.")
    async def promote_scratch(self, info: Info, input: PromoteScratchInput) -> CaptureMemoryPayload:
        context = info.context
        return await payload(
            scratch.promote(
                context.deps,
                context.principal,
                id=input.id,
                label=input.label,
                scope=scope_name(input.scope),
                private=input.private,
            )
        )

    @strawberry.mutation(description="Ends a run: its notes are gone.")
    async def end_run(self, info: Info, run_id: RunIdArgument) -> EndRunPayload:
        removed, errors = await attempt(scratch.end_run(info.context.deps, info.context.principal, run_id=run_id))
        return EndRunPayload(removed=removed, errors=errors)
