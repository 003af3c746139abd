"""The product's commands as processes of their own."""

import os
import sys

COMMAND = (sys.executable, "-c", "from graph_mem.cli import main; main()")


def elsewhere(**given: str) -> dict[str, str]:
    """The environment without the Neo4j of this run, and with what is `given`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPH_MEM_NEO4J")}
    return kept | given
