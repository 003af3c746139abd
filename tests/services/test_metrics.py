"""What is counted for operators: searches by mode, the queue, and never a word of content."""

from graph_mem.core.retrieval import Query
from graph_mem.services import Deps, capture, metrics, recall
from graph_mem.services.capture import NewMemory
from tests.people import Company, work_off


def value(text: str, name: str) -> float:
    return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name)), 0.0)


async def test_a_search_is_counted_by_mode_and_nothing_of_it_is_shown(deps: Deps, org: Company) -> None:
    before = (await metrics.exposition(deps)).decode()
    await capture.accept(deps, org.owner, NewMemory(text="The pangolin budget is secret."))
    await work_off(deps, org.id)
    await recall.search_page(deps, org.owner, Query(text="pangolin"), first=5)
    after = (await metrics.exposition(deps)).decode()
    counted = 'graph_mem_searches_total{mode="HYBRID"}'
    assert value(after, counted) == value(before, counted) + 1
    assert "graph_mem_jobs_waiting" in after
    assert "pangolin" not in after
