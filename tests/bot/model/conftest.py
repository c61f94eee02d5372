"""The model package against our local server, through the real SDK."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from bot.model.call import CallReport, PromptMessage
from bot.model.chat_model import OpenAIChatModel
from bot.model.openai_client import ModelClient, open_client
from bot.model.request_forms import Api
from memory.behaviors.tool import ToolDefinition
from tests.bot.model.internal_calls import ANSWER, Internal
from tests.servers.model_api import ModelApiServer, Scripted, tool_call


@pytest.fixture
def script() -> Scripted:
    return Scripted(TEXT)


@pytest.fixture
async def server(script: Scripted) -> AsyncIterator[ModelApiServer]:
    async with ModelApiServer(script) as server:
        yield server


@pytest.fixture
async def client(server: ModelApiServer) -> AsyncIterator[ModelClient]:
    async with open_client(server.base_url, "any", timeout_s=60) as client:
        yield client


def reports_of(client: ModelClient) -> list[CallReport]:
    """Return what the client reports of calls from now on."""
    reports: list[CallReport] = []
    client.observers = [reports.append]
    return reports


@pytest.fixture
def model(client: ModelClient) -> OpenAIChatModel:
    return OpenAIChatModel(client, "gpt-test", timeout_s=60)


@pytest.fixture
async def internal(request: pytest.FixtureRequest) -> AsyncIterator[Internal]:
    script = Scripted(ANSWER)
    api: Api = getattr(request, "param", "chat")
    async with (
        ModelApiServer(script) as server,
        open_client(server.base_url, "any", timeout_s=60, api=api) as client,
    ):
        yield Internal(client, server, script)


Logged = Sequence[Mapping[str, object]]


@pytest.fixture
def logged() -> Iterator[Logged]:
    with capture_logs() as logged:
        yield logged


TEXT = "One two three four five six seven eight."
HELLO = (PromptMessage("system", "Be brief."), PromptMessage("user", "hello"))
# A tool from outside may have a number of more than 64 bits in its schema.
CLOCK = ToolDefinition("clock", "Tell the time", {"type": "object", "maxProperties": 2**70})
CALLS = (tool_call("clock", zone="Asia/Tokyo"), tool_call("sum", expression="1 + 1"))
