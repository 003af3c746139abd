"""One OpenAI-compatible endpoint: the transport under the embedder, the claim extractor and the judge."""

from dataclasses import dataclass
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from graph_mem.errors import InvalidInput, ServiceUnavailable

Answer = TypeVar("Answer", bound=BaseModel)

REFUSALS = frozenset({400, 413, 422})
"""Answers that are about this input, not about the endpoint."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where an OpenAI-compatible API answers and how to be let in. `url` ends before `/embeddings`."""

    url: str
    key: str | None = None
    timeout_s: float = 30.0

    def client(self, transport: httpx.BaseTransport | None = None) -> httpx.Client:
        """A client of this endpoint; whoever asks for it closes it."""
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx.Client(
            base_url=self.url.rstrip("/") + "/", headers=headers, timeout=self.timeout_s, transport=transport
        )


def post(client: httpx.Client, path: str, *, body: BaseModel, answer: type[Answer], timeout_s: float) -> Answer:
    """What the endpoint answers to `body`, validated.

    Errors: InvalidInput when it refuses this input; ServiceUnavailable for all else.
    """
    try:
        response = client.post(
            path,
            content=body.model_dump_json(exclude_none=True),
            headers={"content-type": "application/json"},
            timeout=timeout_s,
        )
    except httpx.TimeoutException as error:
        raise ServiceUnavailable(f"The model endpoint gave no answer within {timeout_s} s.") from error
    except httpx.HTTPError as error:
        raise ServiceUnavailable(f"The model endpoint cannot be reached: {error}.") from error
    if response.status_code in REFUSALS:
        raise InvalidInput(f"The model endpoint refused the text: status {response.status_code}.")
    if response.is_error:
        raise ServiceUnavailable(f"The model endpoint answered with status {response.status_code}, expected 200.")
    return _parsed(response.content, answer)


def _parsed(content: bytes, answer: type[Answer]) -> Answer:
    try:
        return answer.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise ServiceUnavailable(
            f"The model endpoint's answer is not as expected at {where}: {first['msg']}."
        ) from error
