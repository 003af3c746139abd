"""A database whose statements have lost the first layer: one of them, or all."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from graph_mem.store.db import Database, Tx
from tests.guards.statements import PREDICATE

T = TypeVar("T")


class Opened(Database):
    """`inner`, with `true` in place of the predicate in the statement `only`, or in every one.

    `true` for the organizations of the test: on a database that others use as well their rows would fill every page.
    """

    def __init__(self, inner: Database, *, orgs: tuple[str, ...], only: str | None = None) -> None:
        self._inner = inner
        self._orgs = "[" + ", ".join(f"'{org}'" for org in orgs) + "]"
        self._only = only
        self.ran: set[str] = set()
        """The statements that were run with their predicate taken out."""

    async def read(self, work: Callable[[Tx], Awaitable[T]], *, timeout_s: float | None = None) -> T:
        return await self._inner.read(lambda tx: work(self._wrapped(tx)), timeout_s=timeout_s)

    async def write(self, work: Callable[[Tx], Awaitable[T]], *, timeout_s: float | None = None) -> T:
        return await self._inner.write(lambda tx: work(self._wrapped(tx)), timeout_s=timeout_s)

    async def glance(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return await self._inner.glance(lambda tx: work(self._wrapped(tx)))

    def _wrapped(self, tx: Tx) -> Tx:
        return cast("Tx", _OpenedTransaction(tx, self))

    def text(self, statement: str) -> str:
        if self._only not in (None, statement) or not PREDICATE.search(statement):
            return statement
        self.ran.add(statement)
        return PREDICATE.sub(self._anything, statement)

    def _anything(self, found: re.Match[str]) -> str:
        return f"({found[1]}.org IN {self._orgs})"


class _OpenedTransaction:
    def __init__(self, inner: Any, opened: Opened) -> None:
        self._inner = inner
        self._opened = opened

    async def run(self, statement: str, parameters: Mapping[str, Any]) -> Any:
        return await self._inner.run(self._opened.text(statement), parameters)
