"""Embeddings from any OpenAI-compatible endpoint."""

import httpx
import numpy as np
from pydantic import BaseModel

from graph_mem.core.vectors import Vectors
from graph_mem.errors import EmbedderUnavailable, ServiceUnavailable
from graph_mem.models.encoder import Kind, normalized, prompted
from graph_mem.models.endpoint import Endpoint, post
from graph_mem.models.profile import ModelProfile

TEXTS_PER_REQUEST = 64


class _Request(BaseModel):
    model: str
    input: list[str]
    encoding_format: str = "float"


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Response(BaseModel):
    data: list[_Row]


class RemoteEncoder:
    """A model behind `/embeddings`. A query waits at most `query_timeout_s`, a batch of passages the endpoint's own."""

    def __init__(
        self, *, profile: ModelProfile, endpoint: Endpoint, client: httpx.Client, query_timeout_s: float = 1.0
    ) -> None:
        self._profile = profile
        self._client = client
        self._timeouts: dict[Kind, float] = {"query": query_timeout_s, "passage": endpoint.timeout_s}

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    def encode(self, texts: list[str], *, kind: Kind) -> Vectors:
        asked = prompted(texts, kind=kind, profile=self._profile)
        parts = [
            self._request(asked[start : start + TEXTS_PER_REQUEST], kind=kind)
            for start in range(0, len(asked), TEXTS_PER_REQUEST)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self._profile.dimension), np.float32)

    def close(self) -> None:
        self._client.close()

    def _request(self, texts: list[str], *, kind: Kind) -> Vectors:
        body = _Request(model=self._profile.name, input=texts)
        try:
            answer = post(self._client, "embeddings", body=body, answer=_Response, timeout_s=self._timeouts[kind])
        except ServiceUnavailable as error:
            raise EmbedderUnavailable(error.message) from error
        rows = sorted(answer.data, key=lambda row: row.index)
        widths = {len(row.embedding) for row in rows}
        if [row.index for row in rows] != list(range(len(texts))) or len(widths) != 1:
            raise EmbedderUnavailable(
                f"The endpoint gave {len(rows)} vectors of {len(widths)} sizes for {len(texts)} texts."
            )
        return normalized(np.array([row.embedding for row in rows], dtype=np.float32))
