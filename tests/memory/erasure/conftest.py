"""The embedder and scripted model of the tests of learning."""

from tests.memory.learning.conftest import embedder, model, valkey

__all__ = ["embedder", "model", "valkey"]
