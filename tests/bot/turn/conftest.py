"""Turns run on a server and on a Cluster, as the memory under them does."""

from tests.memory.conftest import valkey

__all__ = ["valkey"]
