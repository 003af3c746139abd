"""What an operator looks at: every number that dashboard and alerts ask for is told, and every number is shown."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from promql_parser import AggregateExpr, Expr, VectorSelector, parse, walk

from graph_mem import app
from graph_mem.config import Settings
from tests.acceptance.service import Service

DEPLOY = Path(__file__).parents[2] / "deploy"
BY_PROMETHEUS = {"instance", "job"}
NOT_SHOWN = {"process_virtual_memory_bytes", "process_start_time_seconds", "process_max_fds"}

Told = dict[str, dict[str, set[str]]]
"""Families, their series by name, and the labels of these."""


def dashboard() -> list[str]:
    panels = json.loads((DEPLOY / "grafana" / "graph-mem.json").read_text())["panels"]
    return [target["expr"].replace("$__rate_interval", "5m") for panel in panels for target in panel.get("targets", ())]


def alerts() -> list[str]:
    groups = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def selectors(expression: Expr) -> list[VectorSelector]:
    found: list[VectorSelector] = []
    walk(expression, lambda one: found.append(one) if isinstance(one, VectorSelector) else None)
    return found


def labels(expression: Expr) -> Iterator[tuple[str, str]]:
    """Each series that `expression` reads with each label that it must have."""
    for one in selectors(expression):
        yield from ((one.name, matcher.name) for matcher in one.matchers.matchers)
    grouped: list[AggregateExpr] = []
    walk(expression, lambda one: grouped.append(one) if isinstance(one, AggregateExpr) and one.modifier else None)
    for one in grouped:
        yield from ((inner.name, label) for inner in selectors(one.expr) for label in one.modifier.labels)


async def probe(service: Service, path: str) -> httpx.Response:
    """What a worker of this service answers."""
    worker = app.build_worker(Settings())
    worker.state.deps = service.deps
    async with httpx.AsyncClient(transport=httpx.ASGITransport(worker), base_url="http://worker") as client:
        return await client.get(path)


@pytest.fixture
async def told(service: Service) -> Told:
    """What Prometheus gets of a process that has done something of everything."""
    await service.owner.capture("The pangolin budget is 40,000 euros.")
    await service.settled()
    await service.owner.must("query($q: String!) { search(input: {text: $q}) { mode } }", q="pangolin budget")
    found: Told = {}
    for family in text_string_to_metric_families((await probe(service, "/metrics")).text):
        series = found.setdefault(family.name, defaultdict(set))
        for sample in family.samples:
            series[sample.name] |= set(sample.labels)
    return found


async def test_dashboard_and_alerts_ask_for_what_is_told_and_show_all_of_it(told: Told) -> None:
    series = {name: labels for family in told.values() for name, labels in family.items()}
    asked = {one.name for text in (*dashboard(), *alerts()) for one in selectors(parse(text))}
    assert asked - series.keys() == set()
    needed = {pair for text in (*dashboard(), *alerts()) for pair in labels(parse(text))}
    assert len(needed) > 20
    assert {(name, label) for name, label in needed if label not in series[name] | BY_PROMETHEUS} == set()
    shown = {family for family, names in told.items() if names.keys() & asked}
    assert told.keys() - shown == NOT_SHOWN


def test_a_legend_names_labels_that_its_query_keeps() -> None:
    panels = json.loads((DEPLOY / "grafana" / "graph-mem.json").read_text())["panels"]
    targets = [target for panel in panels for target in panel.get("targets", ())]
    for target in targets:
        kept = {label for _, label in labels(parse(target["expr"].replace("$__rate_interval", "5m")))} | BY_PROMETHEUS
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= kept, target["expr"]


def test_panels_stand_beside_each_other_with_a_unit_and_the_data_source_that_is_chosen() -> None:
    document = json.loads((DEPLOY / "grafana" / "graph-mem.json").read_text())
    panels, (variable,) = document["panels"], document["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        own = set(product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])))
        assert max(x for x, _ in own) < 24
        assert not own & cells, panel["title"]
        cells |= own
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": f"${{{variable['name']}}}"}
            assert panel["fieldConfig"]["defaults"]["unit"] in {"none", "s", "ops", "percentunit", "bytes"}
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0


async def test_a_worker_says_that_it_lives_and_whether_it_can_work(service: Service) -> None:
    assert (await probe(service, "/health/live")).json() == {"live": True}
    ready = await probe(service, "/health/ready")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert (await probe(service, "/graphql")).status_code == 404
