"""One world for all tests of isolation; those that change it come last."""

from collections.abc import AsyncIterator

import pytest

from graph_mem.services import Deps, legs
from graph_mem.store.db import Database
from tests.guards.world import World, build, leave_traces
from tests.people import deps_on


@pytest.fixture(scope="session")
async def deps(database: Database) -> AsyncIterator[Deps]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(legs, "LEG_TIMEOUT_S", 60.0)  # a leg that a busy machine cuts short is another answer
        async with deps_on(database) as made:
            yield made


@pytest.fixture(scope="module")
async def world(deps: Deps) -> World:
    """Each file's own: some change what is in it, and files run in any order."""
    made = await build(deps)
    await leave_traces(made)
    return made
