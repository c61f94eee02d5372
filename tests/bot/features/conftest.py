"""An empty memory on a real server, for features."""

import pytest

from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.bot.check.conftest import model_api, reader, settings_of
from tests.memory.conftest import OPTIONS

__all__ = ["model_api", "reader", "settings_of"]


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter) -> Memory:
    return Memory(store, 42, tokens, None, OPTIONS)
