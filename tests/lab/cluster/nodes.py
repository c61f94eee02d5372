"""A Cluster of three primaries, each with a replica, on loopback."""

import time
from binascii import crc_hqx
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self

from memory.store.keys import Keys
from tests.valkey import HOST, TIMEOUT_S, ValkeyServer

_SLOTS = 16384
_PRIMARIES = 3
_STEP = -(-_SLOTS // _PRIMARIES)

VICTIMS = ("conversations", "ready queue")
"""Which primary dies: one with conversations only, or the one with the ready queue."""


class ThreeNodeCluster:
    """It starts in a few seconds; a replica replaces a dead primary within two or three.

    With a shorter timeout a busy machine would make nodes take each other for dead.
    """

    def __init__(self, folder: Path) -> None:
        self.nodes = []
        for number in range(2 * _PRIMARIES):
            options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]
            options += ["--repl-diskless-sync-delay", "0"]
            self.nodes.append(ValkeyServer(folder / str(number), *options))

    @property
    def url(self) -> str:
        return f"redis+cluster://{HOST}:{self.nodes[0].port}"

    def start(self) -> None:
        """Start the nodes; return when all slots are served and all replicas follow."""
        for node in self.nodes:
            node.start()
        for number, node in enumerate(self.nodes):
            node.ask(f"CLUSTER SET-CONFIG-EPOCH {number + 1}")
            node.ask(f"CLUSTER MEET {HOST} {self.nodes[0].port}")
        for number, node in enumerate(self.nodes[:_PRIMARIES]):
            last = min((number + 1) * _STEP, _SLOTS) - 1
            node.ask(f"CLUSTER ADDSLOTSRANGE {number * _STEP} {last}")
        self._until(lambda node: node.ask("CLUSTER NODES").count(b"connected") >= len(self.nodes))
        for primary, replica in zip(self.nodes, self.nodes[_PRIMARIES:], strict=False):
            name = primary.ask("CLUSTER MYID").split(b"\r\n")[1].decode()
            self._until(partial(_follows, replica, name))
        self._until(lambda node: b"cluster_state:ok" in node.ask("CLUSTER INFO"))
        self._until(_has_caught_up)

    def pair(self, number: int) -> tuple[ValkeyServer, ValkeyServer]:
        """Return a primary and its replica, as they were at the start."""
        return self.nodes[number], self.nodes[number + _PRIMARIES]

    def cut_off(self, number: int) -> None:
        """Stop a primary's replica, so that it has all data so far and gets no more.

        A pause alone is not enough, because the replica would later read what is in its socket.
        """
        primary, replica = self.pair(number)
        so_far = _offset(primary)
        while _offset(replica) < so_far:
            time.sleep(0.01)
        replica.pause()
        primary.ask("CLIENT KILL TYPE replica")

    def rejoin(self, number: int) -> None:
        """Resume a stopped replica; return when it follows its primary again."""
        self.pair(number)[1].resume()
        self._until(_has_caught_up)

    def empty(self) -> None:
        for primary in self.nodes[:_PRIMARIES]:
            primary.ask("FLUSHALL")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.stop()

    def _until(self, holds: Callable[[ValkeyServer], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not all(holds(node) for node in self.nodes):
            assert time.monotonic() < deadline, "the Cluster did not form in time"
            time.sleep(0.05)


def primary_of(key: str) -> int:
    """Return the number of the primary that has a key at the start."""
    hashed = key.partition("{")[2].partition("}")[0] or key
    return crc_hqx(hashed.encode(), 0) % _SLOTS // _STEP


def primary_of_victim(victim: str, keys: Keys) -> int:
    """Return the number of the primary that `victim` (one of `VICTIMS`) means."""
    ready_queue = primary_of(keys.ready_queue)
    if victim == "ready queue":
        return ready_queue
    shared = {ready_queue, *map(primary_of, (keys.due, keys.learning))}
    return min(set(range(_PRIMARIES)) - shared)


def _offset(node: ValkeyServer) -> int:
    return int(node.ask("INFO replication").partition(b"master_repl_offset:")[2].split()[0])


def _has_caught_up(node: ValkeyServer) -> bool:
    """Tell whether a node is a primary, or a replica that is connected to its primary."""
    info = node.ask("INFO replication")
    return b"role:master" in info or b"master_link_status:up" in info


def _follows(replica: ValkeyServer, primary: str, node: ValkeyServer) -> bool:
    """Make the replica follow its primary; false until it accepts that, true for other nodes."""
    return node is not replica or node.ask(f"CLUSTER REPLICATE {primary}").startswith(b"+OK")
