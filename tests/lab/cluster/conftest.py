"""Clusters of three primaries with replicas: a shared one, and new ones for tests that kill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cluster.nodes import ThreeNodeCluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ThreeNodeCluster]:
    """Yield a new Cluster whose nodes the test may kill."""
    with ThreeNodeCluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodeCluster]:
    with ThreeNodeCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def whole_cluster(shared_cluster: ThreeNodeCluster) -> ThreeNodeCluster:
    """Return the shared Cluster, emptied. A test that pauses a node must let it catch up."""
    shared_cluster.empty()
    return shared_cluster
