"""What `schema/enterprise/` holds is Cypher: Community, which has no roles, refuses each statement for that alone."""

import re
from pathlib import Path

import pytest
from neo4j.exceptions import Neo4jError

from graph_mem.store.db import Database

FILES = sorted((Path(__file__).parents[2] / "schema" / "enterprise").glob("*.cypher"))
UNSUPPORTED = "Neo.ClientError.Statement.UnsupportedAdministrationCommand"
SYNTAX = "Neo.ClientError.Statement.SyntaxError"


def statements() -> list[str]:
    texts = (re.sub(r"//.*", "", file.read_text("utf-8")) for file in FILES)
    return [one.strip() for text in texts for one in text.split(";") if one.strip()]


async def refusal(database: Database, statement: str) -> str | None:
    async with database.driver.session(database="system") as session:
        try:
            await (await session.run(statement, org="org_x")).consume()  # pyright: ignore[reportArgumentType]  # out of a file
        except Neo4jError as error:
            return error.code
    return None


async def test_every_statement_is_refused_for_the_edition_alone(database: Database) -> None:
    assert len(statements()) > 15
    refusals = {one: await refusal(database, one) for one in statements()}
    if set(refusals.values()) == {None}:
        pytest.skip("an Enterprise Edition ran them")
    assert {one: code for one, code in refusals.items() if code != UNSUPPORTED} == {}


async def test_a_statement_that_is_no_cypher_is_refused_otherwise(database: Database) -> None:
    assert (
        await refusal(database, "GRANT MATCH {*} ON GRAPH neo4j FOR (n:Memory WHERE n.org = 'x' TO somebody") == SYNTAX
    )
