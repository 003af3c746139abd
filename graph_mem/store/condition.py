"""How the database is: its search indexes, its plugins, the work that waits in it."""

from dataclasses import dataclass

from graph_mem.store import jobs
from graph_mem.store.db import Tx, row, rows

INDEXES = """
SHOW INDEXES YIELD name, type, state
WHERE type IN ['VECTOR', 'FULLTEXT']
RETURN name, state ORDER BY name
"""
GDS = """
SHOW FUNCTIONS YIELD name WHERE name = 'gds.version'
RETURN name
"""
GDS_VERSION = "RETURN gds.version() AS version"
NOW = "RETURN datetime.realtime().epochMillis AS now"


@dataclass(frozen=True, slots=True)
class IndexCondition:
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class Condition:
    """`gds` is the version of Graph Data Science, None without it; `oldest_s` the age of the oldest waiting job."""

    indexes: tuple[IndexCondition, ...]
    gds: str | None
    oldest_s: float


async def examine(tx: Tx) -> Condition:
    """The condition of the database."""
    indexes = tuple(IndexCondition(found["name"], found["state"]) for found in await rows(tx, INDEXES))
    _, oldest_at = await jobs.backlog(tx)
    now = await row(tx, NOW)
    age_ms = now["now"] - oldest_at if now and oldest_at is not None else 0
    return Condition(indexes, await gds_version(tx), max(0, age_ms) / 1000)


async def gds_version(tx: Tx) -> str | None:
    """The version of Graph Data Science, None where it is not installed."""
    if not await rows(tx, GDS):
        return None
    found = await row(tx, GDS_VERSION)
    return found["version"] if found else None
