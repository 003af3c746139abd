"""How the client of Graph Data Science asks the database. Brings pandas: import it where it is used."""

# The client leaves much of its surface untyped.
# pyright: reportUnknownMemberType=false

from typing import Any

from graphdatascience.query_runner.neo4j_query_runner import Neo4jQueryRunner

_ONCE = Neo4jQueryRunner.ConnectivityRetriesConfig(max_retries=1)


class Runner(Neo4jQueryRunner):
    """The client's own, but it asks once whether the database is there.

    Left alone it asks for ten minutes, even on a driver that was closed to end it, and its thread keeps the process.
    """

    def run_cypher(self, *arguments: Any, **options: Any) -> Any:
        """As the client's own. Errors: UnableToConnectError after one attempt."""
        return super().run_cypher(*arguments, **{"connectivity_retry_config": _ONCE, **options})
