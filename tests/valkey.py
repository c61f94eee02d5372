"""A private Redis or Valkey on loopback for tests. It ends with them and keeps no data.

The server is the embedded one's binary, or the `redis-server` that `RICORDO_TEST_REDIS` names.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path
from random import SystemRandom
from typing import Self

from memory.store.client import RedisClient
from memory.store.embedded import die_with_parent, valkey_binary

HOST = "127.0.0.1"
TIMEOUT_S = 60


class ValkeyServer:
    """A server on its own port; after a second start it is empty and on the same port.

    With `--appendonly yes` among its options it keeps its data. `environment` is added to that of
    this process.
    """

    def __init__(
        self, folder: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.port = free_port()
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._environment = os.environ | (environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        binary = os.environ.get("RICORDO_TEST_REDIS") or str(valkey_binary())
        self._command = [binary, "--bind", HOST, "--port", str(self.port), "--dir", str(folder)]
        self._command += ["--save", "", "--appendonly", "no", *options]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def start(self) -> None:
        """Start the server and return when it says that it is ready."""
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - started from the main thread
        )
        assert self._process.stdout
        said = []
        for line in self._process.stdout:
            said.append(line.decode())
            if b"Ready to accept connections" in line:
                self.ask("CONFIG SET loglevel warning")  # its output is not read any more
                return
        self.stop()
        raise RuntimeError("".join(["the test's server did not start:\n", *said]))

    def move_to(self, port: int) -> None:
        """Use another port from the next start on."""
        self._command[self._command.index(str(self.port))] = str(port)
        self.port = port

    def pause(self) -> None:
        """Suspend the process, as a suspended machine would."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process as a crash would."""
        if self._process:
            self._process.kill()
        self.stop()

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.communicate(timeout=TIMEOUT_S)
            self._process = None

    def ask(self, command: str) -> bytes:
        """Return the raw answer to a command without quotes, up to 64 kB."""
        with socket.create_connection((HOST, self.port), TIMEOUT_S) as connection:
            connection.sendall(command.encode() + b"\r\n")
            return connection.recv(65536)


@asynccontextmanager
async def opened(url: str, max_connections: int = 4) -> AsyncIterator[RedisClient]:
    """Yield a client of a server, and close it."""
    client = await RedisClient.open(url, max_connections=max_connections)
    try:
        yield client
    finally:
        await client.close()


class OneNodeCluster(ValkeyServer):
    """A Cluster of one node with all slots. It refuses commands across slots, as a large one."""

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder, "--cluster-enabled", "yes", *options)

    @property
    def url(self) -> str:
        return f"redis+cluster://{HOST}:{self.port}"

    def start(self) -> None:
        super().start()
        for first in range(0, 16384, 4096):  # Redis 6 takes slots only one by one, and not too many
            self.ask(f"CLUSTER ADDSLOTS {' '.join(map(str, range(first, first + 4096)))}")
        while b"cluster_state:ok" not in self.ask("CLUSTER INFO"):
            time.sleep(0.05)  # a node needs two seconds to become ready


_WORKERS, _PORTS_EACH = 8, 1_500


def _ports() -> Iterator[int]:
    """Yield ports for ever, other ones in each test worker, from anywhere on.

    So nobody else soon gets the port of a server that has not begun yet or that starts again.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    first = SystemRandom().randrange(_PORTS_EACH)
    for number in cycle(range(_PORTS_EACH)):
        yield 10_000 + worker * _PORTS_EACH + (first + number) % _PORTS_EACH


_PORTS = _ports()


def free_port() -> int:
    """Return a free port below the range that the system gives to connections.

    It is low enough for the second port of a Cluster, which is 10000 higher.
    """
    while True:
        port = next(_PORTS)
        with suppress(OSError), socket.create_server((HOST, port)):
            return port
