"""Expected failures of a mutation, as members of its payload."""

from collections.abc import Awaitable
from enum import StrEnum
from typing import TypeVar

import strawberry

from graph_mem import errors

T = TypeVar("T")


@strawberry.enum(description="In `errors[].extensions.code` and in `MutationError.code`.")
class ErrorCode(StrEnum):
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    BAD_USER_INPUT = "BAD_USER_INPUT"
    CONFLICT = "CONFLICT"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    QUERY_TOO_COMPLEX = "QUERY_TOO_COMPLEX"
    RATE_LIMITED = "RATE_LIMITED"
    TIMEOUT = "TIMEOUT"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    INTERNAL_SERVER_ERROR = "INTERNAL_SERVER_ERROR"


@strawberry.interface(description="An expected failure of a mutation.")
class MutationError:
    code: ErrorCode = strawberry.field(description="What kind of failure, for programs.")
    message: str = strawberry.field(description="What was found and what was expected, for people.")
    path: list[str] | None = strawberry.field(
        default=None, description="The input field at fault, outermost name first; null where none is."
    )


@strawberry.type(description="A value is not acceptable; `path` says which.")
class InvalidInput(MutationError):
    pass


@strawberry.type(description="No such record, or not visible to you: the same answer.")
class NotFound(MutationError):
    id: strawberry.ID = strawberry.field(description="The id that was asked for.")


@strawberry.type(description="`expectedVersion` is stale; re-read and retry.")
class Conflict(MutationError):
    current_version: int | None = strawberry.field(
        default=None, description="The version the record has now, where there is one."
    )


@strawberry.type(description="Visible to you, but your role may not do this.")
class Forbidden(MutationError):
    pass


ERROR_TYPES = (InvalidInput, NotFound, Conflict, Forbidden)
"""For the schema's `types`: only the interface is named by fields."""

Expected = errors.InvalidInput | errors.NotFound | errors.Forbidden | errors.Conflict | errors.IdempotencyKeyReused


async def attempt(work: Awaitable[T]) -> tuple[T | None, list[MutationError]]:
    """The result of `work` and no errors, or None and the expected failure; anything else is raised."""
    try:
        return await work, []
    except (
        errors.InvalidInput,
        errors.NotFound,
        errors.Forbidden,
        errors.Conflict,
        errors.IdempotencyKeyReused,
    ) as error:
        return None, [failure(error)]


def failure(error: Expected) -> MutationError:
    """The payload member for `error`."""
    code, message = ErrorCode(error.code), error.message
    match error:
        case errors.NotFound():
            return NotFound(code=code, message=message, path=list(error.path) or None, id=strawberry.ID(error.id))
        case errors.Conflict():
            return Conflict(code=code, message=message, current_version=error.current_version)
        case errors.Forbidden():
            return Forbidden(code=code, message=message)
        case errors.InvalidInput():
            return InvalidInput(code=code, message=message, path=list(error.path) or None)
        case errors.IdempotencyKeyReused():
            return InvalidInput(code=code, message=message, path=["idempotencyKey"])
