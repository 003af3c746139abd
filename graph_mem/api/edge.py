"""Runs operations for every transport: with a caller, a time limit, and an end when the client is gone."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from strawberry.types.execution import ExecutionResult, PreExecutionError
from strawberry.types.graphql import OperationType

from graph_mem.api.brake import Brake
from graph_mem.api.causality import Seal
from graph_mem.api.documents import Manifest
from graph_mem.api.errors import OURS, SafeSchema, refusal
from graph_mem.api.following import Following, Silence
from graph_mem.api.limits import RateLimiter
from graph_mem.api.request import Operation
from graph_mem.api.session import Context, Session, Sessions
from graph_mem.errors import Forbidden, GraphMemError, OperationTimeout, RateLimited, ServiceUnavailable
from graph_mem.services import Deps, metrics
from graph_mem.services.spans import tell

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """What the transports allow. `max_body_bytes` lets a text of 2 MB through in any JSON spelling."""

    max_body_bytes: int = 8 << 20
    max_frame_bytes: int = 1 << 20
    max_document_chars: int = 32_768
    timeout_s: float = 15.0
    connection_init_timeout_s: float = 5.0
    max_operations_per_socket: int = 20
    max_streams_per_caller: int = 100
    recheck_s: float = 1.0
    heartbeat_s: float = 12.0
    allowed_origins: tuple[str, ...] = ()
    introspection: bool = True


@dataclass(slots=True)
class Edge:
    """What the transports share."""

    schema: SafeSchema
    deps: Deps
    sessions: Sessions
    limiter: RateLimiter = field(default_factory=RateLimiter)
    brake: Brake = field(default_factory=Brake)
    manifest: Manifest = field(default_factory=Manifest)
    seal: Seal = field(default_factory=Seal)
    settings: EdgeSettings = field(default_factory=EdgeSettings)
    _streams: Counter[str] = field(init=False, default_factory=Counter[str])
    _unfinished: set[asyncio.Future[Any]] = field(init=False, default_factory=set[asyncio.Future[Any]])

    async def open(self, credential: str, *, address: str) -> Session:
        """The session that a credential gives; RateLimited where too many that are not valid came from."""
        with self.brake.watching(credential, address=address):
            return await self.sessions.open(credential)

    async def context(
        self, session: Session | None, *, request_id: str, address: str, since: float | None = None
    ) -> Context:
        """A fresh context; Unauthenticated if the session no longer holds.

        While the graph does not answer nobody is recognized, and the context says why: that leaves health. `since` is
        the monotonic time at which the caller came, where that was before.
        """
        came = _now() if since is None else since
        context = Context(
            self.deps,
            request_id,
            session=session,
            limiter=self.limiter,
            address=address,
            introspection=self.settings.introspection,
        )
        if session is not None:
            try:
                context.caller = await self.sessions.principal(session)
            except ServiceUnavailable as error:
                context.unrecognized = error
        context.recognized_s = _seconds_since(came)
        return context

    async def run(self, operation: Operation, context: Context, *, gone: Awaitable[object]) -> ExecutionResult | None:
        """The result of a query or mutation within the time limit; None if the client was `gone` before.

        A query ends with its client. A mutation is never cut short: it goes on, and nobody hears of it.
        """
        started = _now()
        work = asyncio.ensure_future(
            self.schema.execute(
                operation.text,
                variable_values=operation.variables,
                context_value=context,
                operation_name=operation.name,
                allowed_operation_types=(OperationType.QUERY, OperationType.MUTATION),
            )
        )
        watch = asyncio.ensure_future(gone)
        result: ExecutionResult | None = None
        try:
            await asyncio.wait({work, watch}, timeout=self.settings.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                result = work.result()
            elif not watch.done():
                result = _failed(self._too_slow(context), context)
        finally:
            watch.cancel()
            if not work.done():
                await self._let_go(work, context)
        _note(context, result, started)
        return result

    async def watch(self, operation: Operation, context: Context) -> AsyncGenerator[ExecutionResult | None, None]:
        """The results of any operation as they come, and None now and then while there is none.

        The caller is looked up again all the while. A `PreExecutionError` is the last result: nothing ran, or it
        may not go on.
        """
        started, payer = _now(), context.budget_key
        if self._streams[payer] >= self.settings.max_streams_per_caller:
            busy = RateLimited("You have too many streams open.", retry_after_s=self.settings.recheck_s)
            yield _failed(busy, context)
            return
        self._streams[payer] += 1
        following = Following(
            await self.schema.stream(
                operation.text,
                variable_values=operation.variables,
                context_value=context,
                operation_name=operation.name,
            )
        )
        last: ExecutionResult | None = None
        try:
            async with aclosing(self._supervised(following, context)) as results:
                async for last in results:
                    yield last
        except GraphMemError as error:
            last = _failed(error, context)
            yield last
        finally:
            self._streams -= Counter({payer: 1})
            if context.mutates:
                self._keep(asyncio.ensure_future(following.finish()))
            else:
                await following.close()
            _note(context, last, started)

    async def drain(self) -> None:
        """Wait for the mutations whose clients have left."""
        if self._unfinished:
            await asyncio.wait(self._unfinished, timeout=self.settings.timeout_s)

    async def _supervised(
        self, following: Following[ExecutionResult], context: Context
    ) -> AsyncGenerator[ExecutionResult | None, None]:
        """What `following` says, or None every `heartbeat_s` of silence, as long as the caller may hear it."""
        started = spoke = _now()
        while True:
            said = await following.next(within_s=self.settings.recheck_s)
            if said is Silence.FOR_EVER:
                return
            await self._check_still_allowed(context)
            if not isinstance(said, Silence):
                spoke = _now()
                yield said
            elif not context.subscribes and _seconds_since(started) > self.settings.timeout_s:
                raise self._too_slow(context)
            elif _seconds_since(spoke) > self.settings.heartbeat_s:
                spoke = _now()
                yield None

    async def _check_still_allowed(self, context: Context) -> None:
        if context.session is None or context.caller is None:
            return
        if await self.sessions.principal(context.session) != context.caller:
            raise Forbidden("Your role or your assignments have changed; subscribe again.")

    def _too_slow(self, context: Context) -> OperationTimeout:
        after = f"The operation took longer than {self.settings.timeout_s:g} s."
        if context.mutates:
            after += " It may still take effect: look before you repeat it, or repeat it with its idempotency key."
        return OperationTimeout(after)

    async def _let_go(self, work: asyncio.Future[Any], context: Context) -> None:
        if context.mutates:
            self._keep(work)
        else:
            work.cancel()
            await asyncio.wait({work})

    def _keep(self, work: asyncio.Future[Any]) -> None:
        self._unfinished.add(work)
        work.add_done_callback(self._unfinished.discard)


def _failed(error: GraphMemError, context: Context) -> PreExecutionError:
    return PreExecutionError(data=None, errors=[refusal(error, ref=context.request_id)])


def note_refused(error: GraphMemError, *, ref: str, since: float) -> None:
    """Tell log, metrics and trace of a request that ended before anything of it could run."""
    _tell(ref, "none", None, {}, [error.code], _seconds_since(since))


def _note(context: Context, result: ExecutionResult | None, started: float) -> None:
    """Tell of an operation: what ran, for whom, how it ended, how long the caller waited for it."""
    operation = context.operation
    kind = operation.operation.value if operation else "none"
    name = operation.name.value if operation and operation.name else None
    codes = sorted({str((error.extensions or {}).get("code")) for error in (result.errors if result else None) or ()})
    who = {"org": context.caller.org_id, "user": context.caller.user_id} if context.caller else {}
    _tell(context.request_id, kind, name, who, codes, context.recognized_s + _seconds_since(started))


def _tell(ref: str, kind: str, name: str | None, who: Mapping[str, str], codes: Sequence[str], seconds: float) -> None:
    """Names only, never values."""
    told = {"ref": ref, "type": kind, "operation": name, **who, "codes": codes}
    _log.info("operation", extra={**told, "took_ms": round(seconds * 1000, 1)})
    metrics.count_operation(kind, codes, seconds=seconds)
    tell(
        {
            "graphql.operation.type": kind,
            "graphql.operation.name": name or "",
            "graph_mem.codes": codes,
            **{f"graph_mem.{key}": id for key, id in who.items()},
        },
        name=kind,
        failed=not OURS.isdisjoint(codes),
    )


def _now() -> float:
    return time.monotonic()


def _seconds_since(moment: float) -> float:
    return time.monotonic() - moment
