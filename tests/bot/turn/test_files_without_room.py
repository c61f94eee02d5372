"""A Redis without room for the files of an answer still delivers its text."""

import asyncio

import pytest

from bot.assistant import assistant_of
from bot.behaviors import behaviors_of
from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.model.models import open_models
from bot.runtime.process import memory_options
from bot.telegram.packing import to_bytes
from bot.turns import TurnBuilder
from config.settings import Settings
from memory.limits.fill_level import FillLevel
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.bot.telegram import raw
from tests.bot.turn.test_frames import SignallingChat
from tests.memory.turns import ANN, HERE
from tests.servers.model_api import ModelApiServer, Reply, Scripted, tool_call

TEXTS = [
    "„berths.csv“ konnte ich hier nicht senden.",
    "Here they are.\n\n„berths.png“ konnte ich hier nicht senden.",
]


@pytest.mark.parametrize(("used", "texts"), [(24, TEXTS), (10, ["", "Here they are."])])
async def test_files_need_room_in_redis(
    store: RedisClient, tokens: TokenCounter, used: int, texts: list[str]
) -> None:
    """Of 25 MB so many are used; the second plan has room."""
    script = Scripted()
    script.then(Reply(tool_calls=(tool_call("draw_berths"),)), "Here they are.")
    async with ModelApiServer(script) as server:
        settings = Settings(
            openai_base_url=server.base_url,
            openai_api_key="k",
            openai_embedding_model=None,
            behaviors="tests.acceptance.operator_parts:Painter",
        )
        async with open_models(settings) as models:
            memory = Memory(store, 42, tokens, None, memory_options(settings))
            memory.capacity.samples.append((0, FillLevel(used * 2**20, 25 * 2**20)))
            behaviors = behaviors_of(settings, memory, models.internal)
            assistant = assistant_of(settings, tokens, models.chat, behaviors)
            chat = SignallingChat()
            turns = TurnBuilder(settings, memory, chat, Sentences(Catalogue()), lambda _: None)
            worker = turns.worker(assistant, {}, lambda _: None)
            working = asyncio.create_task(worker.run())
            said = to_bytes(raw.inbound(raw.message("hello")))
            await memory.mailbox.put(HERE, Entry(1, ANN, is_command=False, body=said))
            async with asyncio.timeout(20):
                await chat.answered.wait()
            await worker.stop(grace_s=5)
            working.cancel()
    assert [part.text for _, part in chat.sent] == texts
    has_room = texts is not TEXTS
    assert [part.file is not None for _, part in chat.sent] == [has_room] * 2
