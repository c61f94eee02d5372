"""An empty database for packages whose tests run twice: on a server and on a Cluster."""

import pytest

from tests.valkey import ValkeyServer


@pytest.fixture(params=["valkey_server", "cluster_server"], ids=["server", "cluster"])
def valkey(request: pytest.FixtureRequest) -> str:
    """Give the address of an empty database."""
    server: ValkeyServer = request.getfixturevalue(request.param)
    server.ask("FLUSHALL")
    return server.url
