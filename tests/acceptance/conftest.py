"""The service as clients see it, with a fresh organization for every test."""

from collections.abc import AsyncIterator

import pytest

from graph_mem.store.db import Database
from tests.acceptance.service import Service, serving
from tests.people import deps_on


@pytest.fixture
async def service(database: Database) -> AsyncIterator[Service]:
    async with deps_on(database) as deps, serving(deps) as made:
        yield made
