"""What is left of a load once it has settled: every acknowledged write, asked for again through the API."""

import asyncio
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.calls import Doors, Ledger, Refused
from bench.fleet import Caller, Fleet

_NODES = """query($ids: [ID!]!) { nodes(ids: $ids) { __typename id
  ... on Memory { processing standing text } ... on Fact { standing statement } } }"""
_CURRENT = """query($s: ScopeInput, $subject: String!) {
  facts(scope: $s, subject: $subject, relation: "billing rate", first: 20) { nodes { id private } } }"""
_CHAIN = (
    "query($id: ID!) { supersessionChain(id: $id) { records { id } heads { id } links { older { id } newer { id } } } }"
)

_AT_ONCE = 50
_SIDE_BY_SIDE = 8
_WAITING = "MATCH (j:Job) RETURN count(j) AS n"
_BROKEN = {
    "jobs left": _WAITING,
    "memories without a passage": "MATCH (m:Memory) WHERE NOT EXISTS { (:Chunk)-[:PART_OF]->(m) } RETURN count(m) AS n",
    "passages twice": """MATCH (c:Chunk) WITH c.memoryId AS m, c.seq AS s, count(*) AS n WHERE n > 1
        RETURN count(*) AS n""",
    "facts without a vector": "MATCH (f:Fact) WHERE f.embedding IS NULL RETURN count(f) AS n",
    "saved twice in history": """MATCH (e:Event {kind: 'SAVED'}) WITH e.recordId AS r, count(*) AS n WHERE n > 1
        RETURN count(*) AS n""",
    "texts twice": "MATCH (m:Memory) WITH m.textHash AS h, count(*) AS n WHERE n > 1 RETURN count(*) AS n",
    "slots with two current facts": """MATCH (s:Slot)-[:CURRENT]->(f) WITH s, count(f) AS n WHERE n > 1
        RETURN count(*) AS n""",
    "links that go back in time": """MATCH (n:Fact)-[l:SUPERSEDES]->(o:Fact) WHERE n.validFrom < o.validFrom
        RETURN count(*) AS n""",
}
"""What must be nought."""
_STORED = (
    "MATCH (r) WHERE r:Memory OR r:Fact RETURN sum(CASE WHEN r:Memory THEN 1 ELSE 0 END) AS memories, count(*) AS all"
)


@dataclass(slots=True)
class Counts:
    """What was acknowledged and what of it is there."""

    acknowledged: int
    unacknowledged: int
    memories: int = 0
    memories_ready: int = 0
    facts: int = 0
    facts_in_chains: int = 0
    slots: int = 0
    slots_with_one_current: int = 0
    longest_chain: int = 0
    lost: list[str] = field(default_factory=list[str])
    broken: dict[str, int] = field(default_factory=dict[str, int])
    stored: int = 0
    seconds_to_settle: float = 0.0

    @property
    def complete(self) -> bool:
        """Nothing lost, nothing twice, all processed. A write that was never acknowledged may be there or not."""
        extra = self.stored - self.acknowledged
        return (
            not self.lost
            and not any(self.broken.values())
            and self.memories_ready == self.memories
            and self.slots_with_one_current == self.slots
            and 0 <= extra <= self.unacknowledged
        )

    def report(self) -> dict[str, Any]:
        return {**asdict(self), "complete": self.complete}


async def settled(fleet: Fleet, *, within_s: float = 900.0) -> float:
    """Seconds until no job waits, or all that were given."""
    started = time.monotonic()
    async with fleet.database() as database:
        while time.monotonic() - started < within_s:
            (found,) = await database.run(_WAITING)
            if not found["n"]:
                break
            await asyncio.sleep(1.0)
    return time.monotonic() - started


async def count(fleet: Fleet, doors: Doors, ledger: Ledger) -> Counts:
    """Wait until all is processed, then look for everything in `ledger`."""
    waited = await settled(fleet)
    counts = Counts(ledger.writes, ledger.unacknowledged, seconds_to_settle=round(waited, 1))
    await _memories(doors, ledger, counts)
    slots = [(caller, slot[2], ids) for slot, (caller, ids) in ledger.facts.items()]
    for start in range(0, len(slots), _SIDE_BY_SIDE):
        some = slots[start : start + _SIDE_BY_SIDE]
        await asyncio.gather(*(_slot(doors, caller, subject, ids, counts) for caller, subject, ids in some))
    for name, statement in _BROKEN.items():
        counts.broken[name] = (await fleet.count(statement))[0]["n"]
    counts.stored = (await fleet.count(_STORED))[0]["all"]
    return counts


async def _memories(doors: Doors, ledger: Ledger, counts: Counts) -> None:
    of_caller: dict[str, list[tuple[Caller, str, str]]] = defaultdict(list)
    for id, (caller, text) in ledger.memories.items():
        of_caller[caller.token].append((caller, id, text))
    for entries in of_caller.values():
        for start in range(0, len(entries), _AT_ONCE):
            some = entries[start : start + _AT_ONCE]
            data = await patiently(doors, some[0][0], _NODES, ids=[id for _, id, _ in some])
            for (_, id, text), node in zip(some, data["nodes"], strict=True):
                counts.memories += 1
                if node is None or node["text"] != text:
                    counts.lost.append(id)
                elif node["processing"] == "READY":
                    counts.memories_ready += 1


async def _slot(doors: Doors, caller: Caller, subject: str, ids: list[str], counts: Counts) -> None:
    """One current fact, and every acknowledged one in its chain, which is a line."""
    counts.slots += 1
    counts.facts += len(ids)
    data = await patiently(doors, caller, _CURRENT, s=caller.scope, subject=subject)
    private = "private" in caller.place
    current = [node["id"] for node in data["facts"]["nodes"] if node["private"] is private]
    chain = (await patiently(doors, caller, _CHAIN, id=ids[0]))["supersessionChain"]
    there = {record["id"] for record in chain["records"]} if chain else set()
    older = [link["older"]["id"] for link in chain["links"]] if chain else []
    newer = [link["newer"]["id"] for link in chain["links"]] if chain else []
    linear = len(older) == len(set(older)) == len(set(newer)) == len(there) - 1
    counts.lost += [id for id in ids if id not in there]
    counts.facts_in_chains += sum(id in there for id in ids)
    counts.longest_chain = max(counts.longest_chain, len(there))
    heads = [head["id"] for head in chain["heads"]] if chain else []
    if len(current) == 1 and current == heads and linear:
        counts.slots_with_one_current += 1


async def patiently(doors: Doors, caller: Caller, document: str, **variables: Any) -> dict[str, Any]:
    """The answer, asked for again while the service says that it is overloaded."""
    for _ in range(60):
        try:
            return await doors.ask(caller, document, **variables)
        except Refused as refused:
            if refused.code not in ("RATE_LIMITED", "SERVICE_UNAVAILABLE", "TIMEOUT"):
                raise
            await asyncio.sleep(1.0)
    raise TimeoutError(document)
