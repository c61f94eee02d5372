"""A message on its whole way through a worker: files are sent if they fit."""

import asyncio
from typing import Any

import pytest

from bot.assistant import assistant_of, behaviors_of, turn_worker
from bot.model.models import open_models
from bot.reply.parts import Part
from bot.runtime.process import memory_options
from bot.telegram.updates import to_bytes
from memory.limits.capacity import FillLevel
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.store.client import RedisClient
from tests.bot.features.services import services_of
from tests.bot.telegram import raw
from tests.memory.conftest import memory_of
from tests.memory.turns import ANN, HERE
from tests.quiet_chat import QuietChat, no_command
from tests.servers.model_api import ModelApiServer, Reply, Scripted, tool_call
from tests.settings import Settings


def settings_of(server: ModelApiServer, **more: Any) -> Settings:
    url = server.base_url
    return Settings(openai_base_url=url, openai_api_key="k", openai_embedding_model=None, **more)


async def answer_hello(settings: Settings, memory: Memory) -> list[Part]:
    """Return what is sent when Ann says hello."""
    async with open_models(settings) as models:
        services = services_of(memory, settings, chat := QuietChat(), models=models)
        assistant = assistant_of(services, behaviors_of(services))
        worker = turn_worker(services, assistant, no_command)
        working = asyncio.create_task(worker.run())
        said = to_bytes(raw.inbound(raw.message("hello")))
        await memory.mailbox.put(HERE, Entry(1, ANN, is_alone=False, body=said))
        async with asyncio.timeout(60):
            await chat.has_sent.wait()
        await worker.stop(grace_s=5)
        working.cancel()
    return [part for _, part in chat.sent]


TEXTS = [
    "„berths.csv“ konnte ich hier nicht senden.",
    "Here they are.\n\n„berths.png“ konnte ich hier nicht senden.",
]


@pytest.mark.parametrize(("used", "texts"), [(24, TEXTS), (10, ["", "Here they are."])])
async def test_files_need_room_in_redis(store: RedisClient, used: int, texts: list[str]) -> None:
    """Of 25 MB so many are used; the second plan has room."""
    script = Scripted()
    script.then(Reply(tool_calls=(tool_call("draw_berths"),)), "Here they are.")
    async with ModelApiServer(script) as server:
        settings = settings_of(server, behaviors="tests.acceptance.operator_parts:Painter")
        memory = memory_of(store, options=memory_options(settings))
        memory.capacity.found = FillLevel(used * 2**20, 25 * 2**20)
        parts = await answer_hello(settings, memory)
    assert [part.text for part in parts] == texts
    has_room = texts is not TEXTS
    assert [part.file is not None for part in parts] == [has_room] * 2
