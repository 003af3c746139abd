"""A fresh organization on a real Neo4j for every test."""

from collections.abc import AsyncIterator

import pytest

from graph_mem.services import Deps
from graph_mem.store.db import Database
from tests.people import Company, FixedClock, company, deps_on


@pytest.fixture(scope="session")
async def deps(database: Database) -> AsyncIterator[Deps]:
    async with deps_on(database) as made:
        yield made


@pytest.fixture
async def org(deps: Deps) -> Company:
    return await company(deps)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()
