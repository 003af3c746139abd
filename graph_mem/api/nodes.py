"""Ids, interfaces, pages and cursors: what all types of the API share."""

import base64
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar, cast

import strawberry

from graph_mem.core import model
from graph_mem.core.model import Page, ScopeLevel, Standing
from graph_mem.errors import InvalidInput

T = TypeVar("T")
R = TypeVar("R")

MAX_PAGE = 100
DEFAULT_PAGE = 20

First = Annotated[int | None, strawberry.argument(description="How many, 1 to 100.")]
After = Annotated[str | None, strawberry.argument(description="A cursor of the same list: what follows it.")]
IdArgument = Annotated[strawberry.ID, strawberry.argument(description="The id of the record.")]

strawberry.enum(
    ScopeLevel,
    description="The three nested places a record can live in.",
)
strawberry.enum(Standing, description="Whether the record speaks for today.")


@strawberry.interface(
    description="Anything with a global id: opaque, stable, `<kind>_<ulid>`, the same string in API, log and Cypher."
)
class Node:
    id: strawberry.ID = strawberry.field(description="The global id.")


@strawberry.type(description="Where a page stands in its list.")
class PageInfo:
    has_next_page: bool = strawberry.field(description="Whether more follow.")
    has_previous_page: bool = strawberry.field(description="Whether some come before.")
    start_cursor: str | None = strawberry.field(description="The cursor of the first item.")
    end_cursor: str | None = strawberry.field(description="The cursor of the last item: `after` for the next page.")


@strawberry.type(description="One item of a list, with the cursor that continues after it.")
class Edge(Generic[T]):
    cursor: str = strawberry.field(description="Give this as `after` to continue after the item.")
    node: T = strawberry.field(description="The item.")


@strawberry.type(description="A page of a list.")
class Connection(Generic[T]):
    edges: list[Edge[T]] = strawberry.field(description="The items with their cursors.")
    nodes: list[T] = strawberry.field(description="The items.")
    page_info: PageInfo = strawberry.field(description="Where this page stands in the list.")
    counter: strawberry.Private[Callable[[], Awaitable[int]] | None] = None

    @strawberry.field(description="How many the whole list holds for you; null where that is not counted.")
    async def total_count(self) -> int | None:
        return await self.counter() if self.counter else None


@strawberry.type(description="Where a record lives.")
class Scope:
    level: ScopeLevel = strawberry.field(description="How narrow the place is.")
    client_id: strawberry.ID | None = strawberry.field(description="The client, for levels CLIENT and DEAL.")
    deal_id: strawberry.ID | None = strawberry.field(description="The deal, for level DEAL.")

    @classmethod
    def of(cls, scope: model.Scope) -> "Scope":
        return cls(
            level=scope.level,
            client_id=strawberry.ID(scope.client_id) if scope.client_id else None,
            deal_id=strawberry.ID(scope.deal_id) if scope.deal_id else None,
        )


@strawberry.input(description="Nothing given: organization scope.")
class ScopeInput:
    client_id: strawberry.ID | None = strawberry.field(default=None, description="A client of the organization.")
    deal_id: strawberry.ID | None = strawberry.field(default=None, description="A deal; its client may be left out.")


@strawberry.input(description="From `from`, before `to`; either may be left open.")
class TimeRange:
    start: datetime | None = strawberry.field(default=None, name="from", description="The first instant inside.")
    end: datetime | None = strawberry.field(default=None, name="to", description="The first instant outside again.")


def page_of(order: str, *, first: int | None, after: str | None, keys: Sequence[type] = (int, str)) -> Page:
    """The slice that a field's arguments ask for; its cursors belong to the list called `order`.

    Errors: InvalidInput for a page size out of 1..100, or a cursor that is not of this list.
    """
    first = DEFAULT_PAGE if first is None else first
    if not 1 <= first <= MAX_PAGE:
        raise InvalidInput(f"`first` is {first}, expected 1 to {MAX_PAGE}.", path=("first",))
    return Page(first, None if after is None else _keys(order, after, keys))


def cursor(order: str, *keys: Any) -> str:
    """The cursor of the item with `keys` in the list called `order`."""
    return base64.urlsafe_b64encode(json.dumps([order, *keys], separators=(",", ":")).encode()).decode().rstrip("=")


def _keys(order: str, cursor: str, types: Sequence[type]) -> tuple[Any, ...]:
    foreign = InvalidInput(f"`after` is {cursor[:80]!r}, expected a cursor of this list.", path=("after",))
    try:
        decoded = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise foreign from None
    if not isinstance(decoded, list):
        raise foreign
    found, *keys = cast("list[Any]", decoded) or [None]
    if found != order or len(keys) != len(types) or any(type(k) is not t for k, t in zip(keys, types, strict=True)):
        raise foreign
    if any(isinstance(key, int) and not -(2**63) <= key < 2**63 for key in keys):
        raise foreign
    return tuple(keys)


def connection(
    rows: Sequence[R],
    page: Page,
    *,
    order: str,
    keys: Callable[[R], tuple[Any, ...]],
    node: Callable[[R], T],
    count: Callable[[], Awaitable[int]] | None = None,
) -> Connection[T]:
    """A page made of `rows`, which hold one more than asked for when there is a next page."""
    shown = rows[: page.first]
    edges = [Edge(cursor=cursor(order, *keys(row)), node=node(row)) for row in shown]
    return Connection(
        edges=edges,
        nodes=[edge.node for edge in edges],
        page_info=PageInfo(
            has_next_page=len(rows) > page.first,
            has_previous_page=page.after is not None,
            start_cursor=edges[0].cursor if edges else None,
            end_cursor=edges[-1].cursor if edges else None,
        ),
        counter=count,
    )
