"""A memory on a real, empty Valkey."""

import pytest

from memory.documents import Library
from memory.memory import Memory
from tests.memory.words_embedder import WordsEmbedder


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


@pytest.fixture
def library(memory: Memory) -> Library:
    return Library(memory.scopes)
