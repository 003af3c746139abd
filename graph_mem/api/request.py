"""GraphQL over HTTP, the way in: what a request must look like, and the status it gets when it does not.

The rules are those of the GraphQL-over-HTTP draft of August 2026.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from graphql import GraphQLError
from starlette.requests import ClientDisconnect, Request

from graph_mem.api.documents import PERSISTED_QUERY_NOT_FOUND, Manifest, digest
from graph_mem.core.people import DocumentPolicy
from graph_mem.errors import Forbidden, GraphMemError, OperationTimeout, QueryTooComplex

GRAPHQL = "application/graphql-response+json"
JSON = "application/json"
EVENTS = "text/event-stream"

BAD_REQUEST = "BAD_REQUEST"


class Refused(Exception):
    """A request that is turned away before any GraphQL is looked at."""

    def __init__(self, status: int, message: str, *, code: str = BAD_REQUEST, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.error = GraphQLError(message, extensions={"code": code})


@dataclass(frozen=True, slots=True)
class Operation:
    """What to run: a document, which of its operations, and its variables."""

    text: str
    name: str | None = None
    variables: dict[str, Any] | None = None
    extensions: Mapping[str, Any] = field(default_factory=dict[str, Any])


def negotiate(accept: str | None) -> str:
    """The media type to answer in; the client's order of quality decides, ours breaks ties."""
    if not accept:
        return JSON
    best, best_quality = None, 0.0
    for part in accept.split(","):
        media, _, parameters = part.partition(";")
        offered = _OFFERS.get(media.strip().lower())
        quality = _quality(parameters)
        if offered and (quality > best_quality or (quality == best_quality and offered == GRAPHQL)):
            best, best_quality = offered, quality
    if best is None:
        raise Refused(406, f"Send Accept: {GRAPHQL}, {JSON} or {EVENTS}.", code="NOT_ACCEPTABLE")
    return best


_OFFERS = {GRAPHQL: GRAPHQL, JSON: JSON, EVENTS: EVENTS, "application/*": JSON, "*/*": JSON}


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def check_content_type(content_type: str | None) -> None:
    """Refuse whatever a web page could send without asking first, and every encoding but UTF-8."""
    media, _, parameters = (content_type or "").partition(";")
    if media.strip().lower() != JSON:
        raise Refused(415, f"Send Content-Type: {JSON}.", code="UNSUPPORTED_MEDIA_TYPE")
    for parameter in parameters.lower().split(";"):
        name, _, value = parameter.strip().partition("=")
        if name == "charset" and value.strip('"') != "utf-8":
            raise Refused(415, "Send UTF-8.", code="UNSUPPORTED_MEDIA_TYPE")


def bearer(authorization: str | None) -> str | None:
    """The credential of an Authorization header; None without one."""
    if authorization is None:
        return None
    scheme, _, credential = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise Refused(
            401,
            "Send Authorization: Bearer <token>.",
            code="UNAUTHENTICATED",
            headers={"www-authenticate": "Bearer"},
        )
    return credential.strip()


async def read_body(request: Request, *, max_bytes: int, within_s: float) -> bytes:
    """The body, read no further than `max_bytes` and no longer than `within_s`."""
    too_large = Refused(413, f"The body is larger than {max_bytes} bytes.", code="PAYLOAD_TOO_LARGE")
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced[:20]) > max_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise too_large
    except TimeoutError:
        raise Refused(408, f"The body did not arrive within {within_s:g} s.", code=OperationTimeout.code) from None
    except ClientDisconnect:
        raise Refused(400, "The client went away.") from None
    return bytes(body)


def decode(text: bytes | str) -> object:
    """The JSON value of a body or frame. Half surrogates, other encodings than UTF-8 and deep nesting are refused."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"The body is not valid JSON in UTF-8: {error.msg}.") from None


def parse_operation(value: object, *, manifest: Manifest, policy: DocumentPolicy, max_chars: int) -> Operation:
    """The operation that a decoded body or payload asks for; its document by text or by the hash of a trusted one."""
    if isinstance(value, list):
        raise Refused(422, "Send one operation per request.", code="BATCHING_NOT_SUPPORTED")
    if not isinstance(value, dict):
        raise Refused(422, "The body must be a JSON object.")
    body = cast("dict[str, object]", value)
    extensions = cast("dict[str, Any]", _member(body, "extensions", dict, "an object")) or {}
    text = _document(body, extensions, manifest)
    if len(text) > max_chars:
        raise _as_refused(422, QueryTooComplex(f"The document is longer than {max_chars} characters."))
    if policy is DocumentPolicy.MANIFEST and not manifest.holds(text):
        raise _as_refused(403, Forbidden("This key runs documents of the manifest only."))
    name = cast("str | None", _member(body, "operationName", str, "a string"))
    variables = cast("dict[str, Any] | None", _member(body, "variables", dict, "an object"))
    return Operation(text, name or None, variables, extensions)


def _document(body: Mapping[str, object], extensions: Mapping[str, Any], manifest: Manifest) -> str:
    text = cast("str | None", _member(body, "query", str, "a string"))
    named = cast("str | None", _member(body, "documentId", str, "a string"))
    wanted = named or _apollo_hash(extensions)
    if wanted is None:
        if not text:
            raise Refused(422, "`query` or `documentId` is missing.")
        return text
    if text:
        if digest(text) != wanted.removeprefix("sha256:"):
            raise Refused(422, "`query` does not have the hash that was sent with it.")
        return text
    found = manifest.find(wanted)
    if found is None:
        # Apollo's clients know the answer by these very words
        said = "No trusted document has this `documentId`." if named else "PersistedQueryNotFound"
        raise Refused(422, said, code=PERSISTED_QUERY_NOT_FOUND)
    return found


def _apollo_hash(extensions: Mapping[str, Any]) -> str | None:
    persisted: object = extensions.get("persistedQuery")
    if not isinstance(persisted, dict):
        return None
    found = cast("dict[str, object]", persisted).get("sha256Hash")
    return found if isinstance(found, str) else None


def _member(body: Mapping[str, object], name: str, kind: type, what: str) -> object:
    value = body.get(name)
    if value is not None and not isinstance(value, kind):
        raise Refused(422, f"`{name}` must be {what}.")
    return value


def _as_refused(status: int, error: GraphMemError) -> Refused:
    return Refused(status, error.message, code=error.code)
