"""A Cluster of three primaries, each with a replica, on loopback."""

import time
from binascii import crc_hqx
from collections.abc import Callable
from functools import partial
from pathlib import Path

from memory.store.keys import Keys
from tests.valkey import HOST, TIMEOUT_S, ValkeyServer

_SLOTS = 16384
_PRIMARIES = 3
_STEP = -(-_SLOTS // _PRIMARIES)

VICTIMS = ("conversations", "doorbell")
"""Which primary dies: one that has conversations only, or the one that all workers listen to."""


class ThreeNodeCluster:
    """Starts in a few seconds; a primary that dies is replaced by its replica in one or two."""

    def __init__(self, folder: Path, node_timeout_ms: int = 1000) -> None:
        self.nodes = []
        for number in range(2 * _PRIMARIES):
            place = folder / str(number)
            place.mkdir()
            options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout_ms)]
            options += ["--repl-diskless-sync-delay", "0"]
            self.nodes.append(ValkeyServer(place, *options))

    @property
    def url(self) -> str:
        return f"redis+cluster://{HOST}:{self.nodes[0].port}"

    def start(self) -> None:
        """Return when every slot is served and every replica follows its primary."""
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
        """Stop a primary's replica where it is, having all so far and getting nothing more.

        Not paused alone: then it would still get what waits in its socket.
        """
        primary, replica = self.pair(number)
        so_far = _offset(primary)
        while _offset(replica) < so_far:
            time.sleep(0.01)
        replica.pause()
        primary.ask("CLIENT KILL TYPE replica")

    def rejoin(self, number: int) -> None:
        """Let a stopped replica go on; return when it follows its primary again."""
        self.pair(number)[1].resume()
        self._until(_has_caught_up)

    def empty(self) -> None:
        for primary in self.nodes[:_PRIMARIES]:
            primary.ask("FLUSHALL")

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def _until(self, holds: Callable[[ValkeyServer], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not all(holds(node) for node in self.nodes):
            assert time.monotonic() < deadline, "the Cluster did not come together"
            time.sleep(0.05)


def place_of(key: str) -> int:
    """Say which of the primaries has a key at the start."""
    hashed = key.partition("{")[2].partition("}")[0] or key
    return crc_hqx(hashed.encode(), 0) % _SLOTS // _STEP


def place_of_victim(victim: str, keys: Keys) -> int:
    """Say which primary is to die, one of `VICTIMS`."""
    ready_queue = place_of(keys.ready_queue)
    if victim == "doorbell":
        return ready_queue
    shared = {ready_queue, *map(place_of, (keys.due, keys.learning))}
    return min(set(range(_PRIMARIES)) - shared)


def _offset(node: ValkeyServer) -> int:
    """Say how much of the stream of replication a node has."""
    return int(node.ask("INFO replication").partition(b"master_repl_offset:")[2].split()[0])


def _has_caught_up(node: ValkeyServer) -> bool:
    """Tell of a replica whether it follows its primary; a primary has nothing to catch up with."""
    told = node.ask("INFO replication")
    return b"role:master" in told or b"master_link_status:up" in told


def _follows(replica: ValkeyServer, primary: str, node: ValkeyServer) -> bool:
    """Have a node follow its primary, if it is that replica; false until it takes the order."""
    return node is not replica or node.ask(f"CLUSTER REPLICATE {primary}").startswith(b"+OK")
