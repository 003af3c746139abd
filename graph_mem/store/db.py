"""The one door to Neo4j: a driver, managed read and write transactions, and its errors as ours."""

# The driver leaves its **config untyped.
# pyright: reportUnknownMemberType=false

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, LiteralString, Self, TypeVar, cast
from urllib.parse import urlsplit

from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    AsyncResult,
    AsyncSession,
    Bookmarks,
    Driver,
    GraphDatabase,
    Query,
    Record,
    unit_of_work,
)
from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConfigurationError,
    ConnectionAcquisitionTimeoutError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from graph_mem.errors import (
    DatabaseUnavailable,
    GraphMemError,
    IndexUnavailable,
    OperationTimeout,
    SetupError,
    UnsuitableServer,
)

T = TypeVar("T")
Tx = AsyncManagedTransaction
Row = Mapping[str, Any]

_FULL_TEXT = "Failed to invoke procedure `db.index.fulltext"
_UNFIT = "Neo.DatabaseError.Transaction."
"""What Neo4j answers from the moment its disk is full to its restart."""
_TOO_OFTEN = "Neo.ClientError.Security.AuthenticationRateLimit"
"""What it says, for some seconds, to whoever came with a wrong password too often."""
_TIMED_OUT = (
    "TransactionTimedOut",
    "TransactionTimedOutClientConfiguration",
    "Transaction.LockClientStopped",
    "Transaction.Terminated",
)
"""The last two: its time was up, or the server went down, while it waited for a lock or was at work."""


@dataclass(slots=True)
class Load:
    """What this process asks of its pool, counted here because the driver does not tell."""

    connections: int
    sessions: int = 0
    """Open now: each holds a connection or, beyond `connections`, waits for one."""
    transactions: int = 0
    waited_s: float = 0.0
    """Of all managed transactions together, until each could begin."""
    retries: int = 0
    timeouts: int = 0
    """Sessions that waited for a connection in vain."""

    @contextmanager
    def session(self) -> Generator[None]:
        """Counts a session as open for as long as it is."""
        self.sessions += 1
        try:
            yield
        except ConnectionAcquisitionTimeoutError:
            self.timeouts += 1
            raise
        finally:
            self.sessions -= 1

    def transaction(self) -> Callable[[], None]:
        """A transaction is asked for; what is returned is to be called as each of its attempts begins."""
        asked: float | None = time.perf_counter()

        def begun() -> None:
            nonlocal asked
            if asked is None:
                self.retries += 1
            else:
                self.waited_s += time.perf_counter() - asked
                self.transactions += 1
                asked = None

        return begun


@dataclass(slots=True)
class Causes:
    """What one caller goes by, as bookmarks of Neo4j.

    No read of its own lies before `seen`; `made` is what it has written since.
    """

    seen: frozenset[str] = frozenset()
    made: set[str] = field(default_factory=set[str])


_causes: ContextVar[Causes | None] = ContextVar("causes", default=None)


@contextmanager
def caused() -> Generator[Causes]:
    """Everything done inside is one caller's, who may come from another process of ours."""
    made = Causes()
    before = _causes.set(made)
    try:
        yield made
    finally:
        _causes.reset(before)


def _seen() -> Bookmarks:
    causes = _causes.get()
    return Bookmarks.from_raw_values(causes.seen if causes else ())


class Database:
    """A pool of connections to one Neo4j database.

    `read` and `write` take a function of a transaction. The driver may run it twice (deadlock, leader change,
    lost connection), so it must have no effect but its queries.
    """

    def __init__(self, driver: AsyncDriver, *, database: str, connections: int = 100, timeout_s: float = 15.0) -> None:
        self.driver = driver
        self.name = database
        self._timeout_s = timeout_s
        self._bookmarks = AsyncGraphDatabase.bookmark_manager(bookmarks_supplier=_seen)
        self.blocking: Callable[[], Driver] | None = None
        """Opens a driver to the same database for libraries that know no event loop; the caller closes it."""
        self.load = Load(connections)

    @classmethod
    def connect(
        cls,
        uri: str,
        *,
        user: str,
        password: str,
        database: str,
        pool_size: int = 50,
        timeout_s: float = 15.0,
        retry_s: float = 15.0,
    ) -> Self:
        """A database behind `uri`; nothing is sent before the first transaction.

        Errors: SetupError if `uri` is no address of a Neo4j.
        """
        shared: dict[str, Any] = {
            "auth": (user, password),
            "connection_timeout": 5.0,
            "max_transaction_retry_time": retry_s,
            "notifications_min_severity": "OFF",
        }
        try:
            _ = urlsplit(uri).port  # the driver would find out at the first transaction
            driver = AsyncGraphDatabase.driver(
                uri,
                max_connection_pool_size=pool_size,
                connection_acquisition_timeout=20.0,
                initial_retry_delay=0.05,
                keep_alive=True,
                warn_notification_severity=None,
                **shared,
            )
        except (ConfigurationError, ValueError) as problem:
            raise SetupError(f"The address of Neo4j cannot be used: {problem}") from problem
        made = cls(driver, database=database, connections=pool_size, timeout_s=timeout_s)
        made.blocking = lambda: GraphDatabase.driver(uri, **shared)
        return made

    async def read(self, work: Callable[[Tx], Awaitable[T]], *, timeout_s: float | None = None) -> T:
        """The result of `work` in a read transaction, on a replica where there are some."""
        return await self._run(work, access=READ_ACCESS, timeout_s=timeout_s)

    async def write(self, work: Callable[[Tx], Awaitable[T]], *, timeout_s: float | None = None) -> T:
        """The result of `work` in a write transaction, committed."""
        return await self._run(work, access=WRITE_ACCESS, timeout_s=timeout_s)

    async def glance(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """As `read`, for `work` of a single statement: in an auto-commit transaction, which takes half the messages.

        What that cannot answer at once is read again as a managed transaction, with its retries.
        """
        try:
            async with self._session(READ_ACCESS) as session:
                return await work(cast("Tx", _AutoCommit(session, self._timeout_s)))
        except (TransientError, ServiceUnavailable, SessionExpired):
            self.load.retries += 1
            return await self.read(work)
        except (Neo4jError, DriverError) as error:
            raise translated(error) from error

    async def _run(self, work: Callable[[Tx], Awaitable[T]], *, access: str, timeout_s: float | None = None) -> T:
        begun = self.load.transaction()

        @unit_of_work(timeout=timeout_s or self._timeout_s)
        async def counted(tx: Tx) -> T:
            begun()
            return await work(tx)

        try:
            async with self._session(access) as session:
                if access == READ_ACCESS:
                    return await session.execute_read(counted)
                result = await session.execute_write(counted)
                if causes := _causes.get():
                    causes.made |= (await session.last_bookmarks()).raw_values
                return result
        except (Neo4jError, DriverError) as error:
            raise translated(error) from error

    async def run(self, statement: LiteralString, **parameters: Any) -> list[Row]:
        """The rows of one statement in its own auto-commit transaction: DDL, and CALL ... IN TRANSACTIONS."""
        try:
            async with self._session(WRITE_ACCESS) as session:
                result = await session.run(statement, parameters)
                return [row async for row in result]
        except (Neo4jError, DriverError) as error:
            raise translated(error) from error

    @asynccontextmanager
    async def _session(self, access: str) -> AsyncGenerator[AsyncSession]:
        with self.load.session():
            async with self.driver.session(
                database=self.name, default_access_mode=access, bookmark_manager=self._bookmarks
            ) as session:
                yield session

    async def close(self) -> None:
        await self.driver.close()


class _AutoCommit:
    """The part of a transaction that `row` and `rows` use, on a session that commits each statement by itself."""

    def __init__(self, session: AsyncSession, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s

    async def run(self, statement: LiteralString, parameters: Mapping[str, Any]) -> AsyncResult:
        return await self._session.run(Query(statement, timeout=self._timeout_s), dict(parameters))


def translated(error: Neo4jError | DriverError) -> GraphMemError | Exception:
    """`error` in our words where a caller can act on it; itself where it is a fault of ours."""
    code = getattr(error, "code", None) or ""
    if isinstance(error, (ServiceUnavailable, SessionExpired, ConnectionAcquisitionTimeoutError)):
        return DatabaseUnavailable(f"Neo4j does not answer: {type(error).__name__}.")
    if any(name in code for name in _TIMED_OUT):
        return OperationTimeout("The database transaction took longer than it may.")
    if isinstance(error, TransientError):
        return DatabaseUnavailable(f"Neo4j could not finish the transaction after several tries: {code}.")
    if code.startswith(_UNFIT):
        return DatabaseUnavailable(f"Neo4j can begin or commit no transaction, its own log says why: {code}.")
    if isinstance(error, AuthError) or code == _TOO_OFTEN:
        return UnsuitableServer(f"Neo4j refuses the user or password it was given: {error.message}")
    if isinstance(error, ClientError) and (
        getattr(error, "gql_status", "") in ("22N69", "42NFF") or _FULL_TEXT in (error.message or "")
    ):
        return IndexUnavailable("A search index is missing or not online.")
    return error


async def rows(tx: Tx, statement: LiteralString, /, **parameters: Any) -> list[Record]:
    """All rows of `statement`."""
    result = await tx.run(statement, parameters)
    return [row async for row in result]


async def row(tx: Tx, statement: LiteralString, /, **parameters: Any) -> Record | None:
    """The only row of `statement`, or None."""
    result = await tx.run(statement, parameters)
    return await result.single(strict=False)
