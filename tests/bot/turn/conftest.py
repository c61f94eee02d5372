"""Tests of turns run on a Cluster, like most tests of `memory`."""

from tests.memory.conftest import valkey

__all__ = ["valkey"]
