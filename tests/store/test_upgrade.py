"""What the first schema left behind goes on.

`first_schema/neo4j.dump` is what the code of commit 45b6e32 made on a database with `0001_core.cypher` alone, vectors
by HashEncoder: a decision that another one replaced, a private memory, a transcript, three sentences in one slot, a
memory that no worker had seen. The Neo4j of a test run begins with it (conftest.py), and is migrated like any other.
"""

from collections.abc import AsyncIterator

import pytest

from graph_mem.config import Settings
from graph_mem.core.model import Fact, Principal, RecordKind
from graph_mem.core.retrieval import Query
from graph_mem.services import Deps, admin, facts, history, identity, recall
from graph_mem.services.facts import NewFact
from graph_mem.store.db import Database
from graph_mem.store.migrate import load
from tests.conftest import DIMENSION, REPOSITORY
from tests.people import deps_on, work_off

MIGRATIONS = "MATCH (n:Migration) RETURN n.version AS version, n.appliedAt AS at ORDER BY version"


@pytest.fixture
async def deps(database: Database) -> AsyncIterator[Deps]:
    async with deps_on(database) as deps:
        yield deps


async def person(deps: Deps, user: str) -> Principal:
    found = await admin.find_principal(deps, organization="Northwind Advisors", user=user)
    principal = await identity.principal(deps, org_id=found.org_id, user_id=found.user_id)
    assert principal is not None
    return principal


async def texts(deps: Deps, who: Principal, question: str) -> list[str]:
    page = await recall.search_page(deps, who, Query(text=question), first=20)
    return [hit.snippet for hit in page.hits]


@pytest.mark.skipif(Settings().neo4j_uri is not None, reason="a given Neo4j did not begin with the dump")
async def test_a_base_of_the_first_schema_goes_on(deps: Deps) -> None:
    applied = {row["version"]: row["at"] for row in await deps.db.run(MIGRATIONS)}
    assert applied.pop(1) < min(applied.values()) - 60_000
    assert [1, *applied] == [one.version for one in load(REPOSITORY / "schema", dimension=DIMENSION)]
    ann, bob = await person(deps, "ann@northwind.example"), await person(deps, "bob@Northwind Advisors")
    await work_off(deps, ann.org_id)
    found = await texts(deps, ann, "how do we bill Contoso")
    assert "We bill Contoso a fixed price per milestone." in found
    assert "We bill Contoso by the hour." not in found
    assert "The steering group meets on Thursdays." in await texts(deps, ann, "steering group Thursdays")
    private = "Contoso's controller prefers short calls."
    assert private in await texts(deps, bob, "controller prefers short calls")
    assert private not in await texts(deps, ann, "controller prefers short calls")
    assert await chain_with_another(deps, ann) == [
        "Contoso pays 170 euros an hour.",
        "Contoso pays 185 euros an hour.",
        "Contoso pays 9,000 euros a milestone.",
        "Contoso pays nothing.",
    ]


async def chain_with_another(deps: Deps, who: Principal) -> list[str]:
    """What the first release said of a slot, once this one has said something else."""
    page = await recall.search_page(deps, who, Query(text="what Contoso pays", kinds=(RecordKind.FACT,)), first=20)
    (active,) = [hit.record for hit in page.hits]
    client = active.place.scope.client_id
    said = NewFact(subject="contoso", relation="Billing rate", statement="Contoso pays nothing.", client_id=client)
    saved = await facts.save(deps, who, said)
    assert saved.fact is not None
    chain = await history.chain(deps, who, saved.fact.id)
    assert chain is not None
    assert len(chain.links) == len(chain.records) - 1
    return [one.statement for one in chain.records if isinstance(one, Fact)]
