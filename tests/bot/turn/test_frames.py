"""The way from the worker to the SDK stays short: at most twelve frames of our own."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from openai import AsyncOpenAI

import bot
from bot.runtime.process import memory_options
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.bot.turn.whole_turn import answer_hello
from tests.servers.model_api import ModelApiServer, Scripted
from tests.settings import Settings

MAX_FRAMES = 12
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


async def test_from_the_worker_to_the_sdk_there_are_at_most_twelve_frames(
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
        memory = Memory(store, 42, tokens, None, memory_options(settings))
        await answer_hello(settings, memory, tokens)
    assert stacks[0][0] == "TurnWorker._serve"
    assert len(stacks[0]) <= MAX_FRAMES, stacks[0]
