"""A plain server for the tests of the client; tests that also need a Cluster ask for one."""

from tests.conftest import valkey

__all__ = ["valkey"]
