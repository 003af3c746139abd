"""Databases that look at what is run on them: one whose statements have lost the first layer, one that remembers."""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar, cast

from graph_mem.core.model import Place
from graph_mem.errors import GraphMemError
from graph_mem.store.db import Database, Tx
from tests.guards.statements import PREDICATE, statements

T = TypeVar("T")
NAMES = {one.text: one.name for one in statements()}
_KEYS = re.compile(r"\+keys:\(([^)]*)\)\^0")


class Seen(Database):
    """`inner`, with every statement shown to `seen` before it is run."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner

    async def read(self, work: Callable[[Tx], Awaitable[T]], *, timeout_s: float | None = None) -> T:
        return await self._inner.read(lambda tx: self._work(work, tx), timeout_s=timeout_s)

    async def write(self, work: Callable[[Tx], Awaitable[T]], *, timeout_s: float | None = None) -> T:
        return await self._inner.write(lambda tx: self._work(work, tx), timeout_s=timeout_s)

    async def glance(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return await self._inner.glance(lambda tx: self._work(work, tx))

    async def _work(self, work: Callable[[Tx], Awaitable[T]], tx: Tx) -> T:
        return await work(cast("Tx", _SeenTransaction(tx, self.seen)))

    def seen(self, statement: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """What is run instead."""
        raise NotImplementedError


class Remembered(Seen):
    """`inner`, with the names of what was run; of a transaction that had to be repeated, once."""

    def __init__(self, inner: Database) -> None:
        super().__init__(inner)
        self.ran: list[str] = []

    async def _work(self, work: Callable[[Tx], Awaitable[T]], tx: Tx) -> T:
        ran: list[str] = []

        def seen(statement: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
            ran.append(NAMES.get(statement, statement))
            return statement, given

        try:
            done = await work(cast("Tx", _SeenTransaction(tx, seen)))
        except GraphMemError:
            self.ran += ran
            raise
        self.ran += ran
        return done


class Opened(Seen):
    """`inner`, with `true` in place of the predicate in the statement `only`, or in every one.

    `true` for the organizations of the test: on a database that others use as well their rows would fill every page.
    What stands inside an index, as a parameter, names every one of `places`.
    """

    def __init__(self, inner: Database, *, places: Collection[Place], only: str | None = None) -> None:
        super().__init__(inner)
        self._orgs = "[" + ", ".join(sorted({f"'{place.org_id}'" for place in places})) + "]"
        self._everywhere = {
            "partitions": sorted({place.partition_token for place in places}),
            "scopes": sorted({place.scope_token for place in places}),
        }
        self._only = only
        self.ran: set[str] = set()
        """The statements that were run with their predicate taken out."""

    def seen(self, statement: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        if self._only not in (None, statement) or not PREDICATE.search(statement):
            return statement, given
        self.ran.add(statement)
        return PREDICATE.sub(self._anything, statement), {**given, **self._everywhere, **self._queries(given)}

    def _queries(self, given: Mapping[str, Any]) -> dict[str, str]:
        """The full-text queries with every partition and scope in place of the caller's."""

        def widened(found: re.Match[str]) -> str:
            for name, tokens in self._everywhere.items():
                if set(found[1].split()) & set(given.get(name) or ()):
                    return f"+keys:({' '.join(tokens)})^0"
            return found[0]

        names = [name for name in ("query", "passedQuery") if isinstance(given.get(name), str)]
        return {name: _KEYS.sub(widened, given[name]) for name in names}

    def _anything(self, found: re.Match[str]) -> str:
        return f"({found[1]}.org IN {self._orgs})"


class _SeenTransaction:
    def __init__(self, inner: Any, seen: Callable[[str, Mapping[str, Any]], tuple[str, Mapping[str, Any]]]) -> None:
        self._inner = inner
        self._seen = seen

    async def run(self, statement: str, parameters: Mapping[str, Any]) -> Any:
        return await self._inner.run(*self._seen(statement, parameters))
