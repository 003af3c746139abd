"""The two legs of a search, and what ranking must know of the records they find.

Partition, scope, standing, kind and label stand inside both indexes, the time filters inside the vector index, so that
a small partition in a big database fills its page. Every predicate is repeated on the rows: an index entry may be
older than its node. The vector index takes one equality for each property, so it is asked once for each combination of
values; every form of the statement is a constant.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any, LiteralString

from neo4j.vector import Vector as BoltVector

from graph_mem.core.model import (
    ORGANIZATION,
    ClientId,
    DealId,
    EntityId,
    Place,
    Principal,
    Record,
    RecordId,
    RecordKind,
    Scope,
    ScopeLevel,
    Standing,
)
from graph_mem.core.retrieval import Span
from graph_mem.core.tags import entity_tag, kind_tag, label_tag, standing_tag
from graph_mem.core.vectors import SPACES, Space, Vector
from graph_mem.store.db import Row, Tx, row, rows
from graph_mem.store.found import COLLECTED, SHOWN, Found, found_of
from graph_mem.store.records import record_columns, record_of
from graph_mem.store.times import ms
from graph_mem.store.visibility import access, admitted, counted_by_place, per_place_in_one, visible
from graph_mem.store.words import Wording, lucene

_LONG_AGO = ms(datetime.fromisoformat("0001-01-01T00:00:00+00:00"))
_FAR_OFF = 253_402_300_800_000
"""After every instant that is stored, `FAR` included."""

WORDS_INDEX = "words"

COUNTED = 1_000
"""How far what is left out is counted."""

_BEAM = 2
"""The index looks about as far as it is asked for: the best of twice as many miss fewer. Measured: bench/README.md."""

_FEW_SCOPES = 6
_DEEPER = 8
"""A search of one partition at eight times the depth costs as much as six at the depth itself."""

_RETIRED = (Standing.SUPERSEDED, Standing.ARCHIVED)
_NOTHING = "+keys:none"


@dataclass(frozen=True, slots=True)
class Where:
    """What a search may return, resolved: scopes exist, sources are keys.

    `scopes` None: all shared scopes and the own partition whole. `sources` None: any; empty: none exists.
    """

    scopes: tuple[Scope, ...] | None
    standings: tuple[Standing, ...] = (Standing.CURRENT,)
    kinds: tuple[RecordKind, ...] = ()
    labels: tuple[str, ...] = ()
    entity_ids: tuple[EntityId, ...] = ()
    sources: tuple[str, ...] | None = None
    created: Span | None = None
    occurred: Span | None = None
    held_at: datetime | None = None

    @property
    def names_records(self) -> bool:
        """Whether a filter leads to few records, which are then compared one by one."""
        return bool(self.entity_ids) or self.sources is not None


_PASSES: LiteralString = f"""{visible("r")} AND r.standing IN $standings
  AND ($labels IS NULL OR r.label IN $labels) AND ($kinds IS NULL OR r.kind IN $kinds)"""

_NAMES: LiteralString = """(size($entityIds) = 0
    OR EXISTS { (r)-[:MENTIONS|ABOUT]->(e:Entity) WHERE e.id IN $entityIds })"""

_TO_RECORDS: LiteralString = f"""
OPTIONAL MATCH (n)-[:PART_OF]->(whole:Memory)
WITH n, score, coalesce(whole, n) AS r
WHERE {_PASSES}
WITH n, r, score ORDER BY score DESC, r.owner IS NULL, n.id LIMIT $limit
RETURN {COLLECTED}
"""

_FORMS: Mapping[LiteralString, tuple[LiteralString, LiteralString]] = {
    "scope": ("UNWIND $scopes AS oneScope ", " AND n.scope = oneScope"),
    "kind": ("UNWIND $kinds AS oneKind ", " AND n.kind = oneKind"),
    "label": ("UNWIND $labels AS oneLabel ", " AND n.label = oneLabel"),
    "held": ("", " AND n.validFrom <= $heldAt AND n.validTo > $heldAt"),
    "created": ("", " AND n.createdAt >= $createdFrom AND n.createdAt < $createdTo"),
    "occurred": ("", " AND n.occurredAt >= $occurredFrom AND n.occurredAt < $occurredTo"),
}


def _meaning(index: LiteralString, chosen: Iterable[LiteralString]) -> LiteralString:
    """The vector leg with the filters named `chosen` inside the index."""
    unwinds: LiteralString = ""
    predicates: LiteralString = ""
    for name in chosen:
        unwind, predicate = _FORMS[name]
        unwinds += unwind
        predicates += predicate
    return f"""CYPHER 25
UNWIND $partitions AS onePartition UNWIND $standings AS oneStanding {unwinds}
MATCH (n) SEARCH n IN (VECTOR INDEX {index} FOR $vector
  WHERE n.partition = onePartition AND n.standing = oneStanding{predicates} LIMIT $reach) SCORE AS score
WITH n, score WHERE n.standing IN $standings AND {visible("n")}
{_TO_RECORDS}"""


def _subsets(names: tuple[LiteralString, ...]) -> Iterable[tuple[LiteralString, ...]]:
    for flags in product((False, True), repeat=len(names)):
        yield tuple(name for name, used in zip(names, flags, strict=True) if used)


MEANING: Mapping[tuple[str, ...], LiteralString] = {
    (space.index, *chosen): _meaning(space.index, chosen)
    for space in SPACES.values()
    for chosen in _subsets(tuple(_FORMS))
}
"""One statement for each index and set of filters, by their names in the order of `_FORMS`."""

EXACT = f"""CYPHER 25
CALL () {{
  UNWIND coalesce($sources, []) AS source
  MATCH (m:Memory {{sourceKey: source}}) WHERE {visible("m")}
  RETURN m AS r
 UNION
  UNWIND coalesce($sources, []) AS source
  MATCH (m:Memory {{sourceKey: source}})-[:STATES]->(f:Fact) WHERE {visible("m")} AND {visible("f")}
  RETURN f AS r
 UNION
  MATCH (e:Entity) WHERE $sources IS NULL AND e.id IN $entityIds AND {visible("e")}
  MATCH (r:Memory|Fact)-[:MENTIONS|ABOUT]->(e) WHERE {visible("r")}
  RETURN r
}}
WITH r WHERE {_PASSES} AND {_NAMES}
CALL (r) {{
  MATCH (n:Chunk {{memoryId: r.id}}) WHERE n[$property] IS NOT NULL AND {visible("n")} RETURN n
 UNION
  WITH r WHERE r.kind = 'fact' AND r[$property] IS NOT NULL RETURN r AS n
}}
WITH n, r, vector.similarity.cosine(n[$property], $vector) AS score ORDER BY score DESC, n.id LIMIT $limit
RETURN {COLLECTED}
"""

_PENDING: LiteralString = f"""
CALL () {{
  UNWIND $partitions AS onePartition
  CALL (onePartition) {{
    MATCH (m:Memory) WHERE m.partition = onePartition AND m.processing IN ['SAVED', 'PROCESSING'] AND {visible("m")}
    RETURN m LIMIT $counted
  }}
  {per_place_in_one("m")} AS pending
}}"""

_SIZE: LiteralString = "COUNT { (:Chunk) } + COUNT { (:Fact) } AS units"

WORDS = f"""CYPHER 25
{_PENDING}
CALL () {{
  CALL db.index.fulltext.queryNodes($index, $passedQuery, {{limit: $counted}}) YIELD node AS p, score AS passedScore
  WITH p WHERE passedScore > 0 AND {visible("p")}
  WITH coalesce(p.memoryId, p.id) AS record, head(collect(p)) AS p
  {per_place_in_one("p")} AS passed
}}
CALL () {{
  CALL db.index.fulltext.queryNodes($index, $query, {{limit: $limit}}) YIELD node AS n, score
  WITH n, score WHERE score > 0 AND n.standing IN $standings AND {visible("n")}
  {_TO_RECORDS}
}}
RETURN pending, {_SIZE}, passed, found
"""

SURROUNDINGS = f"""CYPHER 25
{_PENDING}
RETURN pending, {_SIZE}, [] AS passed
"""

SUBSTRING = f"""CYPHER 25
UNWIND $partitions AS onePartition UNWIND $standings AS oneStanding
CALL (onePartition, oneStanding) {{
  MATCH (r:Memory|Fact) WHERE r.partition = onePartition AND r.standing = oneStanding
  RETURN r ORDER BY r.createdAt DESC LIMIT $scan
}}
WITH r AS n, r, 1.0 AS score
WHERE toLower(coalesce(r.text, r.statement, '')) CONTAINS $needle AND {_PASSES} AND {_NAMES}
  AND ($sources IS NULL OR r.sourceKey IN $sources
    OR EXISTS {{ (m:Memory)-[:STATES]->(r) WHERE m.sourceKey IN $sources AND {visible("m")} }})
WITH n, r, score ORDER BY r.createdAt DESC, n.id LIMIT $limit
RETURN {COLLECTED}
"""

RECORDS = f"""
MATCH (r:Memory|Fact) WHERE r.id IN $ids AND r.standing IN $standings AND {visible("r")}
RETURN collect({record_columns("r")}) AS nodes
"""
SCOPES = """
MATCH (o:Organization {id: $org})<-[:IN]-(c:Client)
RETURN c.id AS client, [(c)<-[:IN]-(d:Deal) | d.id] AS deals
"""


def parameters(principal: Principal, where: Where) -> dict[str, Any]:
    """What every statement here is given: who asks, and for what."""
    given = access(principal)
    if where.scopes is not None:
        given["scopes"] = [scope.token(principal.org_id) for scope in where.scopes]
    created, occurred = where.created, where.occurred
    return {
        **given,
        "standings": [standing.value for standing in where.standings],
        "kinds": [kind.value.lower() for kind in where.kinds] or None,
        "labels": list(where.labels) or None,
        "entityIds": list(where.entity_ids),
        "sources": None if where.sources is None else list(where.sources),
        "createdFrom": _start(created),
        "createdTo": _end(created),
        "occurredFrom": _start(occurred),
        "occurredTo": _end(occurred),
        "heldAt": None if where.held_at is None else ms(where.held_at),
        "shown": SHOWN,
    }


def _start(span: Span | None) -> int | None:
    return None if span is None else _LONG_AGO if span.start is None else ms(span.start)


def _end(span: Span | None) -> int | None:
    return None if span is None else _FAR_OFF if span.end is None else ms(span.end)


def _bolt(vector: Vector) -> BoltVector:
    """Packed: a tenth of the client's work of a list."""
    return BoltVector.from_numpy(vector)  # pyright: ignore[reportUnknownMemberType]  # the driver leaves it untyped


async def meaning(
    tx: Tx, principal: Principal, where: Where, *, vector: Vector, space: Space, limit: int
) -> list[Found]:
    """The units nearest in `space` to `vector`, best first; `raw` is their cosine.

    Each scope costs a search of its own. A caller of many scopes has the partition searched deep instead, and only
    where that brings few of theirs, each scope.
    """
    given = {**parameters(principal, where), "vector": _bolt(vector), "limit": limit, "reach": _BEAM * limit}
    if where.names_records:
        return found_of(principal, await row(tx, EXACT, property=space.property, **given), raw=_cosine)
    form = _form(given)
    if len(where.scopes or ()) > _FEW_SCOPES:
        whole = MEANING[space.index, *(name for name in form if name != "scope")]
        answer = await row(tx, whole, **{**given, "reach": _DEEPER * limit})
        found = found_of(principal, answer, raw=_cosine)
        if len(found) >= limit // 2:
            return found
    return found_of(principal, await row(tx, MEANING[space.index, *form], **given), raw=_cosine)


def _cosine(score: float) -> float:
    """The vector index answers (1 + cosine) / 2."""
    return 2 * score - 1


def _form(given: Mapping[str, Any]) -> tuple[str, ...]:
    used = {
        "scope": given["scopes"] is not None,
        "kind": given["kinds"] is not None,
        "label": given["labels"] is not None,
        "held": given["heldAt"] is not None,
        "created": given["createdFrom"] is not None,
        "occurred": given["occurredFrom"] is not None,
    }
    return tuple(name for name in _FORMS if used[name])


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a search is judged by: memories in reach that are still being processed, units of the whole index, and
    records that hold words of the query and are left out because they are not current. The first and last are
    counted up to `COUNTED`; `places` are where these are."""

    pending: int
    units: int
    passed_over: int = 0
    places: frozenset[Place] = frozenset()


async def words(
    tx: Tx, principal: Principal, where: Where, *, wording: Wording, limit: int
) -> tuple[list[Found], Surroundings]:
    """The units that hold the most telling words of the query, best first; `raw` is BM25."""
    given = parameters(principal, where)
    retired = [standing for standing in _RETIRED if standing not in where.standings]
    answer = await row(
        tx,
        WORDS,
        index=WORDS_INDEX,
        query=lucene(wording, _tags(given, where, where.standings), ahead=given["partitions"][0]),
        passedQuery=lucene(wording, _tags(given, where, retired)) if retired else _NOTHING,
        limit=limit,
        counted=COUNTED,
        **given,
    )
    return found_of(principal, answer, raw=float), _surroundings(principal, answer)


async def surroundings(tx: Tx, principal: Principal, where: Where) -> Surroundings:
    """What a search without words is judged by."""
    given = parameters(principal, where)
    found = await row(tx, SURROUNDINGS, partitions=given["partitions"], scopes=given["scopes"], counted=COUNTED)
    return _surroundings(principal, found)


def _surroundings(principal: Principal, answer: Row | None) -> Surroundings:
    if answer is None:
        return Surroundings(0, 0)
    pending = counted_by_place(principal, answer["pending"], "a count of pending memories")
    passed = counted_by_place(principal, answer["passed"], "a count of what is not current")
    return Surroundings(sum(pending.values()), answer["units"], sum(passed.values()), frozenset({*pending, *passed}))


def _tags(given: Mapping[str, Any], where: Where, standings: Sequence[Standing]) -> list[Sequence[str]]:
    """The filters of `where` as groups of keys, one of each of which a unit must have."""
    return [
        given["partitions"],
        given["scopes"] or (),
        [standing_tag(standing) for standing in standings],
        [kind_tag(kind) for kind in where.kinds],
        [label_tag(label) for label in where.labels],
        where.sources or (),
        [entity_tag(id) for id in where.entity_ids],
    ]


async def substring(
    tx: Tx, principal: Principal, where: Where, *, needle: str, limit: int, scan: int = 2_000
) -> list[Found]:
    """Records among the newest `scan` of each partition whose text holds `needle`, newest first."""
    answer = await row(tx, SUBSTRING, needle=needle, limit=limit, scan=scan, **parameters(principal, where))
    return found_of(principal, answer, raw=float)


async def records(
    tx: Tx, principal: Principal, ids: Sequence[RecordId], standings: Sequence[Standing]
) -> dict[RecordId, Record]:
    """Those of `ids` that `principal` may see and that still have one of `standings`."""
    answer = await row(
        tx, RECORDS, ids=list(ids), standings=[standing.value for standing in standings], **access(principal)
    )
    return {record.id: record for record in admitted(principal, answer["nodes"] if answer else (), record_of)}


async def scopes_of(tx: Tx, principal: Principal) -> tuple[Scope, ...]:
    """Every scope that `principal` may read, the organization's first."""
    if principal.scopes is not None:
        return principal.scopes
    scopes = [ORGANIZATION]
    for found in await rows(tx, SCOPES, org=principal.org_id):
        client = ClientId(found["client"])
        scopes.append(Scope(ScopeLevel.CLIENT, client))
        scopes += [Scope(ScopeLevel.DEAL, client, DealId(deal)) for deal in found["deals"]]
    return tuple(scopes)
