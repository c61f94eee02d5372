"""A plain server for the tests of the client."""

import pytest

from tests.valkey import ValkeyServer


@pytest.fixture
def valkey(valkey_server: ValkeyServer) -> str:
    """Give the address of an empty database; tests that also need a Cluster ask for one."""
    valkey_server.ask("FLUSHALL")
    return valkey_server.url
