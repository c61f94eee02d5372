"""A plain server for the tests of the client, and one of its own for a test that breaks it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.valkey import ValkeyServer


@pytest.fixture
def valkey(valkey_server: ValkeyServer) -> str:
    """Give the address of an empty database; tests that also need a Cluster ask for one."""
    valkey_server.ask("FLUSHALL")
    return valkey_server.url


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path)
    server.start()
    yield server
    server.stop()
