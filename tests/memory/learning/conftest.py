"""A memory with an embedder on a real, empty Valkey, and a scripted model."""

import pytest

from tests.memory.conftest import valkey
from tests.memory.learning.scripted import ScriptedModel
from tests.memory.words_embedder import WordsEmbedder

__all__ = ["valkey"]


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()
