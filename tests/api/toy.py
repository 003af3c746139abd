"""A small schema with one field for each thing that can go wrong, behind the real edge."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import datetime

import strawberry

from graph_mem import errors
from graph_mem.api.errors import SafeSchema
from graph_mem.api.failures import ERROR_TYPES, MutationError, attempt
from graph_mem.api.guard import Guard
from graph_mem.api.scalars import JSON, schema_config
from graph_mem.api.session import Info

SECRET_TEXT = "the acquisition closes in March"


class Witness:
    """What the resolvers lived through."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.bumps = 0
        self.finished = 0
        self.cancelled = 0
        self.ticks = 0
        self.lingering = 0


witness = Witness()


@strawberry.input
class Question:
    q: str
    n: int | None = 3


@strawberry.type
class Leaf:
    a: str = "a"

    @strawberry.field
    def one(self) -> "Leaf":
        return Leaf()

    @strawberry.field
    def many(self, first: int = 10) -> list["Leaf"]:
        if not 1 <= first <= 100:
            raise errors.InvalidInput(f"`first` must be 1 to 100; found {first}.", path=["first"])
        return [Leaf() for _ in range(min(first, 3))]


async def until(condition: Callable[[], bool], *, within_s: float = 10) -> None:
    """Return once `condition` holds, however busy the machine is."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 # it comes true in another task
            await asyncio.sleep(0.01)


async def _linger(seconds: float) -> None:
    witness.lingering += 1
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        witness.cancelled += 1
        raise
    witness.finished += 1


@strawberry.type
class Query:
    @strawberry.field
    def health(self) -> str:
        return "OK"

    @strawberry.field
    def hello(self, name: str = "you") -> str:
        return f"hello {name}"

    @strawberry.field
    def me(self, info: Info) -> str:
        return info.context.principal.user_id

    @strawberry.field
    def role(self, info: Info) -> str:
        return info.context.principal.role

    @strawberry.field
    def leaf(self) -> Leaf:
        return Leaf()

    @strawberry.field
    def leaves(self, ids: list[strawberry.ID]) -> list[Leaf]:
        return [Leaf() for _ in ids]

    @strawberry.field
    async def slow(self, seconds: float) -> str:
        await _linger(seconds)
        return "done"

    @strawberry.field
    def boom(self) -> str | None:
        raise RuntimeError(SECRET_TEXT)

    @strawberry.field
    def boom_at_root(self) -> str:
        raise RuntimeError(SECRET_TEXT)

    @strawberry.field
    def wrong_type(self) -> int | None:
        return SECRET_TEXT  # type: ignore[return-value] # the point

    @strawberry.field
    def missing(self) -> str | None:
        raise errors.NotFound("mem_X")

    @strawberry.field
    def down(self) -> str:
        raise errors.DatabaseUnavailable("Neo4j does not answer.")

    @strawberry.field
    def at(self, at: datetime) -> datetime:
        return at

    @strawberry.field
    def echo(self, value: JSON) -> JSON:
        return value

    @strawberry.field
    def ask(self, input: Question) -> str:
        return f"{input.q}{input.n}"

    @strawberry.field
    def tags(self, t: list[str]) -> list[str]:
        return t


@strawberry.type
class BumpPayload:
    bumps: int | None
    errors: list[MutationError]


async def _bump(to: int) -> int:
    if to < 0:
        raise errors.Conflict("Stale.", current_version=witness.bumps)
    witness.bumps += 1
    return witness.bumps


@strawberry.type
class Mutation:
    @strawberry.mutation
    async def bump(self, to: int = 1) -> BumpPayload:
        bumps, failures = await attempt(_bump(to))
        return BumpPayload(bumps=bumps, errors=failures)

    @strawberry.mutation
    async def slow_bump(self, seconds: float) -> int:
        await _linger(seconds)
        return await _bump(1)


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int, every: float = 0.01) -> AsyncGenerator[int, None]:
        for number in range(1, to + 1):
            witness.ticks = number
            yield number
            await asyncio.sleep(every)

    @strawberry.subscription
    async def silence(self) -> AsyncGenerator[int, None]:
        await _linger(3600)
        yield 0

    @strawberry.subscription
    async def breaks(self) -> AsyncGenerator[int, None]:
        yield 1
        raise RuntimeError(SECRET_TEXT)


def toy_schema(guard: Guard) -> SafeSchema:
    return SafeSchema(
        Query, Mutation, Subscription, types=ERROR_TYPES, extensions=[guard.extension], config=schema_config()
    )
