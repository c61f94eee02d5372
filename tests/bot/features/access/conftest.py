"""A Cluster."""

from tests.memory.conftest import interrupted, valkey

__all__ = ["interrupted", "valkey"]
