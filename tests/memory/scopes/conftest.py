"""These tests run on a server and on a Cluster."""

from tests.memory.server_and_cluster import valkey

__all__ = ["valkey"]
