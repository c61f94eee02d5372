"""A memory on a real, empty Valkey."""

import pytest

from memory.documents import Library
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS
from tests.memory.words_embedder import WordsEmbedder


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter, embedder: WordsEmbedder) -> Memory:
    return Memory(store, 42, tokens, embedder, OPTIONS)


@pytest.fixture
def library(memory: Memory) -> Library:
    return Library(memory.store, memory.scopes)
