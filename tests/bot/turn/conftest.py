"""Tests of turns run on a server and on a Cluster, like the tests of `memory`."""

from tests.memory.conftest import valkey

__all__ = ["valkey"]
