"""graphql-transport-ws: strict about messages, a fresh context per operation, and over when its token is.

The protocol: https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from strawberry.types.execution import ExecutionResult, PreExecutionError

from graph_mem.api.edge import Edge, note_refused
from graph_mem.api.errors import refusal
from graph_mem.api.request import BAD_REQUEST, Operation, Refused, bearer, decode, parse_operation
from graph_mem.api.session import Session
from graph_mem.api.tracking import tracked
from graph_mem.errors import GraphMemError, RateLimited, ServiceUnavailable, Unauthenticated

PROTOCOL = "graphql-transport-ws"
MAX_ID = 128


@dataclass(frozen=True, slots=True)
class Close:
    """Why we hang up."""

    code: int
    reason: str


class TransportSocket:
    """One connection: one session, several operations at once."""

    def __init__(self, edge: Edge, socket: WebSocket) -> None:
        self._edge = edge
        self._socket = socket
        self._session: Session | None = None
        self._initialised = asyncio.Event()
        self._operations: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Serve the connection until either side ends it."""
        if not self._origin_allowed():
            await self._socket.close(1008)  # before accepting: the handshake is answered with 403
            return
        if PROTOCOL not in self._socket.scope["subprotocols"]:
            await self._socket.accept()
            await self._close(Close(4406, "Subprotocol not acceptable"))
            return
        await self._socket.accept(subprotocol=PROTOCOL)
        sides = {asyncio.ensure_future(self._listen()), asyncio.ensure_future(self._watch())}
        try:
            ended, _ = await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
            await self._close(ended.pop().result())
        finally:
            await _cancelled({*sides, *self._operations.values()})

    async def _listen(self) -> Close | None:
        """Handle messages; None once the client has left."""
        while True:
            frame = await self._socket.receive()
            if frame["type"] == "websocket.disconnect":
                return None
            close = await self._handle(frame.get("text"))
            if close is not None:
                return close

    async def _watch(self) -> Close:
        """End the connection that does not introduce itself, or whose token has come to nothing."""
        try:
            async with asyncio.timeout(self._edge.settings.connection_init_timeout_s):
                await self._initialised.wait()
        except TimeoutError:
            return Close(4408, "Connection initialisation timeout")
        while True:
            await asyncio.sleep(self._edge.settings.recheck_s)
            try:
                if self._session is not None:
                    await self._edge.sessions.principal(self._session)
            except Unauthenticated as error:
                return Close(4403, error.message)
            except ServiceUnavailable:
                continue  # each operation finds out for itself, and fails closed

    async def _handle(self, text: str | None) -> Close | None:
        if text is None:
            return Close(4400, "Messages must be text")
        if len(text) > self._edge.settings.max_frame_bytes:
            return Close(1009, "Message too big")
        try:
            message = decode(text)
        except Refused:
            return Close(4400, "Messages must be JSON")
        if not isinstance(message, dict):
            return Close(4400, "Messages must be objects")
        fields = cast("dict[str, object]", message)
        match fields.get("type"):
            case "connection_init":
                return await self._init(fields.get("payload"))
            case "ping":
                return await self._send({"type": "pong"})
            case "pong":
                return None
            case "subscribe":
                return await self._subscribe(fields.get("id"), fields.get("payload"))
            case "complete":
                return self._complete(fields.get("id"))
            case _:
                return Close(4400, "Unknown message type")

    async def _init(self, payload: object) -> Close | None:
        if self._initialised.is_set():
            return Close(4429, "Too many initialisation requests")
        self._initialised.set()
        if payload is not None and not isinstance(payload, dict):
            return Close(4400, "The payload of connection_init must be an object")
        try:
            credential = self._credential(cast("dict[str, object]", payload or {}))
            if credential is None:
                return Close(4403, "Forbidden: send a token in connection_init")
            session = await self._edge.open(credential, address=self._address)
            await self._edge.sessions.principal(session)
        except (Refused, Unauthenticated):
            return Close(4403, "Forbidden")
        except RateLimited as error:
            return Close(4429, error.message)
        except ServiceUnavailable:
            return Close(1013, "Try again later")
        self._session = session
        return await self._send({"type": "connection_ack"})

    @property
    def _address(self) -> str:
        return self._socket.client.host if self._socket.client else ""

    def _credential(self, payload: Mapping[str, object]) -> str | None:
        """The token of `{"authorization": "Bearer ..."}`, of `{"token": "..."}`, or of the handshake's header."""
        token = payload.get("token")
        if isinstance(token, str) and token:
            return token
        header = payload.get("authorization", payload.get("Authorization"))
        return bearer(header if isinstance(header, str) else self._socket.headers.get("authorization"))

    async def _subscribe(self, id: object, payload: object) -> Close | None:
        session = self._session
        if session is None:
            return Close(4401, "Unauthorized")
        if not isinstance(id, str) or not 0 < len(id) <= MAX_ID:
            return Close(4400, f"id must be a string of 1 to {MAX_ID} characters")
        if id in self._operations:
            return Close(4409, "Subscriber for this id already exists")
        settings = self._edge.settings
        try:
            operation = parse_operation(
                payload,
                manifest=self._edge.manifest,
                policy=session.documents,
                max_chars=settings.max_document_chars,
            )
        except Refused as refused:
            if (refused.error.extensions or {}).get("code") == BAD_REQUEST or not isinstance(payload, dict):
                return Close(4400, "The payload of subscribe is malformed")
            return await self._send({"id": id, "type": "error", "payload": [refused.error.formatted]})
        if len(self._operations) >= settings.max_operations_per_socket:
            busy = RateLimited("Too many operations on this connection.", retry_after_s=settings.recheck_s)
            return await self._send({"id": id, "type": "error", "payload": [refusal(busy, ref=None).formatted]})
        self._operations[id] = asyncio.create_task(self._operate(id, operation, session))
        return None

    def _complete(self, id: object) -> Close | None:
        if not isinstance(id, str):
            return Close(4400, "id must be a string")
        task = self._operations.pop(id, None)
        if task is not None:
            task.cancel()
        return None

    async def _operate(self, id: str, operation: Operation, session: Session) -> None:
        """Send the results of one operation, then that it is over."""
        this, ref, came = asyncio.current_task(), self._edge.deps.new_id("req"), time.monotonic()
        with tracked(ref, self._socket.headers):
            try:
                ended = await self._relay(id, operation, session, ref)
            except GraphMemError as error:
                note_refused(error, ref=ref, since=came)
                ended = {"id": id, "type": "error", "payload": [refusal(error, ref=ref).formatted]}
            finally:
                if self._operations.get(id) is this:
                    del self._operations[id]
            await self._send(ended)

    async def _relay(self, id: str, operation: Operation, session: Session, ref: str) -> dict[str, Any]:
        edge = self._edge
        context = await edge.context(session, request_id=ref, address=self._address)
        async with aclosing(edge.watch(operation, context)) as results:
            async for result in results:
                if isinstance(result, PreExecutionError):
                    return {"id": id, "type": "error", "payload": [error.formatted for error in result.errors or ()]}
                if result is not None:
                    await self._send({"id": id, "type": "next", "payload": _payload(result)})
        return {"id": id, "type": "complete"}

    def _origin_allowed(self) -> bool:
        """Browsers send where a page comes from; other clients send nothing and have no ambient credentials."""
        origin = self._socket.headers.get("origin")
        if origin is None or origin in self._edge.settings.allowed_origins:
            return True
        return urlsplit(origin).netloc == self._socket.headers.get("host")

    async def _send(self, message: Mapping[str, Any]) -> None:
        """As text: clients cannot read binary frames, which is what bytes would become."""
        if self._socket.application_state is WebSocketState.CONNECTED:
            with suppress(WebSocketDisconnect):
                await self._socket.send_text(orjson.dumps(message).decode())

    async def _close(self, close: Close | None) -> None:
        if close is not None and self._socket.application_state is WebSocketState.CONNECTED:
            await self._socket.close(close.code, close.reason)


def _payload(result: ExecutionResult) -> dict[str, Any]:
    out: dict[str, Any] = {"data": result.data}
    if result.errors:
        out["errors"] = [error.formatted for error in result.errors]
    if result.extensions:
        out["extensions"] = result.extensions
    return out


async def _cancelled(tasks: set[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
