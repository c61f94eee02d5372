"""What asks a store runs on a server and on a Cluster."""

from tests.memory.conftest import valkey

__all__ = ["valkey"]
