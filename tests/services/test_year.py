"""A year of nights, scaled down: what bench/year.py runs in full."""

from bench.year import Clock, simulate
from graph_mem.core.model import Principal
from tests.people import Company, deps_on, work_off


async def test_a_year_of_nights_keeps_every_invariant_and_its_decisions_can_be_taken_back(org: Company) -> None:
    clock = Clock()
    async with deps_on(org.deps.db, clock=clock) as deps:
        principal: Principal = org.owner
        year = await simulate(
            deps, principal, clock, lambda: work_off(deps, org.id), records=40, nights=24, step_days=15.2
        )
    assert year.captured == 1 + 40 + 24
    assert year.kept > 10
    assert year.taken_back > 5
    assert sum(year.filed.values()) > 20
    assert year.canon_checked >= 12
