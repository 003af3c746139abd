"""The same request twice is done once: the second gets the first one's answer."""

from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, cast

from graph_mem.core.model import Principal, token
from graph_mem.errors import IdempotencyKeyReused, InvalidInput
from graph_mem.services import Deps
from graph_mem.store import idempotency
from graph_mem.store.db import Tx

REMEMBERED_FOR = timedelta(hours=24)
_MAX_KEY = 128


@dataclass(frozen=True, slots=True)
class Request:
    """One mutation that its caller may repeat."""

    caller: Principal
    key: str
    mutation: str
    input_hash: str

    @property
    def slot(self) -> str:
        return token("idempotency", self.caller.org_id, self.caller.user_id, self.mutation, self.key)


def request(caller: Principal, *, mutation: str, key: str | None, given: object) -> Request | None:
    """What identifies this call; None if the caller gave no key. `given`: a dataclass, all of the input."""
    if key is None:
        return None
    if not key.strip() or len(key) > _MAX_KEY:
        raise InvalidInput(
            f"The idempotency key has {len(key)} characters, expected 1 to {_MAX_KEY}, not only spaces.",
            path=("idempotencyKey",),
        )
    return Request(caller, key, mutation, sha256(_canonical(given).encode(errors="surrogatepass")).hexdigest())


async def replay(tx: Tx, request: Request | None, *, now: datetime) -> str | None:
    """The answer to an earlier call of this `request`.

    Errors: IdempotencyKeyReused if that call had another input.
    """
    if request is None:
        return None
    kept = await idempotency.claim(tx, key=request.slot, lock=request.input_hash, now=now)
    if kept is not None and kept.input_hash != request.input_hash:
        raise IdempotencyKeyReused(
            f"The idempotency key {request.key!r} was used with another input within the last 24 hours."
        )
    return None if kept is None else kept.result


async def remember(tx: Tx, request: Request | None, result: str, *, now: datetime) -> None:
    """Keep `result` as the answer to every repetition of `request`."""
    if request is not None:
        kept = idempotency.Kept(request.input_hash, result)
        await idempotency.keep(
            tx, key=request.slot, org_id=request.caller.org_id, kept=kept, expires_at=now + REMEMBERED_FOR
        )


async def sweep(deps: Deps) -> int:
    """Forget answers that no repetition can ask for any more; returns how many."""
    return await deps.db.write(lambda tx: idempotency.sweep(tx, now=deps.clock()))


def _canonical(value: object) -> str:
    """One text for equal inputs, whatever the order of their parts."""
    if is_dataclass(value) and not isinstance(value, type):
        return _canonical({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return "{" + ",".join(f"{name!r}:{_canonical(items[name])}" for name in sorted(items)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_canonical, cast("list[Any]", value))) + "]"
    return repr(value)
