"""A memory with an embedder on a real, empty Valkey, and a scripted model."""

import pytest

from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS, valkey
from tests.memory.learning.scripted import ScriptedModel
from tests.memory.words_embedder import WordsEmbedder

__all__ = ["valkey"]


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter, embedder: WordsEmbedder) -> Memory:
    return Memory(store, 42, tokens, embedder, OPTIONS)
