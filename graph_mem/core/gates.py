"""Who may make what count: the write gate for facts."""

from collections.abc import Mapping

from graph_mem.core.model import Place, Principal, Role, ScopeLevel, Standing


def lands(principal: Principal, place: Place, gate: Mapping[Role, frozenset[ScopeLevel]]) -> Standing:
    """CURRENT if what `principal` saves at `place` counts at once, else PROVISIONAL. A caller's claim plays no part.

    `gate` names the levels, of the scopes a role may read, in which it writes for everybody. What is one's own
    is one's own business.
    """
    if place.owner_id is not None:
        own = place.org_id == principal.org_id and place.owner_id == principal.user_id
        return Standing.CURRENT if own and principal.reads(place) else Standing.PROVISIONAL
    passes = principal.reads(place) and place.scope.level in gate.get(principal.role, frozenset())
    return Standing.CURRENT if passes else Standing.PROVISIONAL
