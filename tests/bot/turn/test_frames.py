"""The way from the worker to the SDK stays short: at most thirteen frames of our own."""

import asyncio
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from openai import AsyncOpenAI

import bot
from bot.assistant import assistant_of
from bot.behaviors import behaviors_of
from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.model.models import open_models
from bot.reply.parts import Part
from bot.runtime.process import memory_options
from bot.telegram.chat import Destination
from bot.telegram.packing import to_bytes
from bot.turns import TurnBuilder
from config.settings import Settings
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.bot.telegram import raw
from tests.memory.turns import ANN, HERE
from tests.quiet_chat import QuietChat
from tests.servers.model_api import ModelApiServer, Scripted

MAX_FRAMES = 13
ROOT = Path(bot.__file__).parents[1]
OURS = (str(ROOT / "bot"), str(ROOT / "memory"))


def our_frames() -> list[str]:
    """Return the names of our own functions on the stack, outermost first."""
    names: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names[::-1]


class SignallingChat(QuietChat):
    """Sets an event when a part is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = asyncio.Event()

    async def send(self, to: Destination, part: Part, timeout_s: float = 15.0) -> int:
        self.answered.set()
        return await super().send(to, part, timeout_s)


async def test_from_the_worker_to_the_sdk_there_are_at_most_thirteen_frames(
    store: RedisClient, tokens: TokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks: list[list[str]] = []
    post = AsyncOpenAI.post

    async def watched_post(self: AsyncOpenAI, *arguments: Any, **options: Any) -> Any:
        stacks.append(our_frames())
        return await post(self, *arguments, **options)

    monkeypatch.setattr(AsyncOpenAI, "post", watched_post)
    async with ModelApiServer(Scripted("Hello!")) as server:
        settings = Settings(
            openai_base_url=server.base_url, openai_api_key="k", openai_embedding_model=None
        )
        async with open_models(settings) as models:
            memory = Memory(store, 42, tokens, None, memory_options(settings))
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
    assert stacks[0][0] == "TurnWorker._serve"
    assert len(stacks[0]) <= MAX_FRAMES, stacks[0]
