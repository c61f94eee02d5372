"""A Cluster of three primaries with replicas, for each test a new one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.nodes import ThreeNodeCluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ThreeNodeCluster]:
    folder = tmp_path / "nodes"
    folder.mkdir()
    cluster = ThreeNodeCluster(folder)
    cluster.start()
    yield cluster
    cluster.stop()
