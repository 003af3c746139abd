"""PageRank over what is current, by Graph Data Science: who and what the rest hangs on.

One graph for each partition: shared scores come from shared records alone, and a private partition from its own. Links
count both ways, so that a memory gains by the entities it names as they gain by it.
"""

# The client leaves much of its surface untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import LiteralString
from uuid import uuid4

from neo4j import Driver
from neo4j.exceptions import DriverError, Neo4jError

from graph_mem.errors import DatabaseUnavailable
from graph_mem.store.db import Tx, row, rows, translated
from graph_mem.store.leases import FREE
from graph_mem.store.times import ms

PREFIX = "graph-mem-"
_ORPHANED_AFTER = "PT15M"

PROJECT: LiteralString = """
MATCH (a:Memory|Fact|Entity)
WHERE a.partition = $partition AND (a.standing = 'CURRENT' OR (a:Entity AND a.mergedInto IS NULL))
OPTIONAL MATCH (a)-[r:MENTIONS|ABOUT|STATES|RELATES]->(b:Memory|Fact|Entity)
WHERE b.partition = $partition AND (b.standing = 'CURRENT' OR (b:Entity AND b.mergedInto IS NULL))
  AND coalesce(r.state, 'ACTIVE') = 'ACTIVE'
RETURN gds.graph.project($graph_name, a, b, {}, {undirectedRelationshipTypes: ['*']})
"""
SIZES = """
UNWIND $partitions AS partition
RETURN partition,
  COUNT { MATCH (m:Memory) WHERE m.partition = partition AND m.standing = 'CURRENT' AND m.processing = 'READY' }
  + COUNT { MATCH (f:Fact) WHERE f.partition = partition AND f.standing = 'CURRENT' } AS size
"""
CLAIM = f"""
MERGE (l:Lease {{name: $name}})
SET l.lock = $holder
WITH l, datetime.realtime().epochMillis AS now
WHERE {FREE}
SET l.until = now + $forMs
RETURN l {{.size, .at}} AS last
"""
TERMINATE = """
SHOW TRANSACTIONS YIELD transactionId AS id, parameters, currentQuery
WHERE parameters.graph_name = $name AND NOT currentQuery CONTAINS 'gds.graph.drop'
TERMINATE TRANSACTIONS id YIELD message
RETURN message
"""
RELEASE = "MATCH (l:Lease {name: $name}) SET l.until = 0, l.size = $size, l.at = $at"
SWEEP = """
CALL gds.graph.list() YIELD graphName, creationTime
WHERE graphName STARTS WITH $prefix AND creationTime < datetime() - duration($age)
CALL gds.graph.drop(graphName, false) YIELD graphName AS dropped
RETURN dropped
"""


@dataclass(frozen=True, slots=True)
class LastRun:
    """How many records there were when centrality was computed last, and when."""

    size: int = 0
    at: int = 0


async def available(tx: Tx) -> bool:
    """Whether the server has Graph Data Science."""
    found = await row(tx, "SHOW FUNCTIONS YIELD name WHERE name = 'gds.version' RETURN count(*) AS found")
    return bool(found and found["found"])


async def sizes(tx: Tx, partitions: Sequence[str]) -> dict[str, int]:
    """How many current records each partition holds."""
    return {found["partition"]: found["size"] for found in await rows(tx, SIZES, partitions=list(partitions))}


async def claim(tx: Tx, partition: str, *, holder: str, lease: timedelta) -> LastRun | None:
    """What the last run left, if nobody else runs now; the partition is ours for `lease`."""
    found = await row(tx, CLAIM, name=_lease(partition), holder=holder, forMs=round(lease / timedelta(milliseconds=1)))
    return LastRun(found["last"]["size"] or 0, found["last"]["at"] or 0) if found else None


async def release(tx: Tx, partition: str, run: LastRun) -> None:
    """Give a claimed partition back, noting the last run."""
    await row(tx, RELEASE, name=_lease(partition), size=run.size, at=run.at)


def run(size: int, at: datetime) -> LastRun:
    """A run over `size` records at `at`."""
    return LastRun(size, ms(at))


def _lease(partition: str) -> str:
    return f"centrality {partition}"


def graph_name(partition: str) -> str:
    """A name for one projection of a partition, so that runs may overlap."""
    return f"{PREFIX}{partition}-{uuid4()}"


def compute(connect: Callable[[], Driver], *, database: str, partition: str, name: str) -> int:
    """Write `centrality`, 0..1, to every current record and entity of a partition; returns how many. Blocks.

    The projection `name` is dropped whatever happens. TERMINATE breaks it off from outside.

    Errors: DatabaseUnavailable.
    """
    from graphdatascience import GraphDataScience  # noqa: PLC0415 # brings pandas, which only this needs
    from graphdatascience.error.unable_to_connect import UnableToConnectError  # noqa: PLC0415

    from graph_mem.store.gds import Runner  # noqa: PLC0415

    try:
        with connect() as driver:
            gds = GraphDataScience(Runner(driver, "bolt", database=database), arrow=False, show_progress=False)
            gds.run_cypher(SWEEP, {"prefix": PREFIX, "age": _ORPHANED_AFTER})
            if _empty(driver, database=database, partition=partition):
                return 0
            with gds.graph.project.cypher(PROJECT, graph_name=name, partition=partition) as graph:
                done = gds.page_rank.write(graph, "centrality", scaler="MinMax", concurrency=2)
                return done.node_properties_written
    except (Neo4jError, DriverError) as error:
        raise translated(error) from error
    except UnableToConnectError as error:
        raise DatabaseUnavailable("Neo4j does not answer Graph Data Science's client.") from error


ANY = "RETURN EXISTS { MATCH (m:Memory|Fact|Entity) WHERE m.partition = $partition } AS found"


def _empty(driver: Driver, *, database: str, partition: str) -> bool:
    """A projection of nothing is an error to the client."""
    found, _, _ = driver.execute_query(ANY, {"partition": partition}, database_=database)
    return not found[0]["found"]
