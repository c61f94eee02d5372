"""Clusters of three primaries with replicas: one that lasts, and new ones for tests that kill."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.cluster.nodes import ThreeNodeCluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ThreeNodeCluster]:
    """Give a Cluster whose nodes may be killed."""
    with _started(tmp_path / "nodes") as cluster:
        yield cluster


@pytest.fixture(scope="package")
def lasting_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodeCluster]:
    with _started(tmp_path_factory.mktemp("cluster") / "nodes") as cluster:
        yield cluster


@pytest.fixture
def whole_cluster(lasting_cluster: ThreeNodeCluster) -> ThreeNodeCluster:
    """Give an empty Cluster that others use, too: who stops a node lets it catch up."""
    lasting_cluster.empty()
    return lasting_cluster


@contextmanager
def _started(folder: Path) -> Iterator[ThreeNodeCluster]:
    folder.mkdir()
    cluster = ThreeNodeCluster(folder)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
