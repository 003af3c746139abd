"""The GraphQL endpoint: GraphQL over HTTP, server-sent events and graphql-transport-ws at one address."""

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.types.execution import ExecutionResult, PreExecutionError

from graph_mem import errors
from graph_mem.api.causality import CAUSAL_TOKEN
from graph_mem.api.edge import Edge, note_refused
from graph_mem.api.errors import INTERNAL, METHOD_NOT_ALLOWED, PARSE_FAILED, refusal
from graph_mem.api.request import (
    EVENTS,
    JSON,
    Operation,
    Refused,
    bearer,
    check_content_type,
    decode,
    negotiate,
    parse_operation,
    read_body,
)
from graph_mem.api.session import Context
from graph_mem.api.tracking import REQUEST_ID, request_id, tracked
from graph_mem.api.ws import TransportSocket
from graph_mem.core.people import DocumentPolicy
from graph_mem.services.spans import tell
from graph_mem.store.db import Causes, caused

_STATUS = {
    PARSE_FAILED: 400,
    errors.Unauthenticated.code: 401,
    errors.Forbidden.code: 403,
    METHOD_NOT_ALLOWED: 405,
    errors.RateLimited.code: 429,
    INTERNAL: 500,
    errors.ServiceUnavailable.code: 503,
    errors.OperationTimeout.code: 504,
}
_INVALID = 422
_NOT_THE_DOCUMENT = frozenset({401, 403, 429, 500, 503, 504})
"""Statuses that tell nothing about the document: real ones even for clients that expect 200 for the others."""


class GraphQLEndpoint:
    """An ASGI application. Only POST, only JSON, one operation a request."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await TransportSocket(self._edge, WebSocket(scope, receive, send)).run()
            return
        request = Request(scope, receive)
        ref = request_id(request.headers, self._edge.deps.new_id)
        with tracked(ref, request.headers), caused() as causes:
            response = await self._respond(request, ref, causes)
            if response is not None:
                await response(scope, receive, send)

    async def _respond(self, request: Request, ref: str, causes: Causes) -> Response | None:
        media, came = JSON, time.monotonic()
        try:
            _check_method(request.method)
            media = negotiate(request.headers.get("accept"))
            check_content_type(request.headers.get("content-type"))
            causes.seen = self._edge.seal.opened(request.headers.get(CAUSAL_TOKEN))
            response = await self._answer(request, media, ref, since=came)
        except Refused as refused:
            response = _turned_away(refused, media)
        except errors.GraphMemError as error:
            note_refused(error, ref=ref, since=came)
            response = _rendered(PreExecutionError(data=None, errors=[refusal(error, ref=ref)]), media)
        if response is not None:
            response.headers[REQUEST_ID] = ref
            if token := self._edge.seal.closed(causes.made):
                response.headers[CAUSAL_TOKEN] = token
            tell({"http.response.status_code": response.status_code})
        return response

    async def _answer(self, request: Request, media: str, ref: str, *, since: float) -> Response | None:
        """The answer to an acceptable request; None if the client has left."""
        edge = self._edge
        credential = bearer(request.headers.get("authorization"))
        address = request.client.host if request.client else ""
        session = await edge.open(credential, address=address) if credential else None
        context = await edge.context(session, request_id=ref, address=address, since=since)
        body = await read_body(request, max_bytes=edge.settings.max_body_bytes, within_s=edge.settings.timeout_s)
        operation = parse_operation(
            decode(body),
            manifest=edge.manifest,
            policy=session.documents if session else DocumentPolicy.ANY,
            max_chars=edge.settings.max_document_chars,
        )
        if media == EVENTS:
            return StreamingResponse(self._events(operation, context), media_type=EVENTS, headers=_STREAM_HEADERS)
        result = await edge.run(operation, context, gone=_gone(request))
        return None if result is None else _rendered(result, media)

    async def _events(self, operation: Operation, context: Context) -> AsyncIterator[bytes]:
        """The results as graphql-sse's distinct connections mode has them."""
        async with aclosing(self._edge.watch(operation, context)) as results:
            async for result in results:
                if result is None:
                    yield b":\n\n"
                else:
                    yield b"event: next\ndata: " + orjson.dumps(rendered(result)) + b"\n\n"
        yield b"event: complete\ndata:\n\n"


_STREAM_HEADERS = {"cache-control": "no-store, no-transform", "x-accel-buffering": "no"}


def rendered(result: ExecutionResult) -> dict[str, Any]:
    """`result` as the specification spells it: no `data` where nothing ran, no empty `errors`."""
    out: dict[str, Any] = {}
    if result.errors:
        out["errors"] = [error.formatted for error in result.errors]
    if not _nothing_ran(result):
        out["data"] = result.data
    if result.extensions:
        out["extensions"] = result.extensions
    return out


def _nothing_ran(result: ExecutionResult) -> bool:
    return result.data is None and bool(result.errors) and all(error.path is None for error in result.errors or ())


def _rendered(result: ExecutionResult, media: str) -> Response:
    media = JSON if media == EVENTS else media
    status, headers = 200, {"cache-control": "no-store", "vary": "Accept, Authorization"}
    if _nothing_ran(result) and result.errors:
        extensions = result.errors[0].extensions or {}
        status = _STATUS.get(str(extensions.get("code")), _INVALID)
        if media == JSON and status not in _NOT_THE_DOCUMENT:
            status = 200
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        if "retryAfterSeconds" in extensions:
            headers["retry-after"] = str(max(1, round(extensions["retryAfterSeconds"])))
    return Response(orjson.dumps(rendered(result)), status, headers, f"{media}; charset=utf-8")


def _turned_away(refused: Refused, media: str) -> Response:
    response = _rendered(PreExecutionError(data=None, errors=[refused.error]), media)
    response.status_code = refused.status
    response.headers.update(refused.headers)
    return response


def _check_method(method: str) -> None:
    if method != "POST":
        raise Refused(405, "Send POST.", code=METHOD_NOT_ALLOWED, headers={"allow": "POST"})


async def _gone(request: Request) -> None:
    """Return once the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
