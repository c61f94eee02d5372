"""Fixtures: the memory in which uploaded documents are stored."""

from tests.memory.documents.conftest import embedder, library

__all__ = ["embedder", "library"]
