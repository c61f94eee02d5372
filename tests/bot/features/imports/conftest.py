"""Fixtures: the memory in which imports are stored."""

from tests.memory.documents.conftest import embedder, library

__all__ = ["embedder", "library"]
