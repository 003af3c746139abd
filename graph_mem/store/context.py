"""Path A: everything that is canon for one principal in one scope, in a single statement of plain look-ups."""

from collections.abc import Iterable, Iterator

from graph_mem.core.canon import Absence, AbsentPin, Canon, Pin, PinnedMemory
from graph_mem.core.model import Memory, Place, Principal, RecordId, Scope, Standing, place_of
from graph_mem.store.canon import PIN_COLUMNS, POLICY_COLUMNS, VARIABLE_COLUMNS, chain, pin_of, policy_of, variable_of
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.records import memory_columns, memory_of
from graph_mem.store.visibility import access, admit, admitted, visible

# A folded memory leads to the one it folded into, a retired one on over the links that retire it. One path to each
# end is enough: a chain with diamonds has more of them than can be walked. (One pattern for both kinds of link, with
# its predicate inside, fails in 2026.01.4: "Did not find UNNAMED in the slot configuration".)
CANON = f"""
CALL () {{
  MATCH (p:Policy) WHERE {visible("p")} AND p.partition = $shared AND p.scope IN $chain AND p.active
  RETURN collect(p {POLICY_COLUMNS}) AS policies
}}
CALL () {{
  MATCH (v:Variable) WHERE {visible("v")} AND v.scope IN $chain AND v.value IS NOT NULL
  RETURN collect(v {VARIABLE_COLUMNS}) AS variables
}}
CALL () {{
  MATCH (p:Pin) WHERE {visible("p")} AND p.scope IN $chain
  OPTIONAL MATCH (m:Memory {{id: p.memoryId}}) WHERE {visible("m")}
  WITH p, m, CASE WHEN m.standing IN ['SUPERSEDED', 'FOLDED'] THEN m END AS retired
  CALL (retired) {{
    OPTIONAL MATCH ANY SHORTEST (retired)
      ((:Memory)-[:FOLDED_INTO]->(:Memory)){{0,20}} ()
      ((:Memory)<-[r:SUPERSEDES WHERE r.state = 'ACTIVE' AND r.retires]-(:Memory)){{0,}} ()
      ((:Memory)-[:FOLDED_INTO]->(:Memory)){{0,20}} (h:Memory)
    WHERE NOT h.standing IN ['SUPERSEDED', 'FOLDED'] AND {visible("h")}
    RETURN collect({memory_columns("h")}) AS ends
  }}
  RETURN collect({{pin: p {PIN_COLUMNS}, memory: {memory_columns("m")}, ends: ends}}) AS pins
}}
RETURN policies, variables, pins
"""


async def canon(tx: Tx, principal: Principal, scope: Scope) -> Canon:
    """All canon that holds for `principal` in `scope`; pins lead to the head of their chain."""
    shared = Place(principal.org_id, scope).partition_token
    found = await row(tx, CANON, shared=shared, chain=chain(principal, scope), **access(principal))
    assert found is not None  # noqa: S101  the statement returns one row whatever it matches
    led = [
        lead
        for one in found["pins"]
        if admit(principal, place_of(one["pin"]), one["pin"]["id"])
        for lead in _led(principal, pin_of(one["pin"]), one["memory"], one["ends"])
    ]
    return Canon(
        policies=tuple(admitted(principal, found["policies"], policy_of)),
        variables=tuple(admitted(principal, found["variables"], variable_of)),
        pinned=tuple(lead for lead in led if isinstance(lead, PinnedMemory)),
        absent=tuple(lead for lead in led if isinstance(lead, AbsentPin)),
    )


def _led(principal: Principal, pin: Pin, memory: Row | None, ends: Iterable[Row]) -> Iterator[PinnedMemory | AbsentPin]:
    """Where `pin` leads: every current end of its chain, or why there is none."""
    reached = admitted(principal, [*([memory] if memory else []), *ends], memory_of)
    current = [one for one in reached if one.standing is Standing.CURRENT and one.text is not None]
    for one in current:
        yield PinnedMemory(pin, one, followed=one.id != pin.memory_id)
    if not current:
        yield AbsentPin(pin, _absence(reached))


def _absence(reached: list[Memory]) -> Absence:
    standings = {memory.standing for memory in reached}
    if not standings or Standing.ERASED in standings:
        return Absence.ERASED
    return Absence.ARCHIVED if Standing.ARCHIVED in standings else Absence.NOT_CURRENT


PINNED = f"""
MATCH (m:Memory) WHERE m.id IN $ids AND {visible("m")}
RETURN {memory_columns("m")} AS node
"""


async def pinned_memories(tx: Tx, principal: Principal, ids: Iterable[RecordId]) -> dict[RecordId, Memory]:
    """The memories among `ids` that `principal` may see, whatever became of them."""
    found = await rows(tx, PINNED, ids=sorted(ids), **access(principal))
    return {memory.id: memory for memory in admitted(principal, (one["node"] for one in found), memory_of)}
