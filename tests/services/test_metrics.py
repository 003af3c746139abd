"""What is counted for operators, and never a word of content."""

from dataclasses import replace

import pytest
from neo4j import AsyncGraphDatabase
from prometheus_client.parser import text_string_to_metric_families

from graph_mem.cli.serving import bind
from graph_mem.core.retrieval import Query
from graph_mem.errors import DatabaseUnavailable
from graph_mem.local.home import Address
from graph_mem.services import Deps, capture, metrics, recall
from graph_mem.services.capture import NewMemory
from graph_mem.store.db import Database, Tx, row
from tests.people import Company, work_off


async def told(deps: Deps) -> dict[str, float]:
    """Each number under its name, labels included."""
    text = (await metrics.exposition(deps)).decode()
    return {
        " ".join([sample.name, *map("=".join, sorted(sample.labels.items()))]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_a_search_is_counted_by_mode_and_tier_and_nothing_of_it_is_shown(deps: Deps, org: Company) -> None:
    before = await told(deps)
    await capture.accept(deps, org.owner, NewMemory(text="The pangolin budget is secret."))
    await work_off(deps, org.id)
    await recall.search_page(deps, org.owner, Query(text="pangolin budget is secret"), first=5)
    await recall.search_page(deps, await org.member("new"), Query(text="gnu"), first=5)
    after = await told(deps)
    rise = {name: value - before.get(name, 0.0) for name, value in after.items()}
    assert rise["graph_mem_searches_total mode=HYBRID tier=HIGH"] == 1
    assert rise["graph_mem_search_seconds_count"] == 2
    assert rise["graph_mem_leg_seconds_count leg=lexical"] == rise["graph_mem_legs_total leg=vector state=RAN"] == 2
    assert rise["graph_mem_jobs_done_total kind=process_memory"] == 1
    assert rise["graph_mem_transactions_total"] > 5
    assert rise["graph_mem_transaction_wait_seconds_total"] > 0
    assert not any("pangolin" in name for name in after)


async def test_the_queue_is_told_with_the_age_of_its_oldest(deps: Deps, org: Company) -> None:
    await capture.accept(deps, org.owner, NewMemory(text="Not yet."))
    waiting = await told(deps)
    assert waiting["graph_mem_jobs_waiting"] >= 1
    assert waiting["graph_mem_oldest_job_seconds"] >= 0
    await work_off(deps, org.id)


async def test_without_a_database_the_other_numbers_are_still_told(deps: Deps) -> None:
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    listener.close()
    away = Database.connect(f"bolt://127.0.0.1:{port}", user="neo4j", password="none", database="neo4j", retry_s=0.1)
    found = await told(replace(deps, db=away))
    await away.close()
    assert found["graph_mem_database_up"] == 0
    assert "graph_mem_jobs_waiting" not in found
    assert found["graph_mem_pool_connections"] == 50


async def test_who_waits_for_a_connection_in_vain_is_counted(neo4j_address: Address) -> None:
    auth = (neo4j_address.user, neo4j_address.password)
    async with AsyncGraphDatabase.driver(
        neo4j_address.uri, auth=auth, max_connection_pool_size=1, connection_acquisition_timeout=0.1
    ) as driver:
        database = Database(driver, database="neo4j", connections=1)

        async def holding(tx: Tx) -> None:
            await row(tx, "RETURN 1")
            assert database.load.sessions == 1
            with pytest.raises(DatabaseUnavailable):
                await database.glance(lambda second: row(second, "RETURN 1"))

        await database.read(holding)
    assert (database.load.sessions, database.load.timeouts, database.load.retries) == (0, 1, 0)
