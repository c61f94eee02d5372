"""The memory, embedder and scripted model of the tests of learning."""

from tests.memory.learning.conftest import embedder, memory, model, valkey

__all__ = ["embedder", "memory", "model", "valkey"]
