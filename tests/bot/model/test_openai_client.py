"""The SDK's client: bounded, shared, and usable without a key."""

import pytest

from bot.model.call import PromptMessage
from bot.model.chat import OpenAIChatModel
from bot.model.model_errors import ModelRefused
from bot.model.openai_client import open_client
from tests.servers.model_api import Dialect, ModelApiServer

HELLO = (PromptMessage("user", "hello"),)


async def test_a_key_with_a_newline_behind_it_is_good(server: ModelApiServer) -> None:
    server.dialect = Dialect(api_key="sk-good")
    async with open_client(server.base_url, " sk-good\n", timeout_s=10) as client:
        reply = await OpenAIChatModel(client, "m", timeout_s=10).complete(HELLO, ())
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize("key", [None, "", " "])
async def test_a_server_of_ones_own_needs_no_key(server: ModelApiServer, key: str | None) -> None:
    async with open_client(server.base_url, key, timeout_s=10) as client:
        reply = await OpenAIChatModel(client, "m", timeout_s=10).complete(HELLO, ())
    assert reply.finish_reason == "stop"


async def test_a_wrong_key_is_refused_and_not_shown(server: ModelApiServer) -> None:
    server.dialect = Dialect(api_key="sk-good")
    async with open_client(server.base_url, "sk-forgotten", timeout_s=10) as client:
        with pytest.raises(ModelRefused) as caught:
            await OpenAIChatModel(client, "m", timeout_s=10).complete(HELLO, ())
    assert str(caught.value) == "AuthenticationError 401"
