"""Applies `schema/NNNN_*.cypher` in order, once, and refuses a database whose indexes are not ours.

Every statement says IF NOT EXISTS and Neo4j takes schema changes from several clients at once, so processes
that start together on an empty database need no lock: each makes what is missing, and one that Neo4j chose as the
victim of a deadlock tries again.
"""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast

from neo4j.exceptions import ClientError

from graph_mem.core.vectors import FIRST, Space
from graph_mem.errors import DatabaseUnavailable, DimensionMismatch, SchemaMismatch, SchemaTooNew
from graph_mem.store.db import Database

VERSIONED = "CREATE CONSTRAINT migration_version IF NOT EXISTS FOR (n:Migration) REQUIRE n.version IS UNIQUE"
APPLIED = "MATCH (n:Migration) RETURN n.version AS version"
RECORD = """
MERGE (n:Migration {version: $version})
  ON CREATE SET n.name = $name, n.appliedAt = datetime.realtime().epochMillis
"""
ONLINE = "CALL db.awaitIndexes($timeout_s)"
INDEXES = """
SHOW INDEXES YIELD name, type, labelsOrTypes, properties, options, state
WHERE type IN ['VECTOR', 'FULLTEXT']
RETURN name, labelsOrTypes AS labels, properties, options.indexConfig AS config, state
"""

_ATTEMPTS = 8
_THERE_ALREADY = frozenset(
    f"Neo.ClientError.Schema.{name}AlreadyExists"
    for name in (
        "EquivalentSchemaRule",
        "IndexWithName",
        "ConstraintWithName",
        "Index",
        "Constraint",
    )
)
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_INDEX = re.compile(
    r"CREATE (?:VECTOR|FULLTEXT) INDEX (?P<name>\w+) IF NOT EXISTS FOR \(n:(?P<labels>[\w|]+)\)"
    r"\s+ON (?:EACH )?[\[(](?P<properties>[^\])]+)[\])](?:\s+WITH \[(?P<filters>[^\]]+)\])?",
)


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    statements: tuple[str, ...]


def load(folder: Path, *, dimension: int) -> list[Migration]:
    """The migrations in `folder`, in order; `$dimension` stands for the vectors' length in their text."""
    return [
        Migration(
            int(file.name[:4]),
            file.stem,
            tuple(
                statement.strip().replace("$dimension", str(dimension))
                for statement in _COMMENT.sub("", file.read_text(encoding="utf-8")).split(";")
                if statement.strip()
            ),
        )
        for file in sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.cypher"))
    ]


async def migrate(
    db: Database, folder: Path, *, dimension: int, space: Space = FIRST, timeout_s: int = 600
) -> list[str]:
    """Bring the database to the newest schema; returns the names of the migrations it applied.

    `space` is the one in force: after a move to another model, the vector index is not the one that was made first.
    """
    migrations = load(folder, dimension=dimension)
    applied = {row["version"] for row in await db.run(APPLIED)}
    _check_age(applied, migrations)
    missing = [migration for migration in migrations if migration.version not in applied]
    if missing:
        await _insist(db, VERSIONED)
    for migration in missing:
        for statement in migration.statements:
            await _insist(db, cast(LiteralString, statement))
        await _insist(db, RECORD, version=migration.version, name=migration.name)
    await db.run(ONLINE, timeout_s=timeout_s)
    await _verify(db, migrations, dimension=dimension, space=space)
    return [migration.name for migration in missing]


def _check_age(applied: set[int], migrations: list[Migration]) -> None:
    """Refuse a database that is ahead of us: it only goes forward."""
    newest = migrations[-1].version
    if max(applied, default=0) > newest:
        raise SchemaTooNew(
            f"The database has schema {max(applied)}, this release of graph-mem knows {newest} and none later:"
            " start the release that migrated it, or a later one."
        )


async def _insist(db: Database, statement: LiteralString, **parameters: Any) -> None:
    """Run a statement that may be repeated, again if others were in its way.

    One that others made between our look and our writing is there, which is all we want; `_verify` compares it.
    """
    for attempt in range(_ATTEMPTS):
        try:
            await db.run(statement, **parameters)
        except DatabaseUnavailable:
            if attempt == _ATTEMPTS - 1:
                raise
            await asyncio.sleep(0.1 * 2**attempt)
        except ClientError as error:
            if error.code not in _THERE_ALREADY:
                raise
            return
        else:
            return


async def _verify(db: Database, migrations: list[Migration], *, dimension: int, space: Space) -> None:
    """Compare the search indexes with their definition: IF NOT EXISTS keeps an old one in silence."""
    found = {row["name"]: row for row in await db.run(INDEXES)}
    for name, (labels, properties) in _wanted(migrations, space).items():
        index = found.get(name)
        if index is None:
            raise SchemaMismatch(f"Index {name!r} is missing; drop its Migration node to have it made again.")
        if (set(index["labels"]), index["properties"]) != (labels, properties):
            raise SchemaMismatch(
                f"Index {name!r} covers {sorted(index['labels'])} {index['properties']},"
                f" expected {sorted(labels)} {properties}: drop it and its Migration node, then start again."
            )
        if index["state"] == "FAILED":
            raise SchemaMismatch(f"Index {name!r} has failed: see the database's log, drop and recreate it.")
        _check_dimension(name, index["config"], dimension)


def _check_dimension(name: str, config: dict[str, Any], dimension: int) -> None:
    found = config.get("vector.dimensions")
    if found is not None and int(found) != dimension:
        raise DimensionMismatch(
            f"Index {name!r} holds vectors of {int(found)} numbers, the embedding model makes {dimension}:"
            " start with the former model, or move the records with `graph-mem reembed`."
        )


def _wanted(migrations: list[Migration], space: Space) -> dict[str, tuple[set[str], list[str]]]:
    """Labels and properties of each search index that the migrations leave behind."""
    wanted: dict[str, tuple[set[str], list[str]]] = {}
    for statement in (statement for migration in migrations for statement in migration.statements):
        if dropped := re.match(r"DROP INDEX (\w+)", statement):
            wanted.pop(dropped[1], None)
        if made := _INDEX.match(statement):
            properties = re.findall(r"n\.(\w+)", made["properties"] + "," + (made["filters"] or ""))
            wanted[made["name"]] = (set(made["labels"].split("|")), properties)
    if space != FIRST and (first := wanted.pop(FIRST.index, None)):
        wanted[space.index] = (first[0], [space.property, *first[1][1:]])
    return wanted
