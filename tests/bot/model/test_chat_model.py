"""Requests that every server accepts; answers are whole or an error."""

import asyncio
import json
import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from bot.model.call import ModelReply, ModelRequest, PromptMessage, Usage, watching
from bot.model.chat_model import ChatParameters, OpenAIChatModel
from bot.model.model_errors import (
    AnswerIncomplete,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)
from bot.model.openai_client import ModelClient, open_client
from bot.model.request_forms import Api
from bot.model.wire import Effort
from memory.behaviors.steps import ToolCall
from memory.message import Picture
from tests.bot.model.conftest import CALLS, CLOCK, HELLO, TEXT, reports_of
from tests.servers.model_api import (
    ApiError,
    ApiRequest,
    Break,
    ChatRequest,
    ModelApiServer,
    Quirk,
    Reply,
    Scripted,
    StreamBreak,
    content_filtered,
    rate_limited,
)
from tests.servers.model_api.faults import Fault
from tests.valkey import free_port

QUIRKS: tuple[tuple[Quirk, ...], ...] = (
    *((quirk,) for quirk in Quirk),
    (Quirk.COMMENTS, Quirk.EMPTY_FIRST_CHUNK, Quirk.NO_INDEX),
    tuple(quirk for quirk in Quirk if quirk is not Quirk.SAME_INDEX),
)


@pytest.fixture(params=["chat", "responses"])
async def either(
    server: ModelApiServer, request: pytest.FixtureRequest
) -> AsyncIterator[OpenAIChatModel]:
    """Give a model over each of the two APIs, for rules that hold for both."""
    async with open_client(server.base_url, "any", timeout_s=60, api=request.param) as client:
        yield OpenAIChatModel(client, "gpt-test", timeout_s=60)


async def ask(model: OpenAIChatModel) -> ModelReply:
    return await model.complete(ModelRequest(HELLO))


# What is sent


async def test_a_plain_request_has_no_optional_field_except_usage(
    model: OpenAIChatModel, server: ModelApiServer
) -> None:
    await ask(model)
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    assert server.log.chats[0].raw == {"model": "gpt-test", "messages": said, **options}


async def test_tool_choice_is_sent_only_with_tools_and_only_to_forbid_them(
    model: OpenAIChatModel, server: ModelApiServer
) -> None:
    await model.complete(ModelRequest(HELLO, tool_choice="none"))
    await model.complete(ModelRequest(HELLO, (CLOCK,)))
    await model.complete(ModelRequest(HELLO, (CLOCK,), tool_choice="none"))
    assert [chat.raw.get("tool_choice") for chat in server.log.chats] == [None, None, "none"]
    assert [chat.tools for chat in server.log.chats] == [(), (CLOCK,), (CLOCK,)]


async def test_steps_are_calls_and_results(model: OpenAIChatModel, server: ModelApiServer) -> None:
    steps = (
        PromptMessage("assistant", "Let me look.", tool_calls=(ToolCall("id-1", "clock", "{}"),)),
        PromptMessage("tool", "noon", tool_call_id="id-1"),
    )
    await model.complete(ModelRequest((*HELLO, *steps), (CLOCK,)))
    assert server.log.chats[0].messages == (*HELLO, *steps)


@pytest.mark.parametrize("name", ["", "functions.clock", "très long" * 20])
async def test_a_tool_name_that_a_model_made_up_is_sent_in_a_form_that_servers_accept(
    either: OpenAIChatModel, server: ModelApiServer, name: str
) -> None:
    """api.openai.com refuses each prompt that contains a name with other characters."""
    steps = (
        PromptMessage("assistant", "", tool_calls=(ToolCall("id-1", name, "{}"),)),
        PromptMessage("tool", "Error: there is no such tool", tool_call_id="id-1"),
    )
    await either.complete(ModelRequest((*HELLO, *steps), (CLOCK,)))
    assert server.log.refusals == []
    sent = server.log.chats[0].messages[2].tool_calls[0].name
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", sent)


# What comes back


@pytest.mark.parametrize("quirks", QUIRKS, ids=str)
async def test_a_server_that_leaves_fields_out_is_understood(
    model: OpenAIChatModel, script: Scripted, server: ModelApiServer, quirks: tuple[Quirk, ...]
) -> None:
    for quirk in quirks:
        server.faults.add(quirk, times=None)
    assert (await ask(model)).text == TEXT
    script.then(Reply("Let me see.", CALLS))
    reply = await model.complete(ModelRequest(HELLO, (CLOCK,)))
    assert (reply.text, reply.tool_calls) == ("Let me see.", CALLS)
    assert len(server.log.calls) == 2


# Streams that break


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        *((broken, AnswerIncomplete) for broken in StreamBreak if broken is not StreamBreak.STALL),
        (ApiError(503, "Overloaded", headers={"retry-after": "0.01"}), ModelUnavailable),
        (rate_limited(0.01), ModelUnavailable),
    ],
    ids=str,
)
async def test_after_a_temporary_failure_or_half_an_answer_the_model_is_asked_again_once(
    either: OpenAIChatModel,
    script: Scripted,
    server: ModelApiServer,
    trouble: Fault,
    error: type[ModelError],
) -> None:
    """Nothing of the first answer is returned, not even half of a call."""
    half = [Reply("This will not be heard to its end.", CALLS)] * isinstance(trouble, StreamBreak)
    script.then(*half, "The whole answer.")
    server.faults.add(trouble)
    reply = await either.complete(ModelRequest(HELLO, (CLOCK,)))
    assert (reply.text, reply.tool_calls) == ("The whole answer.", ())
    server.faults.add(trouble, times=None)
    with pytest.raises(error):
        await ask(either)
    assert len(server.log.calls) == 2 + 2


def streamed(*events: bytes) -> OpenAIChatModel:
    """Return a model that answers with these events; then the connection breaks."""

    async def body() -> AsyncIterator[bytes]:
        for event in events:
            yield b"data: " + event + b"\n\n"
        raise httpx2.ReadError("gone")

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return OpenAIChatModel(ModelClient(transport, "http://test", "any", 10), "gpt-test", 60)


def chunk(content: str = "", finish_reason: str | None = None) -> bytes:
    delta = {"content": content}
    return json.dumps({"choices": [{"delta": delta, "finish_reason": finish_reason}]}).encode()


async def test_an_answer_is_whole_if_the_connection_breaks_after_the_finish_reason() -> None:
    reply = await ask(streamed(chunk("All of "), chunk("it\ud83d."), chunk(finish_reason="stop")))
    assert reply.text == "All of it\ufffd.", "half an emoji is replaced"


@pytest.mark.parametrize("nonsense", [b"[1, 2]", b'"text"', b"\xff\xfe", b'{"choices": [1]}'])
async def test_an_unreadable_event_counts_as_an_answer_that_broke_off(nonsense: bytes) -> None:
    with pytest.raises(AnswerIncomplete):
        await ask(streamed(chunk("Half of "), nonsense))


# Servers that give no answer


async def test_a_page_instead_of_a_stream_is_not_a_model_and_not_asked_twice(
    model: OpenAIChatModel, server: ModelApiServer
) -> None:
    server.faults.add(Break.HTML, times=None)
    with pytest.raises(NotAModel, match="text/html instead of a stream"):
        await ask(model)
    assert len(server.log.calls) == 1


@pytest.mark.parametrize("fault", [Break.HANG, StreamBreak.STALL, rate_limited(100)], ids=str)
async def test_silence_and_a_long_wait_that_a_server_asks_for_end_at_the_time_limit(
    client: ModelClient, server: ModelApiServer, fault: Fault
) -> None:
    server.faults.add(fault, times=None)
    with pytest.raises(ModelUnavailable):
        await ask(OpenAIChatModel(client, "gpt-test", timeout_s=0.2))
    assert len(server.log.calls) == 1


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (ApiError(400, "Invalid value", param="messages"), ModelRefused),
        (ApiError(401, "Incorrect API key"), ModelRefused),
        (ApiError(402, "Insufficient credits"), ModelRefused),
        (ApiError(404, "The model does not exist", code="model_not_found"), ModelRefused),
        (ApiError(400, "Too much.", code="context_length_exceeded"), ContextTooLong),
        (ApiError(400, "This model's maximum context length is 9 tokens."), ContextTooLong),
        (ApiError(400, "Too much.", kind="exceed_context_size_error"), ContextTooLong),
        (content_filtered(), ContentRefused),
        (ApiError(400, "Invalid prompt: your prompt was flagged.", code="x"), ContentRefused),
        (ApiError(403, "The model requires moderation; your input was flagged."), ContentRefused),
    ],
    ids=lambda value: value.message if isinstance(value, ApiError) else "",
)
async def test_a_refused_request_is_not_repeated_and_the_error_quotes_nothing(
    model: OpenAIChatModel, server: ModelApiServer, refusal: ApiError, expected: type[ModelError]
) -> None:
    server.faults.add(refusal, times=None)
    with pytest.raises(ModelError) as caught:
        await ask(model)
    assert type(caught.value) is expected
    assert refusal.message not in str(caught.value)
    assert caught.value.status == refusal.status
    assert len(server.log.calls) == 1


async def test_an_answer_that_a_filter_ends_is_refused_and_not_asked_for_again(
    either: OpenAIChatModel, script: Scripted, server: ModelApiServer
) -> None:
    script.then(Reply("Half of an answ", finish_reason="content_filter"))
    with pytest.raises(ContentRefused) as caught:
        await ask(either)
    assert caught.value.code == "content_filter"
    assert len(server.log.chats) == 1


async def test_a_filters_error_inside_a_stream_is_a_refusal() -> None:
    with pytest.raises(ContentRefused):
        await ask(streamed(json.dumps(content_filtered().as_json()).encode()))


# Parameters that are refused


async def test_a_parameter_is_left_out_also_if_only_the_error_text_names_it(
    model: OpenAIChatModel, server: ModelApiServer
) -> None:
    def has_options(request: ApiRequest) -> bool:
        return "stream_options" in request.raw

    refusal = ApiError(422, "body.stream_options: Extra inputs are not permitted")
    server.faults.add(refusal, times=None, when=has_options)
    assert (await ask(model)).text == TEXT


async def test_a_stopped_answer_is_estimated(client: ModelClient, server: ModelApiServer) -> None:
    server.faults.add(StreamBreak.STALL)
    reports = reports_of(client)
    model = OpenAIChatModel(client, "gpt-test", timeout_s=60)
    seen = asyncio.Event()
    with watching(lambda so_far: seen.set() if so_far().text else None):
        asking = asyncio.create_task(ask(model))
    await asyncio.wait_for(seen.wait(), 5)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    [report] = reports
    assert report.outcome == "CancelledError"
    assert 10 < report.usage.prompt_tokens < 100
    assert 0 < report.usage.completion_tokens < len(TEXT)


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("effort", [None, "high"])
async def test_an_answer_that_we_stop_before_its_first_word_counts_its_prompt(
    server: ModelApiServer, script: Scripted, api: Api, effort: Effort | None
) -> None:
    """A model that reasons is billed for its silence as well."""
    script.on("hello", Reply(TEXT, gate=asyncio.Event()))
    async with open_client(server.base_url, "any", timeout_s=60, api=api) as client:
        reports = reports_of(client)
        model = OpenAIChatModel(client, "gpt-test", 10, ChatParameters(reasoning=effort))
        asking = asyncio.create_task(ask(model))
        await server.wait_for(lambda call: isinstance(call.request, ChatRequest))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    usage = reports[0].usage
    assert 10 < usage.prompt_tokens < 100
    assert (usage.reasoning_tokens > 0) is (effort is not None)
    assert usage.completion_tokens == usage.reasoning_tokens


@pytest.mark.parametrize(
    ("fault", "prompts"),
    [
        (Break.HANG, 1),
        (Break.DROP, 0),
        (Break.HTML, 0),
        (ApiError(400, "no"), 0),
        (ApiError(503, "Overloaded", headers={"retry-after": "0.01"}), 0),
        (StreamBreak.DROP, 2),
        (StreamBreak.CUT, 2),
        (StreamBreak.STALL, 1),
    ],
)
async def test_only_a_prompt_that_a_server_took_is_counted(
    client: ModelClient, server: ModelApiServer, fault: Fault, prompts: int
) -> None:
    server.faults.add(fault, times=None)
    reports = reports_of(client)
    never_ends = fault in (Break.HANG, StreamBreak.STALL)
    model = OpenAIChatModel(client, "gpt-test", 1 if never_ends else 10)
    with pytest.raises(ModelError):
        await ask(model)
    [report] = reports
    estimate = 35
    assert report.usage.prompt_tokens // estimate == prompts
    assert (report.usage.completion_tokens > 0) is isinstance(fault, StreamBreak)


async def test_a_server_that_refuses_connections_bills_nothing(client: ModelClient) -> None:
    reports = reports_of(client)
    away = client.to(f"http://127.0.0.1:{free_port()}", None, 10)
    with pytest.raises(ModelUnavailable):
        await ask(OpenAIChatModel(away, "gpt-test", timeout_s=60))
    assert reports[0].usage == Usage()


async def test_a_stopped_prompt_counts_about_a_thousand_tokens_for_each_picture(
    client: ModelClient, server: ModelApiServer
) -> None:
    server.faults.add(Break.HANG)
    reports = reports_of(client)
    model = OpenAIChatModel(client, "gpt-test", timeout_s=1)
    picture = Picture(0, b"x" * 100_000, "image/png", 8, 8)
    with pytest.raises(ModelUnavailable):
        await model.complete(ModelRequest([PromptMessage("user", "look", pictures=(picture,) * 2)]))
    assert 2_000 < reports[0].usage.prompt_tokens < 2_100
