"""The internal calls that tests make, and what the server saw of them."""

import json
from collections.abc import Awaitable, Callable

from pydantic import BaseModel

from bot.model.structured import StructuredModel
from memory.text.internal_model import AnswerShape
from tests.servers.model_api import Dialect, ModelApiServer


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
UNAWARE = Dialect(unsupported=frozenset({"response_format"}))


async def fill(internal: StructuredModel, shape: AnswerShape = SHAPE) -> dict[str, object]:
    return await internal.fill(TASK, CONTENT, shape)


async def write(internal: StructuredModel) -> str:
    return await internal.write(TASK, CONTENT, 300)


def modes(server: ModelApiServer) -> list[str]:
    """Return the format of each accepted request, with a + if the prompt held the schema."""
    return [
        chat.response_format + ("+" if "JSON schema" in chat.messages[0].content else "")
        for chat in server.log.chats
    ]


def sent(server: ModelApiServer, name: str) -> list[object]:
    return [chat.raw.get(name) for chat in server.log.chats]
