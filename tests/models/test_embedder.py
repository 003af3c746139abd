"""The embedder degrades, heals and keeps queries quick, whatever the model behind it does."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib import import_module

import numpy as np
import pytest

from graph_mem.errors import DimensionMismatch, EmbedderUnavailable, SetupError
from graph_mem.models.embedder import Embedder, EmbedderLimits, EmbedderState
from graph_mem.models.encoder import Encoder
from tests.encoders import QUICK, Fault, FaultyEncoder, HashEncoder, embedder_around, profile
from tests.models.conftest import eventually


@pytest.fixture
def faulty() -> FaultyEncoder:
    return FaultyEncoder()


@pytest.fixture
async def embedder(faulty: FaultyEncoder) -> AsyncIterator[Embedder]:
    embedder = await embedder_around(faulty)
    faulty.calls.clear()
    yield embedder
    faulty.fault = Fault.NONE
    await embedder.aclose()


def queries(encoder: FaultyEncoder) -> int:
    return sum(kind == "query" for kind, _ in encoder.calls)


async def test_query_and_passage_of_one_text_meet(embedder: Embedder) -> None:
    passages = await embedder.passages(["red apples", "blue ships"])
    query = await embedder.query("red apples")
    assert passages.shape == (2, 384)
    assert np.allclose(passages @ query, [1, 0], atol=0.01)


async def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert (await embedder.passages([])).shape == (0, 384)


async def test_rows_stay_in_order_over_many_batches(embedder: Embedder) -> None:
    texts = [f"word{n}" for n in range(100)]
    together = await embedder.passages(texts)
    assert np.array_equal(together, HashEncoder().encode(texts, kind="passage"))


async def test_a_repeated_query_costs_no_second_call(embedder: Embedder, faulty: FaultyEncoder) -> None:
    first = await embedder.query("once")
    second = await embedder.query("once")
    assert first is second
    assert queries(faulty) == 1


async def test_the_query_cache_is_bounded(faulty: FaultyEncoder) -> None:
    embedder = await embedder_around(faulty, limits=EmbedderLimits(cached_queries=2))
    faulty.calls.clear()
    for text in ("a", "b", "a", "c", "a", "b"):  # c pushes b out, a was used since
        await embedder.query(text)
    await embedder.aclose()
    assert [texts for _, texts in faulty.calls] == [("a",), ("b",), ("c",), ("b",)]


async def test_a_huge_query_is_cut_before_it_costs_anything(embedder: Embedder, faulty: FaultyEncoder) -> None:
    await embedder.query("word " * 200_000)
    ((_, (text,)),) = faulty.calls
    assert len(text) == 512 * 16


async def test_concurrent_passages_share_calls(embedder: Embedder, faulty: FaultyEncoder) -> None:
    faulty.fault, faulty.slow_s = Fault.SLOW, 0.02
    await asyncio.gather(*(embedder.passages([f"text {n}"]) for n in range(33)))
    assert len(faulty.calls) <= 4
    assert max(len(texts) for _, texts in faulty.calls) == 16


async def test_a_long_text_leaves_room_for_a_short_one(embedder: Embedder, faulty: FaultyEncoder) -> None:
    faulty.fault, faulty.slow_s = Fault.SLOW, 0.02
    long = asyncio.create_task(embedder.passages([f"chunk {n}" for n in range(320)]))
    await asyncio.sleep(0.03)
    await embedder.passages(["short"])
    assert not long.done()
    await long


async def test_one_bad_text_fails_only_its_own_request(embedder: Embedder, faulty: FaultyEncoder) -> None:
    faulty.poison = "poison"
    faulty.fault, faulty.slow_s = Fault.SLOW, 0.01
    asked = [embedder.passages([text]) for text in ("first", "good", "poison", "fine")]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(answer, EmbedderUnavailable) for answer in answers] == [False, False, True, False]


async def test_passages_do_not_delay_a_query(faulty: FaultyEncoder) -> None:
    embedder = await embedder_around(faulty, limits=EmbedderLimits(query_timeout_s=5))
    release = threading.Event()
    inner = HashEncoder()

    class Blocking(HashEncoder):
        def encode(self, texts, *, kind):
            if kind == "passage":
                release.wait(5)
            return inner.encode(texts, kind=kind)

    faulty.inner = Blocking()
    bulk = asyncio.create_task(embedder.passages(["slow"] * 64))
    await asyncio.sleep(0.02)
    await asyncio.wait_for(embedder.query("quick"), 2)
    assert not bulk.done()
    release.set()
    await bulk
    await embedder.aclose()


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault.RAISES, EmbedderUnavailable, "RuntimeError: the model is broken"),
        (Fault.SLOW, EmbedderUnavailable, "no answer within 0.1 s"),
        (Fault.WRONG_DIMENSION, DimensionMismatch, "dimension 383, expected 384"),
        (Fault.NOT_FINITE, EmbedderUnavailable, "not finite"),
        (Fault.ZERO, EmbedderUnavailable, "zeros"),
        (Fault.TOO_FEW, EmbedderUnavailable, "0 vectors for 1 texts"),
    ],
)
async def test_every_fault_is_typed_costs_one_call_and_heals(
    embedder: Embedder, faulty: FaultyEncoder, fault: Fault, error: type[Exception], words: str
) -> None:
    await embedder.query("known before")
    faulty.fault = fault
    with pytest.raises(error, match=words):
        await embedder.query("first to fail")
    assert embedder.status.state is EmbedderState.DEGRADED
    assert embedder.status.reason is not None
    started = time.monotonic()
    for n in range(50):
        with pytest.raises(error):
            await embedder.query(f"refused {n}")
    assert time.monotonic() - started < 0.05, "an open circuit answers at once"
    await embedder.query("known before")
    assert not any("refused" in text for _, texts in faulty.calls for text in texts)
    faulty.fault = Fault.NONE
    await eventually(lambda: embedder.status.state is EmbedderState.READY)
    await embedder.query("first to fail")
    assert embedder.status.reason is None


async def test_it_stays_off_while_the_fault_lasts(embedder: Embedder, faulty: FaultyEncoder) -> None:
    faulty.fault = Fault.RAISES
    with pytest.raises(EmbedderUnavailable):
        await embedder.query("first")
    asked = len(faulty.calls)
    await eventually(lambda: len(faulty.calls) > asked + 2)
    assert embedder.status.state is EmbedderState.DEGRADED


async def test_a_failed_passage_shows_in_the_status_and_a_retry_needs_no_waiting(
    embedder: Embedder, faulty: FaultyEncoder
) -> None:
    faulty.fault = Fault.RAISES
    with pytest.raises(EmbedderUnavailable):
        await embedder.passages(["text"])
    assert embedder.status.state is EmbedderState.DEGRADED
    faulty.fault = Fault.NONE
    assert (await embedder.passages(["text"])).shape == (1, 384)
    assert embedder.status.state is EmbedderState.READY


async def test_while_it_loads_queries_are_refused_and_passages_wait() -> None:
    release = threading.Event()

    def load() -> Encoder:
        release.wait(5)
        return HashEncoder()

    embedder = Embedder(load, profile=profile(), limits=QUICK)
    embedder.start()
    passages = asyncio.create_task(embedder.passages(["text"]))
    await asyncio.sleep(0.01)
    assert embedder.status.state is EmbedderState.LOADING
    with pytest.raises(EmbedderUnavailable, match="is being loaded"):
        await embedder.query("too early")
    assert not passages.done()
    release.set()
    assert (await passages).shape == (1, 384)
    assert (await embedder.settled()).state is EmbedderState.READY
    await embedder.aclose()


async def test_a_model_that_cannot_be_loaded_is_tried_again() -> None:
    attempts: list[int] = []

    def load() -> Encoder:
        attempts.append(1)
        if len(attempts) < 3:
            raise SetupError("no such folder")
        return HashEncoder()

    embedder = Embedder(load, profile=profile(), limits=QUICK)
    embedder.start()
    status = await embedder.settled()
    assert status.state is EmbedderState.FAILED
    assert "no such folder" in (status.reason or "")
    for call in (embedder.query("text"), embedder.passages(["text"])):
        with pytest.raises(EmbedderUnavailable, match="no such folder"):
            await call
    await eventually(lambda: embedder.status.state is EmbedderState.READY)
    await embedder.aclose()


async def test_a_model_of_another_dimension_is_refused_for_good() -> None:
    embedder = Embedder(lambda: HashEncoder(16), profile=profile(), limits=QUICK)
    embedder.start()
    status = await embedder.settled()
    assert status.state is EmbedderState.FAILED
    with pytest.raises(DimensionMismatch, match="dimension 16, expected 384"):
        await embedder.query("text")
    await embedder.aclose()


async def test_a_model_that_does_not_answer_at_first_heals(faulty: FaultyEncoder) -> None:
    faulty.fault = Fault.RAISES
    embedder = await embedder_around(faulty)
    assert embedder.status.state is EmbedderState.DEGRADED
    faulty.fault = Fault.NONE
    await eventually(lambda: embedder.status.state is EmbedderState.READY)
    await embedder.aclose()


async def test_a_cancelled_query_leaves_the_rest_alone(embedder: Embedder, faulty: FaultyEncoder) -> None:
    faulty.fault, faulty.slow_s = Fault.SLOW, 0.03
    running = asyncio.create_task(embedder.query("running"))
    await asyncio.sleep(0.005)
    waiting = asyncio.create_task(embedder.query("cancelled"))
    await asyncio.sleep(0.005)
    waiting.cancel()
    await running
    faulty.fault = Fault.NONE
    await embedder.query("afterwards")
    assert ("query", ("cancelled",)) not in faulty.calls
    assert embedder.status.state is EmbedderState.READY


async def test_closing_finishes_what_runs_and_refuses_the_rest(faulty: FaultyEncoder) -> None:
    embedder = await embedder_around(faulty)
    faulty.fault, faulty.slow_s = Fault.SLOW, 0.05
    running = asyncio.create_task(embedder.passages(["running"]))
    await asyncio.sleep(0.01)
    waiting = asyncio.create_task(embedder.passages(["waiting"]))
    await asyncio.sleep(0.01)
    await embedder.aclose()
    assert (await running).shape == (1, 384)
    with pytest.raises(EmbedderUnavailable):
        await waiting
    with pytest.raises(EmbedderUnavailable, match="shut down"):
        await embedder.query("late")
    assert faulty.closed
    assert embedder.status.state is EmbedderState.CLOSED


async def test_closing_does_not_wait_for_a_load() -> None:
    given_up = threading.Event()

    def load() -> Encoder:
        try:
            while True:  # as an import of torch does, in many small steps
                with suppress(ImportError):
                    import_module("no_such_module")
        finally:
            given_up.set()

    embedder = Embedder(load, profile=profile(), limits=QUICK)
    embedder.start()
    await asyncio.sleep(0.02)
    await embedder.aclose()
    assert await asyncio.to_thread(given_up.wait, 2)
    assert embedder.status.state is EmbedderState.CLOSED


async def test_encoding_does_not_hold_the_event_loop(embedder: Embedder, faulty: FaultyEncoder) -> None:
    faulty.fault, faulty.slow_s = Fault.SLOW, 0.2
    passages = asyncio.create_task(embedder.passages(["slow"]))
    ticks = 0
    while not passages.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 5
