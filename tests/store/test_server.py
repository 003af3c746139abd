"""Which Neo4j is enough."""

import pytest

from graph_mem.errors import UnsuitableServer
from graph_mem.local.home import Address
from graph_mem.store.db import Database
from graph_mem.store.server import ServerInfo, inspect, require


async def test_the_server_of_this_run_is_enough(database: Database) -> None:
    info = await inspect(database)
    require(info)
    assert info.version.startswith("20")
    assert info.language == "CYPHER 25"


@pytest.mark.parametrize("version", ["5.26.1", "2025.12.0", "4.4.0", "unknown"])
def test_an_older_server_is_refused_by_naming_found_and_needed(version: str) -> None:
    info = ServerInfo(version=version, edition="community", language="CYPHER 25", gds=None)
    with pytest.raises(UnsuitableServer, match=rf"Found Neo4j {version} \(community\), needed is 2026\.01 or later"):
        require(info)


@pytest.mark.parametrize("version", ["2026.01.0", "2026.01.4", "2026.11.2-aura", "2027.01.0"])
def test_a_newer_server_is_enough_even_without_gds(version: str) -> None:
    require(ServerInfo(version=version, edition="enterprise", language="CYPHER 25", gds=None))


def test_a_database_of_another_language_is_refused_with_the_way_out() -> None:
    info = ServerInfo(version="2026.01.4", edition="community", language="CYPHER 5", gds="2.26.0")
    with pytest.raises(UnsuitableServer, match=r"default language is CYPHER 5.*SET DEFAULT LANGUAGE CYPHER 25"):
        require(info)


async def test_a_wrong_password_is_said_as_such(neo4j_address: Address) -> None:
    database = Database.connect(neo4j_address.uri, user="nobody", password="wrong-password", database="neo4j")
    try:
        with pytest.raises(UnsuitableServer, match="refuses the user or password"):
            await inspect(database)
    finally:
        await database.close()
