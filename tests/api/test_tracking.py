"""One name for a request: in its answer, in every line of the log, in its trace."""

import asyncio

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import set_tracer_provider

from graph_mem.core.model import Role
from graph_mem.services.spans import span
from tests.api.conftest import Collector, Live
from tests.api.test_http import events_of
from tests.api.test_ws import introduced
from tests.api.toy import SECRET_TEXT, until

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CAPTURE = "mutation Keep($t: String!) { captureMemory(input: {text: $t}) { memory { id } errors { code } } }"
SEARCH = "query Ask($q: String!) { search(input: {text: $q}) { mode hits { snippet } } }"


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    """Where the spans of this process go from now on; a process has one such place."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


def of_the_trace(spans: InMemorySpanExporter, trace: str = TRACE) -> dict[str, ReadableSpan]:
    return {one.name: one for one in spans.get_finished_spans() if f"{one.context.trace_id:032x}" == trace}


async def test_the_name_that_a_caller_gives_is_kept(live: Live) -> None:
    answer = await live.ask("{boom}", x_request_id="gateway-7f3a:12")
    assert answer.headers["x-request-id"] == "gateway-7f3a:12"
    assert answer.json()["errors"][0]["extensions"]["ref"] == "gateway-7f3a:12"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, '{"a":1}', "-n", "a;b", "ä"])
async def test_a_name_that_is_no_plain_word_is_replaced(live: Live, given: str) -> None:
    headers = [(name, value.encode("latin-1")) for name, value in (await live.headers(x_request_id=given)).items()]
    answer = await live.http.post("/graphql", json={"query": "{hello}"}, headers=headers)
    assert answer.headers["x-request-id"].startswith("req_")


async def test_every_line_of_a_request_carries_its_name_however_many_run(live: Live, log: Collector) -> None:
    names = [f"caller.{number}" for number in range(8)]
    await asyncio.gather(*(live.ask("{boom}", x_request_id=name) for name in names))
    assert sorted(log.refs("operation")) == sorted(log.refs("internal error")) == names
    assert all("ref" in line for line in log.lines if line["logger"].startswith("graph_mem.api"))


async def test_each_operation_of_a_socket_has_a_name_of_its_own(live: Live, log: Collector) -> None:
    async with introduced(live) as client:
        for id in ("1", "2"):
            await client.subscribe(id, "{boom}")
        answer = await client.all_of("1")
        await until(lambda: len(log.refs("operation")) == 2)
    assert answer[0]["payload"]["errors"][0]["extensions"]["ref"] in log.refs("internal error")
    assert sorted(log.refs("operation")) == sorted(log.refs("internal error"))
    assert len(set(log.refs("operation"))) == 2


async def test_an_error_of_ours_names_the_request_on_every_way(live: Live) -> None:
    answer = await live.ask("{down}", x_request_id="gateway-7")
    assert answer.json()["errors"][0]["extensions"] == {"code": "SERVICE_UNAVAILABLE", "ref": "gateway-7"}
    late = await live.ask("{slow(seconds:9)}", x_request_id="gateway-8")
    assert late.json()["errors"][0]["extensions"] == {"code": "TIMEOUT", "ref": "gateway-8"}
    events = await events_of(live, "{down}", x_request_id="gateway-9")
    assert events[0][1]["errors"][0]["extensions"] == {"code": "SERVICE_UNAVAILABLE", "ref": "gateway-9"}
    theirs = await live.ask("{missing}", x_request_id="gateway-10")
    assert "ref" not in theirs.json()["errors"][0]["extensions"]


async def test_a_search_is_one_trace_from_its_caller_down_to_its_legs(
    real: Live, spans: InMemorySpanExporter, log: Collector
) -> None:
    token = real.token(await real.member())
    answer = await real.ask(SEARCH, {"q": "anything"}, token=token, traceparent=f"00-{TRACE}-{CALLER}-01")
    assert answer.json()["data"]["search"]["mode"] == "HYBRID"
    found = of_the_trace(spans)
    assert set(found) == {"query", "search", "leg lexical", "leg vector", "embed"}
    parents = {name: f"{one.parent.span_id:016x}" for name, one in found.items() if one.parent}
    own = {name: f"{one.context.span_id:016x}" for name, one in found.items()}
    assert parents == {
        "query": CALLER,
        "search": own["query"],
        "leg lexical": own["search"],
        "leg vector": own["search"],
        "embed": own["leg vector"],
    }
    assert dict(found["query"].attributes or {})["graph_mem.ref"] == answer.headers["x-request-id"]
    assert dict(found["search"].attributes or {}) == {"graph_mem.mode": "HYBRID", "graph_mem.hits": 0}
    (line,) = [line for line in log.lines if line["event"] == "operation"]
    assert (line["trace_id"], line["span_id"]) == (TRACE, own["query"])


async def test_spans_hold_no_memory_no_question_and_no_token(real: Live, spans: InMemorySpanExporter) -> None:
    token = real.token(await real.member(role=Role.OWNER))
    await real.ask(CAPTURE, {"t": "The pangolin budget is 40,000 euros."}, token=token)
    await real.ask(SEARCH, {"q": "pangolin budget"}, token=token)
    await real.ask("query Broken { search(input: {text: 7}) { pangolin } }", token=token)
    with pytest.raises(ValueError, match="pangolin"), span("work"):
        raise ValueError("The pangolin budget")
    told = " ".join(one.to_json() for one in spans.get_finished_spans())
    assert all(name in told for name in ("Keep", "Ask", "ValueError", "GRAPHQL_VALIDATION_FAILED"))
    assert [word for word in ("pangolin", "40,000", "euros", "input", token[-40:]) if word in told] == []


async def test_only_a_fault_of_ours_marks_a_trace_as_failed(live: Live, spans: InMemorySpanExporter) -> None:
    for query in ("{boom}", "{missing}", "{hello}"):
        await live.ask(query)
    assert SECRET_TEXT not in " ".join(one.to_json() for one in spans.get_finished_spans())
    states = [one.status.status_code.name for one in spans.get_finished_spans() if one.name == "query"]
    assert states == ["ERROR", "UNSET", "UNSET"]
