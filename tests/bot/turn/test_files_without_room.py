"""A Redis without room for the files of an answer still delivers its text."""

import pytest

from bot.runtime.process import memory_options
from memory.limits.capacity import FillLevel
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.bot.turn.whole_turn import answer_hello
from tests.servers.model_api import ModelApiServer, Reply, Scripted, tool_call
from tests.settings import Settings

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
        memory = Memory(store, 42, tokens, None, memory_options(settings))
        memory.capacity.samples.append((0, FillLevel(used * 2**20, 25 * 2**20)))
        parts = await answer_hello(settings, memory, tokens)
    assert [part.text for part in parts] == texts
    has_room = texts is not TEXTS
    assert [part.file is not None for part in parts] == [has_room] * 2
