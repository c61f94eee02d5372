"""Tests of turns run on a Cluster, like most tests of `memory`."""

from tests.memory.conftest import memory, valkey

__all__ = ["memory", "valkey"]
