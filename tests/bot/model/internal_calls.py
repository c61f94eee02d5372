"""The internal calls that tests make, and what the server saw of them."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from bot.model.openai_client import ModelClient
from bot.model.structured import StructuredModel
from memory.text.internal_model import AnswerShape
from tests.servers.model_api import ChatRequest, Dialect, ModelApiServer, Scripted


class State(BaseModel):
    """What is known of the conversation."""

    first_name: str = "unknown"
    goals: list[str] = []


class Facts(BaseModel):
    facts: list[str]


class Amounts(BaseModel):
    amounts: dict[str, int]


SHAPE = AnswerShape.of({"state": State, "facts": Facts})
LOOSE = AnswerShape.of({"state": State, "amounts": Amounts})
PARTS: dict[str, object] = {
    "state": {"first_name": "Ann", "goals": ["tea"]},
    "facts": {"facts": ["Likes tea"]},
}
ANSWER = json.dumps(PARTS)
Call = Callable[[StructuredModel], Awaitable[object]]
TASK, CONTENT = "Bring the memory up to date.", "Ann: I like tea."
SCHEMALESS = Dialect(response_formats=frozenset({"json_object"}))
UNAWARE = Dialect(unsupported=frozenset({"response_format", "text"}))
EACH_API = pytest.mark.parametrize("internal", ["chat", "responses"], indirect=True)


async def fill(internal: StructuredModel, shape: AnswerShape = SHAPE) -> dict[str, object]:
    return await internal.fill(TASK, CONTENT, shape)


async def write(internal: StructuredModel) -> str:
    return await internal.write(TASK, CONTENT, 300)


@dataclass
class Internal:
    """Makes internal calls; the server has what was sent, and answers as the script says."""

    client: ModelClient
    server: ModelApiServer
    script: Scripted

    def model(self, timeout_s: float = 60) -> StructuredModel:
        return StructuredModel(self.client, "gpt-test", timeout_s=timeout_s)

    def __post_init__(self) -> None:
        self._model = self.model()

    async def fill(self, shape: AnswerShape = SHAPE) -> dict[str, object]:
        return await fill(self._model, shape)

    async def write(self) -> str:
        return await write(self._model)

    @property
    def chats(self) -> Sequence[ChatRequest]:
        return self.server.log.chats

    @property
    def modes(self) -> list[str]:
        """Return the format of each accepted request, with a + if the prompt held the schema."""
        return [
            chat.response_format + ("+" if "JSON schema" in chat.messages[0].content else "")
            for chat in self.chats
        ]

    def sent(self, name: str) -> list[object]:
        return [chat.raw.get(name) for chat in self.chats]
