"""A Cluster, and a small server of its own."""

from tests.memory.conftest import valkey
from tests.memory.limits.conftest import _small_server, small_server

__all__ = ["_small_server", "small_server", "valkey"]
