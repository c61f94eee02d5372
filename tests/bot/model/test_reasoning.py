"""Reasoning models: reasoning may take the tokens of the answer, and the first word comes late."""

from collections.abc import AsyncIterator

import pytest

from bot.model.call import ModelReply, ModelRequest
from bot.model.chat_model import ChatParameters, OpenAIChatModel
from bot.model.model_errors import AnswerIncomplete, ModelError
from bot.model.openai_client import ModelClient, open_client
from bot.model.structured import StructuredModel
from bot.model.wire import Effort
from tests.bot.model.conftest import CLOCK, HELLO, reports_of
from tests.bot.model.internal_calls import ANSWER, PARTS, fill, write
from tests.servers.model_api import (
    ApiError,
    Break,
    ModelApiServer,
    Reply,
    Scripted,
    tool_call,
)

THOUGHTS = "Let me think about that once more. " * 50
LOST = Reply("", finish_reason="length", thoughts=THOUGHTS)
CUT = Reply("Once upon", finish_reason="length", thoughts=THOUGHTS)


@pytest.fixture(params=["chat", "responses"])
async def client(
    server: ModelApiServer, request: pytest.FixtureRequest
) -> AsyncIterator[ModelClient]:
    async with open_client(server.base_url, "any", 10, api=request.param) as client:
        yield client


async def ask(client: ModelClient, effort: Effort | None = None, limit_s: float = 10) -> ModelReply:
    model = OpenAIChatModel(client, "gpt-test", limit_s, ChatParameters(100, effort))
    return await model.complete(ModelRequest(HELLO, (CLOCK,)))


def efforts(server: ModelApiServer) -> list[str]:
    return [chat.effort for chat in server.log.chats]


def token_limits(server: ModelApiServer) -> list[int]:
    return [chat.max_output_tokens for chat in server.log.chats]


@pytest.mark.parametrize("lost", [LOST, CUT, Reply("", finish_reason="stop", thoughts=THOUGHTS)])
async def test_an_answer_lost_to_reasoning_is_asked_for_once_more_with_less_reasoning(
    client: ModelClient, server: ModelApiServer, script: Scripted, lost: Reply
) -> None:
    script.then(lost, "The answer.", "Another.")
    reply = await ask(client)
    assert (reply.text, reply.finish_reason) == ("The answer.", "stop")
    await ask(client)
    assert efforts(server) == ["", "low", ""]
    assert token_limits(server) == [100, 1600, 400]


async def test_the_usage_is_the_sum_of_both_requests(client: ModelClient, script: Scripted) -> None:
    script.then(LOST, "The answer.")
    usage = (await ask(client, "high")).usage
    script.then("The answer.")
    alone = (await ask(client, "high")).usage
    assert usage.prompt_tokens == 2 * alone.prompt_tokens
    assert usage.completion_tokens == alone.completion_tokens + usage.reasoning_tokens
    assert usage.reasoning_tokens > 0


@pytest.mark.parametrize(
    ("first", "then"), [("max", "medium"), ("high", "low"), ("low", "none"), ("none", "none")]
)
async def test_the_lower_effort_depends_on_the_setting(
    client: ModelClient, server: ModelApiServer, script: Scripted, first: Effort, then: Effort
) -> None:
    script.then(LOST, "The answer.")
    await ask(client, first)
    assert efforts(server) == [first, then]


async def test_the_beginning_of_an_answer_is_better_than_none_and_reasoning_is_no_answer(
    client: ModelClient, script: Scripted
) -> None:
    script.then(CUT, LOST, LOST, LOST)
    reports = reports_of(client)
    reply = await ask(client)
    assert (reply.text, reply.finish_reason) == ("Once upon", "length")
    with pytest.raises(AnswerIncomplete):
        await ask(client)
    assert [report.usage.reasoning_tokens > 0 for report in reports] == [True] * 2


@pytest.mark.parametrize("client", ["chat"], indirect=True)
@pytest.mark.parametrize("limit_s", [2, 10])
async def test_the_beginning_is_kept_if_the_second_request_fails_or_takes_too_long(
    client: ModelClient, server: ModelApiServer, script: Scripted, limit_s: float
) -> None:
    script.then(CUT)
    trouble = Break.HANG if limit_s == 2 else ApiError(401, "Incorrect API key")
    server.faults.add(trouble, times=None, when=lambda ask: getattr(ask, "effort", "") == "low")
    reports = reports_of(client)
    reply = await ask(client, limit_s=limit_s)
    assert (reply.text, reply.finish_reason) == ("Once upon", "length")
    script.then(LOST)
    with pytest.raises(ModelError) as caught:
        await ask(client, limit_s=limit_s)
    assert [report.error for report in reports] == [None, caught.value]
    assert reports[1].usage.reasoning_tokens > 0


@pytest.mark.parametrize(
    "said",
    [
        Reply("Once upon a time there was a", finish_reason="length"),
        Reply("", (tool_call("clock"),), thoughts=THOUGHTS),
        Reply(""),
    ],
    ids=["a long answer", "a call", "nothing"],
)
async def test_an_answer_not_lost_to_reasoning_is_not_asked_for_again(
    client: ModelClient, server: ModelApiServer, script: Scripted, said: Reply
) -> None:
    script.then(said)
    assert (await ask(client)).text == said.text
    assert len(server.log.chats) == 1


async def test_a_model_with_high_effort_may_be_silent_at_first(
    server: ModelApiServer, script: Scripted
) -> None:
    script.then(Reply("At last.", thinking_s=0.3), Reply("At last.", thinking_s=0.3))
    async with open_client(server.base_url, "any", 0.1, api="responses") as client:
        assert (await ask(client, "high")).text == "At last."
    assert len(server.log.chats) == 1


# Internal calls


async def test_an_internal_call_lost_to_reasoning_is_made_once_more_with_less_reasoning(
    client: ModelClient, server: ModelApiServer, script: Scripted
) -> None:
    reports = reports_of(client)
    internal = StructuredModel(client, "gpt-test", 10, "medium")
    script.then(LOST, ANSWER, LOST, "Tea.")
    assert await fill(internal) == PARTS
    assert await write(internal) == "Tea."
    assert efforts(server) == ["medium", "low", "medium", "low"]
    assert token_limits(server) == [0, 0, 300, 0]
    assert len(reports) == 2
    for usage in (report.usage for report in reports):
        assert 0 < usage.reasoning_tokens < usage.completion_tokens
