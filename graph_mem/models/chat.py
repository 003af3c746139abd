"""Asking a chat model of an OpenAI-compatible endpoint for one validated JSON object."""

import asyncio
from dataclasses import dataclass
from typing import Literal, TypeVar

import httpx
from pydantic import BaseModel, Field, ValidationError

from graph_mem.errors import ServiceUnavailable
from graph_mem.models.endpoint import post

Answer = TypeVar("Answer", bound=BaseModel)


class _Message(BaseModel):
    role: Literal["system", "user"]
    content: str


class _Format(BaseModel):
    type: Literal["json_object"] = "json_object"


class _Request(BaseModel):
    model: str
    messages: list[_Message]
    temperature: float = 0.0
    response_format: _Format = Field(default_factory=_Format)


class _Reply(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Reply


class _Response(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class ChatModel:
    """A model behind `/chat/completions`. Whoever made `client` closes it."""

    name: str
    client: httpx.Client
    timeout_s: float = 60.0

    async def ask(self, instruction: str, material: str, *, answer: type[Answer]) -> Answer:
        """The model's answer to `instruction` about `material`, which it is told is evidence, not instruction.

        Errors: ServiceUnavailable when the endpoint fails or answers in another form; InvalidInput when it refuses.
        """
        return await asyncio.to_thread(self._ask, instruction, material, answer)

    def _ask(self, instruction: str, material: str, answer: type[Answer]) -> Answer:
        messages = [_Message(role="system", content=instruction), _Message(role="user", content=material)]
        body = _Request(model=self.name, messages=messages)
        reply = post(self.client, "chat/completions", body=body, answer=_Response, timeout_s=self.timeout_s)
        content = reply.choices[0].message.content
        try:
            return answer.model_validate_json(content[content.find("{") : content.rfind("}") + 1])
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the whole"
            raise ServiceUnavailable(f"{self.name} answered in another form at {where}: {first['msg']}.") from error
