"""The embedded server ends with the bot's process, however that ends, and keeps its data."""

import asyncio
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from bot.runtime.maintenance import repeat
from memory.store import embedded
from memory.store.client import RedisClient
from memory.store.embedded import EmbeddedBusy, EmbeddedError, EmbeddedValkey, ask, rewrite_file
from tests.stored import everything_on_disk

ROOT = Path(__file__).parents[3]
BOT = """
import signal, sys
from pathlib import Path
from memory.store.embedded import EmbeddedValkey

signal.signal(signal.SIGINT, signal.default_int_handler)  # else ignored below a shell's "&"
valkey = EmbeddedValkey(Path(sys.argv[1]))
print(valkey.start(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def valkey(data_dir: Path) -> Iterator[EmbeddedValkey]:
    server = EmbeddedValkey(data_dir)
    yield server
    server.stop()


def socket_of(url: str) -> str:
    return unquote(urlsplit(url).path)


def wait_until_nothing_runs_on(data_dir: Path) -> None:
    """Return when the kernel has unlocked the file that a running server holds."""
    with (data_dir / "server.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def test_data_survives_a_clean_stop(data_dir: Path) -> None:
    for expected in (b"$-1\r\n", b"$1\r\nv\r\n"):
        valkey = EmbeddedValkey(data_dir)
        path = socket_of(valkey.start())
        assert ask(path, b"GET k") == expected
        assert ask(path, b"SET k v") == b"+OK\r\n"
        valkey.stop()
        wait_until_nothing_runs_on(data_dir)


async def test_the_store_can_be_opened_at_its_address(valkey: EmbeddedValkey) -> None:
    client = await RedisClient.open(valkey.start())
    assert (await client.info("memory"))["maxmemory_policy"] == "noeviction"
    assert (await client.info("persistence"))["aof_enabled"] == "1"
    await client.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an orphan ends at the next start")
@pytest.mark.parametrize(
    "end",
    [
        lambda bot: bot.stdin.close(),
        lambda bot: bot.send_signal(signal.SIGINT),
        lambda bot: bot.terminate(),
        lambda bot: bot.kill(),
    ],
    ids=["exit", "SIGINT", "SIGTERM", "SIGKILL"],
)
def test_the_server_ends_with_the_bot_and_keeps_the_data(
    data_dir: Path, valkey: EmbeddedValkey, end: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BOT, str(data_dir)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as bot:
        assert bot.stdout
        path = socket_of(bot.stdout.readline().decode().strip())
        assert ask(path, b"SET k v") == b"+OK\r\n"
        end(bot)
        bot.wait()
    wait_until_nothing_runs_on(data_dir)
    assert ask(path, b"PING") == b""
    assert ask(socket_of(valkey.start()), b"GET k") == b"$1\r\nv\r\n"


def test_a_server_left_running_is_stopped_before_the_next_one_starts(
    data_dir: Path, valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "die_with_parent", lambda: None)
    orphaned = EmbeddedValkey(data_dir)
    assert ask(socket_of(orphaned.start()), b"SET k v") == b"+OK\r\n"
    assert orphaned._server
    assert orphaned._lock
    orphaned._lock.close()  # what the kernel does when the process dies
    assert ask(socket_of(valkey.start()), b"GET k") == b"$1\r\nv\r\n"
    assert orphaned._server.wait() == 0
    orphaned.stop()


def test_a_server_that_is_killed_is_started_again(
    data_dir: Path, valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn, failures = EmbeddedValkey._spawn, iter([True, False])

    def failing_once(*given: Any) -> Any:
        if next(failures, False):
            raise OSError("out of memory")
        return spawn(*given)

    monkeypatch.setattr(embedded, "AGAIN_AFTER_S", 0)
    path = socket_of(valkey.start())
    assert ask(path, b"SET k v") == b"+OK\r\n"
    monkeypatch.setattr(EmbeddedValkey, "_spawn", failing_once)
    for _ in range(2):
        server = valkey._server
        assert server
        server.kill()
        while valkey._server is server or ask(path, b"GET k") != b"$1\r\nv\r\n":
            time.sleep(0.01)
    valkey.stop()
    wait_until_nothing_runs_on(data_dir)


def test_a_second_instance_is_refused_and_the_first_goes_on(
    data_dir: Path, valkey: EmbeddedValkey
) -> None:
    path = socket_of(valkey.start())
    with pytest.raises(EmbeddedBusy, match=f"another process is using {data_dir}"):
        EmbeddedValkey(data_dir).start()
    assert ask(path, b"PING") == b"+PONG\r\n"


def test_a_command_cut_short_by_a_crash_is_dropped(data_dir: Path, valkey: EmbeddedValkey) -> None:
    path = socket_of(valkey.start())
    for key in (b"first", b"last"):
        assert ask(path, b"SET " + key + b" v") == b"+OK\r\n"
    [log] = data_dir.glob("appendonlydir/*.incr.aof")
    while b"last" not in log.read_bytes():  # written late where the disk is busy
        time.sleep(0.01)
    assert valkey._server
    valkey._server.kill()
    valkey.stop()
    os.truncate(log, log.stat().st_size - 3)
    path = socket_of(valkey.start())
    assert ask(path, b"MGET first last") == b"*2\r\n$1\r\nv\r\n$-1\r\n"


def test_a_failed_start_shows_the_end_of_its_log(data_dir: Path, valkey: EmbeddedValkey) -> None:
    valkey.start()
    valkey.stop()
    [manifest] = data_dir.glob("appendonlydir/*.manifest")
    manifest.write_text("no manifest\n")
    with pytest.raises(EmbeddedError, match=r"did not start.*\n(.*\n)*.*manifest"):
        valkey.start()
    wait_until_nothing_runs_on(data_dir)


def test_the_log_is_kept_for_one_more_start(data_dir: Path, valkey: EmbeddedValkey) -> None:
    for _ in range(3):
        valkey.start()
        valkey.stop()
    assert len(list(data_dir.glob("valkey.log*"))) == 2
    for log in data_dir.glob("valkey.log*"):
        assert log.read_text().count("Ready to accept connections") == 1


def test_nobody_else_can_read_the_data(data_dir: Path, valkey: EmbeddedValkey) -> None:
    valkey.start()
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    [log] = data_dir.glob("appendonlydir/*.incr.aof")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_the_socket_is_elsewhere_if_the_path_of_the_data_folder_is_long(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path / ("long" * 30))
    path = socket_of(valkey.start())
    assert len(path) < 104
    assert ask(path, b"PING") == b"+PONG\r\n"
    assert stat.S_IMODE(Path(path).parent.stat().st_mode) == 0o700
    valkey.stop()


def test_a_folder_for_sockets_that_others_can_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"ricordo-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(EmbeddedError, match="not a private folder"):
        EmbeddedValkey(tmp_path / ("long" * 30)).start()


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedError, match=f"cannot keep data in {tmp_path}/file/data: Not a dir"):
        EmbeddedValkey(tmp_path / "file" / "data").start()


def test_a_platform_without_a_binary_is_told_to_set_redis_url(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with pytest.raises(EmbeddedError, match=r"on vax: set REDIS_URL"):
        EmbeddedValkey(data_dir).start()


WORDS = b"My secret colour is ultramarine"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RedisClient]:
    server = EmbeddedValkey(tmp_path)
    client = await RedisClient.open(server.start())
    yield client
    await client.close()
    server.stop()


@asynccontextmanager
async def cleaning(store: RedisClient, erased: asyncio.Event) -> AsyncIterator[None]:
    task = asyncio.create_task(repeat(partial(rewrite_file, store), "rewrite", 600, erased))
    yield
    task.cancel()
    await asyncio.wait([task])


async def wait_until_clean(store: RedisClient, folder: Path) -> None:
    async with asyncio.timeout(60):
        while WORDS in everything_on_disk(folder):
            await store.ping()


async def test_erased_data_that_a_crash_left_on_disk_is_removed_at_the_next_start(
    store: RedisClient, tmp_path: Path
) -> None:
    await store.call("SET", "said", WORDS)
    await store.call("DEL", "said")
    assert WORDS in everything_on_disk(tmp_path)
    async with cleaning(store, asyncio.Event()):
        await wait_until_clean(store, tmp_path)


async def test_an_erasure_during_a_rewrite_is_followed_by_another_one(
    store: RedisClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.store.embedded._RETRY_S", 0.01)
    await store.call("CONFIG SET", "rdb-key-save-delay", 300_000)
    await store.call("SET", "kept", "so that a rewrite takes its time")
    erased = asyncio.Event()
    async with cleaning(store, erased):
        while (await store.info("persistence"))["aof_rewrite_in_progress"] == "0":
            pass
        await store.call("SET", "said", WORDS)
        await store.call("DEL", "said")
        erased.set()
        assert WORDS in everything_on_disk(tmp_path)
        await wait_until_clean(store, tmp_path)
