"""What a client learns of a failure: a stable code always, a message only where it was written for clients.

Errors are shaped in the schema and not in an extension, because exceptions of extension hooks pass by other
extensions, and on streams nobody catches them.
"""

import logging
import re
import traceback
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, Protocol, runtime_checkable

import strawberry
from graphql import GraphQLError, GraphQLSyntaxError
from strawberry.exceptions import MissingQueryError, StrawberryInputCoercionError
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types.execution import ExecutionContext, ExecutionResult, PreExecutionError
from strawberry.types.graphql import OperationType

from graph_mem import errors

_log = logging.getLogger(__name__)

PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
OPERATION_UNRESOLVED = "OPERATION_RESOLUTION_FAILURE"
METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
_BAD_VALUE = re.compile(
    r"Variable '\$\w+' (has invalid value|of required type)|Variable values are|Too many errors processing|Argument '"
)
"""How graphql-core begins when a variable or argument does not fit its type; it has no class for that."""
_PYTHON = re.compile(r"(?<=be )None(?=\.)|(?<=: )(None|True|False)(?=[.;]|$)")
_JSON = {"None": "null", "True": "true", "False": "false"}
"""How graphql-core shows values that have no quotes, and what a client calls them."""
_TOO_MANY_TOKENS = "tokens. Parsing aborted"
INTERNAL = errors.GraphMemError.code
OURS = frozenset({INTERNAL, errors.ServiceUnavailable.code, errors.OperationTimeout.code})
"""Codes of errors that are not the client's doing; these name the request, for the log to be searched."""
_MASKED = (INTERNAL, errors.SetupError.code)


@runtime_checkable
class HasRequestId(Protocol):
    """A context that names its request, so that answer and log can be brought together."""

    request_id: str


class SafeSchema(strawberry.Schema):
    """A schema whose every outgoing error has `extensions.code`, on every transport."""

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        """Nothing: `shaped` logs what is ours to mend; the default logs each typo of a client with its query."""

    async def execute(self, *args: Any, **kwargs: Any) -> ExecutionResult:
        try:
            result = await super().execute(*args, **kwargs)
        except (MissingQueryError, CannotGetOperationTypeError, InvalidOperationTypeError) as error:
            result = PreExecutionError(data=None, errors=[_located(error)])
        _shape(result, _ref(kwargs.get("context_value")))
        return result

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        results = await super().stream(*args, **kwargs)
        return _shaped_stream(results, _ref(kwargs.get("context_value")))


async def _shaped_stream(
    results: AsyncGenerator[Any, None], ref: str
) -> AsyncGenerator[ExecutionResult | PreExecutionError, None]:
    try:
        async with aclosing(results):
            async for result in results:
                _shape(result, ref)
                yield result
    except Exception as error:  # noqa: BLE001 # a hook raised; nothing above this may see it, and the log does
        result = PreExecutionError(data=None, errors=[_located(error)])
        _shape(result, ref)
        yield result


def _shape(result: ExecutionResult, ref: str) -> None:
    if result.errors:
        result.errors = [shaped(error, ref=ref) for error in result.errors]


def shaped(error: GraphQLError, *, ref: str) -> GraphQLError:
    """`error` as the client gets it; one without a code of its own is logged under `ref` and masked."""
    cause = _cause(error)
    extensions = dict(error.extensions or {})
    message = error.message
    if isinstance(cause, errors.GraphMemError) and cause.code not in _MASKED:
        extensions |= extensions_of(cause, ref=ref)
        message = cause.message
    elif "code" not in extensions:
        extensions["code"] = _code(error, cause)
        message = _PYTHON.sub(lambda found: _JSON[found[0]], message)
    if extensions["code"] == INTERNAL:
        _log_internal(error, cause, ref)
        extensions = {"code": INTERNAL, "ref": ref}
        message = f"Internal error; the operator finds it in the log as {ref}."
    return GraphQLError(
        message,
        nodes=error.nodes,
        source=error.source,
        positions=error.positions,
        path=error.path,
        extensions=extensions,
    )


def extensions_of(error: errors.GraphMemError, *, ref: str | None) -> dict[str, Any]:
    """The machine-readable part of an error of ours."""
    found: dict[str, Any] = {"code": error.code}
    if ref is not None and error.code in OURS:
        found["ref"] = ref
    match error:
        case errors.InvalidInput(path=path) if path:
            found["path"] = list(path)
        case errors.RateLimited(retry_after_s=seconds):
            found["retryAfterSeconds"] = round(seconds, 1)
        case _:
            pass
    return found


def refusal(error: errors.GraphMemError, *, ref: str | None) -> GraphQLError:
    """`error` as one that a guard hands back before anything ran."""
    return GraphQLError(error.message, extensions=extensions_of(error, ref=ref))


def _code(error: GraphQLError, cause: BaseException) -> str:
    before_execution = error.path is None
    match cause:
        case GraphQLSyntaxError() if _TOO_MANY_TOKENS in error.message:
            return errors.QueryTooComplex.code
        case GraphQLSyntaxError():
            return PARSE_FAILED
        case MissingQueryError() | CannotGetOperationTypeError():
            return OPERATION_UNRESOLVED
        case InvalidOperationTypeError():
            return METHOD_NOT_ALLOWED
        case StrawberryInputCoercionError():
            return errors.InvalidInput.code
        case GraphQLError() if _BAD_VALUE.match(error.message):
            return errors.InvalidInput.code
        case GraphQLError() if before_execution:
            return VALIDATION_FAILED
        case _:
            return INTERNAL


def _cause(error: GraphQLError) -> BaseException:
    """What `error` was made from, through all the layers that only add a location."""
    cause: BaseException = error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    return cause


def _located(error: Exception) -> GraphQLError:
    match error:
        case GraphQLError():
            return error
        case CannotGetOperationTypeError():
            return GraphQLError(error.as_http_error_reason(), original_error=error)
        case InvalidOperationTypeError(operation_type=OperationType.SUBSCRIPTION):
            message = "Subscriptions need graphql-transport-ws or Accept: text/event-stream."
            return GraphQLError(message, original_error=error, extensions={"code": OPERATION_UNRESOLVED})
        case _:
            return GraphQLError(str(error), original_error=error)


def _log_internal(error: GraphQLError, cause: BaseException, ref: str) -> None:
    _log.error(
        "internal error",
        extra={
            "ref": ref,
            "path": ".".join(str(step) for step in error.path or ()),
            "error": type(cause).__name__,
            "trace": frames(cause),
        },
    )


def frames(error: BaseException) -> str:
    """Where `error` and what caused it were raised, without their messages: these may quote memory content."""
    told: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        told.append(type(seen).__name__)
        told.extend(f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in _stack(seen))
        seen = seen.__cause__ or seen.__context__
    return "\n".join(told)


def _stack(error: BaseException) -> Iterable[traceback.FrameSummary]:
    return traceback.extract_tb(error.__traceback__)


def _ref(context: object) -> str:
    return context.request_id if isinstance(context, HasRequestId) else "unknown"


__all__ = ["SafeSchema", "extensions_of", "frames", "refusal", "shaped"]
