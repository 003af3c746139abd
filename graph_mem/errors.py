"""Every error graph-mem raises on purpose.

    GraphMemError
    ├── InvalidInput            BAD_USER_INPUT          the caller's value is wrong; `path` says where
    ├── NotFound                NOT_FOUND               no such record, or not visible: the same answer
    ├── Forbidden               FORBIDDEN               visible, but this role may not do it
    ├── Conflict                CONFLICT                `expected_version` is stale, or someone decided first
    ├── IdempotencyKeyReused    IDEMPOTENCY_KEY_REUSED  same key, other input
    ├── Unauthenticated         UNAUTHENTICATED         no principal behind the token
    ├── QueryTooComplex         QUERY_TOO_COMPLEX       document over a limit
    ├── RateLimited             RATE_LIMITED            over the caller's budget
    ├── OperationTimeout        TIMEOUT                 the operation ran out of time
    ├── ServiceUnavailable      SERVICE_UNAVAILABLE     a part we need does not answer
    │   ├── DatabaseUnavailable
    │   ├── EmbedderUnavailable
    │   └── IndexUnavailable
    ├── ArchiveDamaged          ARCHIVE_DAMAGED         an export was cut off or altered
    ├── ArchiveUnsupported      ARCHIVE_UNSUPPORTED     an export of a format or schema newer than ours
    ├── AlreadyThere            ALREADY_THERE           what an archive holds exists here already
    ├── SecurityViolation       INTERNAL_SERVER_ERROR   a row failed the second check; never shown
    └── SetupError              SETUP                   this machine or server lacks something
        ├── PortInUse
        ├── ChecksumMismatch
        ├── UnsuitableServer
        ├── DimensionMismatch
        ├── SchemaMismatch
        └── SchemaTooNew

A message states what was found and what was expected.
"""

from collections.abc import Sequence


class GraphMemError(Exception):
    """Anything graph-mem refuses, with a stable `code`."""

    code = "INTERNAL_SERVER_ERROR"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(GraphMemError):
    """A value from outside is not acceptable."""

    code = "BAD_USER_INPUT"

    def __init__(self, message: str, *, path: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.path = tuple(path)


class NotFound(GraphMemError):
    """No such record, or not visible to the caller. `what`: of which kind, where an operator named one by `id`."""

    code = "NOT_FOUND"

    def __init__(self, id: str, *, path: Sequence[str] = (), what: str | None = None, hint: str = "") -> None:
        said = f"No {what} has the name or id" if what else "Nothing visible to you has the id"
        super().__init__(f"{said} {id[:64]!r}.{hint and ' '}{hint}")
        self.id = id
        self.path = tuple(path)
        self.what = what


class Forbidden(GraphMemError):
    """The caller sees the record but may not do this."""

    code = "FORBIDDEN"


class Conflict(GraphMemError):
    """Somebody changed the record first."""

    code = "CONFLICT"

    def __init__(self, message: str, *, current_version: int | None = None) -> None:
        super().__init__(message)
        self.current_version = current_version


class IdempotencyKeyReused(GraphMemError):
    """An idempotency key came back with another input."""

    code = "IDEMPOTENCY_KEY_REUSED"


class Unauthenticated(GraphMemError):
    """No principal stands behind the credentials."""

    code = "UNAUTHENTICATED"


class QueryTooComplex(GraphMemError):
    """A document is over one of the limits."""

    code = "QUERY_TOO_COMPLEX"


class RateLimited(GraphMemError):
    """The caller's budget is used up."""

    code = "RATE_LIMITED"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class OperationTimeout(GraphMemError):
    """The operation took longer than it may."""

    code = "TIMEOUT"


class ServiceUnavailable(GraphMemError):
    """A part that the operation needs does not answer."""

    code = "SERVICE_UNAVAILABLE"


class DatabaseUnavailable(ServiceUnavailable):
    """Neo4j does not answer."""


class EmbedderUnavailable(ServiceUnavailable):
    """The embedding model is loading, failing or switched off for now."""


class IndexUnavailable(ServiceUnavailable):
    """A search index is missing, populating or failed."""


class ArchiveDamaged(GraphMemError):
    """An archive was cut off or altered."""

    code = "ARCHIVE_DAMAGED"


class ArchiveUnsupported(GraphMemError):
    """An archive's format or schema is newer than ours."""

    code = "ARCHIVE_UNSUPPORTED"


class AlreadyThere(GraphMemError):
    """An organization or a person of the archive exists here already."""

    code = "ALREADY_THERE"


class SecurityViolation(GraphMemError):
    """A row left the store that its reader must not see."""


class SetupError(GraphMemError):
    """This machine or server lacks something graph-mem needs."""

    code = "SETUP"


class PortInUse(SetupError):
    """A port that we were told to use is taken."""


class ChecksumMismatch(SetupError):
    """A downloaded file is not the one that was locked."""


class UnsuitableServer(SetupError):
    """The Neo4j server lacks what graph-mem needs."""


class DimensionMismatch(SetupError):
    """The embedding model's dimension is not the index's."""


class SchemaMismatch(SetupError):
    """An index or constraint on the server is not the one we define."""


class SchemaTooNew(SetupError):
    """The database was migrated by a later release, whose records this one may misread."""
