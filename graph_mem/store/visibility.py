"""Who may see a row: the predicate of every statement, and the check of every row that leaves.

Layer one is `visible(alias)` inside the statement with the parameters of `access(principal)`: index tokens.
Layer two is `admit(principal, place)`: the plain ids of the row against the principal. They share no data, so
a fault in one does not pass the other.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any, LiteralString, TypeVar

from graph_mem.core.model import Place, Principal, Scope, place_of
from graph_mem.store.db import Row

T = TypeVar("T")

_log = logging.getLogger(__name__)


class SecurityEvents:
    """How many rows the second layer held back in this process."""

    def __init__(self) -> None:
        self.count = 0

    def record(self, principal: Principal, what: str) -> None:
        self.count += 1
        _log.critical(
            "security event: a row reached a principal who may not see it",
            extra={"org": principal.org_id, "user": principal.user_id, "what": what},
        )


security_events = SecurityEvents()


def visible(alias: LiteralString) -> LiteralString:
    """The predicate that every statement over records carries, for the node named `alias`."""
    return f"({alias}.partition IN $partitions AND ($scopes IS NULL OR {alias}.scope IN $scopes))"


PLACE: LiteralString = ".org, .owner, .level, .clientId, .dealId"
"""The properties that `place_of` reads, for a map projection: `m {.id, PLACE}`."""


def pinned_at_home(alias: LiteralString) -> LiteralString:
    """Whether `alias` is pinned where it lives: what follows from a pin elsewhere would tell of that pin."""
    return f"EXISTS {{ ({alias})<-[:PINS]-(p:Pin) WHERE p.partition = {alias}.partition AND p.scope = {alias}.scope }}"


def _by_place(alias: LiteralString) -> LiteralString:
    return (
        f"{alias}.org AS org, {alias}.owner AS owner, {alias}.level AS level, {alias}.clientId AS clientId,"
        f" {alias}.dealId AS dealId, count(*) AS total"
    )


def per_place(alias: LiteralString) -> LiteralString:
    """The end of a statement that counts: a row for each place, so that `counted` can check it like any other."""
    return f"RETURN {_by_place(alias)}"


def per_place_in_one(alias: LiteralString) -> LiteralString:
    """The same as one list, for a count beside other columns."""
    return f"""WITH {_by_place(alias)}
  RETURN collect({{org: org, owner: owner, level: level, clientId: clientId, dealId: dealId, total: total}})"""


def access(principal: Principal) -> dict[str, Any]:
    """The parameters of `visible`: what `principal` may read."""
    shared = Place(principal.org_id, Scope())
    own = Place(principal.org_id, Scope(), principal.user_id)
    scopes = principal.scopes
    return {
        "partitions": [own.partition_token, shared.partition_token],
        "scopes": None if scopes is None else [scope.token(principal.org_id) for scope in scopes],
    }


def place_properties(place: Place) -> dict[str, Any]:
    """What a node at `place` carries."""
    return {
        "org": place.org_id,
        "owner": place.owner_id,
        "level": place.scope.level.value,
        "clientId": place.scope.client_id,
        "dealId": place.scope.deal_id,
        "partition": place.partition_token,
        "scope": place.scope_token,
    }


def admit(principal: Principal, place: Place, what: str) -> bool:
    """Whether `principal` may see a row at `place`; a row that may not be seen is a security event."""
    if principal.reads(place):
        return True
    security_events.record(principal, what)
    return False


def admitted(principal: Principal, nodes: Iterable[Row], make: Callable[[Row], T]) -> list[T]:
    """What `make` builds of each node in `nodes` that passes the second layer."""
    return [make(node) for node in nodes if admit(principal, place_of(node), str(node.get("id")))]


def counted(principal: Principal, groups: Iterable[Row], what: str) -> int:
    """How many there are in the rows of `per_place` that pass the second layer."""
    return sum(counted_by_place(principal, groups, what).values())


def counted_by_place(principal: Principal, groups: Iterable[Row], what: str) -> dict[Place, int]:
    """The same, place by place."""
    places = ((place_of(group), group["total"]) for group in groups)
    return {place: total for place, total in places if admit(principal, place, what)}
