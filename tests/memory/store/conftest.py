"""A server that a test may break."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.valkey import ValkeyServer


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path)
    server.start()
    yield server
    server.stop()
