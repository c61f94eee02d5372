"""A turn and a request for learning, with every server and every family of OpenAI's models."""

from dataclasses import replace

import pytest

from bot.model.call import ModelReply, ModelRequest, PromptMessage
from bot.model.chat_model import ChatParameters, OpenAIChatModel
from bot.model.openai_client import ModelClient, open_client
from bot.model.request_forms import Api
from bot.model.structured import StructuredModel
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from tests.bot.model.internal_calls import ANSWER, PARTS, fill
from tests.servers.model_api import ChatRequest, Dialect, ModelApiServer, Reply
from tests.servers.profiles import OPENAI, SERVERS

THOUGHTS = {"none": 0, "minimal": 20, "low": 100, "": 400, "medium": 400, "high": 2000}
"""Tokens of thoughts by effort; the default effort is medium."""
_TOKEN = "hm, "  # four bytes: a token, as the local server counts


QUESTION = (PromptMessage("system", "Be brief."), PromptMessage("user", "add and tell the time"))
OBJECT: dict[str, object] = {"type": "object", "properties": {}}
TOOLS = (ToolDefinition("calculate", "Adds.", OBJECT), ToolDefinition("clock", "Tells.", OBJECT))
CALLS = (ToolCall("call_a", "calculate", "{}"), ToolCall("call_b", "clock", "{}"))
MODELS = (
    *("gpt-6-astra", "gpt-5.6-luna", "gpt-5.5", "gpt-5.4-mini", "gpt-5.2", "gpt-5.1"),
    *("gpt-5-mini", "gpt-4.1-mini"),
)


class TwoTools:
    """A model that thinks, calls both tools before it answers, and fills every schema."""

    async def respond(self, request: ChatRequest) -> Reply:
        thoughts = THOUGHTS.get(request.effort, max(THOUGHTS.values())) * _TOKEN
        if request.response_format != "text":
            return Reply(ANSWER, thoughts=thoughts)
        if request.messages[-1].role == "tool":
            return Reply("Both are done.", thoughts=thoughts)
        return Reply("Let me see.", CALLS, thoughts=thoughts)


async def turn(model: OpenAIChatModel) -> ModelReply:
    """Ask, hand in the results of both calls, and return the answer."""
    first = await model.complete(ModelRequest(QUESTION, TOOLS))
    assert first.tool_calls == CALLS
    said = PromptMessage("assistant", first.text, tool_calls=CALLS, reasoning=first.reasoning)
    results = [PromptMessage("tool", "7", tool_call_id=call.id) for call in CALLS]
    return await model.complete(ModelRequest((*QUESTION, said, *results), TOOLS))


async def answer_and_fill(client: ModelClient, name: str) -> None:
    reply = await turn(OpenAIChatModel(client, name, 10, ChatParameters(reply_tokens=5000)))
    assert reply.text == "Both are done."
    assert await fill(StructuredModel(client, name, 10)) == PARTS


async def answer_twice(dialect: Dialect, name: str, api: Api = "auto") -> set[str]:
    """Check that nothing is refused twice; return the APIs that were used."""
    async with (
        ModelApiServer(TwoTools(), dialect=dialect) as server,
        open_client(server.base_url, "any", 10, api=api) as client,
    ):
        await answer_and_fill(client, name)
        refused = len(server.log.refusals)
        await answer_and_fill(client, name)
    assert len(server.log.refusals) == refused
    return {chat.api for chat in server.log.chats}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("dialect", SERVERS, ids=lambda dialect: dialect.server)
async def test_every_server_answers_a_turn_over_both_apis(dialect: Dialect, api: Api) -> None:
    assert await answer_twice(dialect, "local", api) == {api}


@pytest.mark.parametrize("missing_path", ["", "/v1/responses", "/v1/chat/completions"])
@pytest.mark.parametrize("name", MODELS)
async def test_a_parameter_refused_by_openai_is_learned_once(name: str, missing_path: str) -> None:
    await answer_twice(replace(OPENAI, missing_paths=frozenset({missing_path})), name)
