"""Embeddings from an OpenAI-compatible endpoint, over a real HTTP server."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graph_mem.errors import DimensionMismatch, EmbedderUnavailable, InvalidInput
from graph_mem.models.embedder import EmbedderState
from graph_mem.models.endpoint import Endpoint
from graph_mem.models.profile import ModelProfile
from graph_mem.models.remote import RemoteEncoder
from tests.encoders import embedder_around
from tests.models.conftest import eventually
from tests.models.server import FakeApi, serve

PROFILE = ModelProfile(name="embed-1", dimension=4, query_prompt="q: ")


def vectors_of(body: dict[str, Any]) -> object:
    rows = [{"index": n, "embedding": [len(text), 2, 0, 0]} for n, text in enumerate(body["input"])]
    return {"data": rows[::-1], "model": body["model"], "usage": {"total_tokens": 1}}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serve(FakeApi(vectors_of)) as api:
        yield api


@pytest.fixture
def encoder(api: FakeApi) -> Iterator[RemoteEncoder]:
    endpoint = Endpoint(url=api.url, key="secret")
    encoder = RemoteEncoder(profile=PROFILE, endpoint=endpoint, client=endpoint.client(), query_timeout_s=0.2)
    yield encoder
    encoder.close()


def test_texts_are_sent_prompted_and_answered_in_order(encoder: RemoteEncoder, api: FakeApi) -> None:
    vectors = encoder.encode(["a", "bbb"], kind="query")
    (asked,) = api.asked
    assert asked.path == "/v1/embeddings"
    assert asked.authorization == "Bearer secret"
    assert asked.body == {"model": "embed-1", "input": ["q: a", "q: bbb"], "encoding_format": "float"}
    assert np.allclose(vectors[0] / vectors[0][1], [2, 1, 0, 0])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


def test_many_texts_go_in_several_requests(encoder: RemoteEncoder, api: FakeApi) -> None:
    assert encoder.encode([f"text {n}" for n in range(130)], kind="passage").shape == (130, 4)
    assert [len(asked.body["input"]) for asked in api.asked] == [64, 64, 2]
    assert encoder.encode([], kind="passage").shape == (0, 4)


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_an_endpoint_that_fails_is_unavailable(encoder: RemoteEncoder, api: FakeApi, status: int) -> None:
    api.status = status
    with pytest.raises(EmbedderUnavailable, match=f"status {status}, expected 200"):
        encoder.encode(["text"], kind="query")


def test_a_refused_text_is_the_texts_fault(encoder: RemoteEncoder, api: FakeApi) -> None:
    api.status = 400
    with pytest.raises(InvalidInput, match="refused the text: status 400"):
        encoder.encode(["text"], kind="passage")


def test_nobody_listening_is_unavailable() -> None:
    with serve(FakeApi(vectors_of)) as api:
        endpoint = Endpoint(url=api.url)
    encoder = RemoteEncoder(profile=PROFILE, endpoint=endpoint, client=endpoint.client())
    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        encoder.encode(["text"], kind="query")
    encoder.close()


def test_a_query_does_not_wait_for_a_slow_endpoint_but_a_passage_does(encoder: RemoteEncoder, api: FakeApi) -> None:
    api.delay_s = 0.3
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match=r"no answer within 0\.2 s"):
        encoder.encode(["text"], kind="query")
    assert time.monotonic() - started < 0.29
    assert encoder.encode(["text"], kind="passage").shape == (1, 4)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"<html>", "not as expected at the body"),
        ({"data": [{"index": 0}]}, r"not as expected at data\.0\.embedding"),
        ({"data": []}, "0 vectors"),
        ({"data": [{"index": 1, "embedding": [1, 2, 3, 4]}]}, "1 vectors"),
    ],
)
def test_an_answer_of_another_shape_is_unavailable(
    encoder: RemoteEncoder, api: FakeApi, answer: object, words: str
) -> None:
    api.reply = lambda body: answer
    with pytest.raises(EmbedderUnavailable, match=words):
        encoder.encode(["text"], kind="query")


async def test_the_embedder_over_a_dying_endpoint_degrades_and_heals(encoder: RemoteEncoder, api: FakeApi) -> None:
    embedder = await embedder_around(encoder)
    assert (await embedder.query("text")).shape == (4,)
    api.status = 503
    with pytest.raises(EmbedderUnavailable):
        await embedder.query("other")
    api.status = 200
    await eventually(lambda: embedder.status.state is EmbedderState.READY)
    api.status = 400
    with pytest.raises(EmbedderUnavailable, match="refused the text"):
        await embedder.passages(["strange text"])
    assert embedder.status.state is EmbedderState.READY, "one refused text says nothing about the model"
    api.status, api.reply = 200, lambda body: {"data": [{"index": 0, "embedding": [1, 2, 3]}]}
    with pytest.raises(DimensionMismatch, match="dimension 3, expected 4"):
        await embedder.query("third")
    await embedder.aclose()
