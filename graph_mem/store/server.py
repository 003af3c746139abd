"""What the Neo4j server is, and whether it is enough."""

import re
from dataclasses import dataclass

from graph_mem.errors import UnsuitableServer
from graph_mem.store.db import Database

NEEDED = (2026, 1)
"""The first version whose SEARCH takes predicates inside the vector index; tenants are kept apart by them."""

COMPONENTS = """
CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition
"""
LANGUAGE = "SHOW DATABASES YIELD name, defaultLanguage WHERE name = $name RETURN defaultLanguage AS language"
HAS_GDS = "SHOW FUNCTIONS YIELD name WHERE name = 'gds.version' RETURN count(*) > 0 AS present"
GDS_VERSION = "RETURN gds.version() AS version"


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The server's version and edition, the database's language, and the version of Graph Data Science if present."""

    version: str
    edition: str
    language: str
    gds: str | None


async def inspect(db: Database) -> ServerInfo:
    """What answers behind `db`.

    Errors: UnsuitableServer if it refuses our credentials; DatabaseUnavailable if nothing answers.
    """
    (kernel,) = await db.run(COMPONENTS)
    languages = await db.run(LANGUAGE, name=db.name)
    (functions,) = await db.run(HAS_GDS)
    return ServerInfo(
        version=kernel["version"],
        edition=kernel["edition"],
        language=languages[0]["language"] if languages else "unknown",
        gds=(await db.run(GDS_VERSION))[0]["version"] if functions["present"] else None,
    )


def require(info: ServerInfo) -> None:
    """Refuse a server too old for us; Graph Data Science is welcome but not needed."""
    found = re.match(r"(\d+)\.(\d+)", info.version)
    if found is None or (int(found[1]), int(found[2])) < NEEDED:
        raise UnsuitableServer(
            f"Found Neo4j {info.version} ({info.edition}), needed is {NEEDED[0]}.{NEEDED[1]:02} or later: "
            "older ones cannot filter inside a vector index."
        )
    if info.language not in ("CYPHER 25", "unknown"):
        raise UnsuitableServer(
            f"Found a database whose default language is {info.language}, needed is CYPHER 25: set "
            "db.query.default_language=CYPHER_25, or ALTER DATABASE ... SET DEFAULT LANGUAGE CYPHER 25."
        )
