"""The process also runs on systems without uvloop."""

import asyncio
import gc
import os
import platform
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import pytest

from bot.runtime.process import GarbageWatch, run_loop
from memory.store.tasks import end_tasks


@pytest.mark.parametrize("has_uvloop", [True, False])
def test_without_uvloop_asyncio_runs(monkeypatch: pytest.MonkeyPatch, *, has_uvloop: bool) -> None:
    loops: list[str] = []

    async def main() -> None:
        loops.append(type(asyncio.get_running_loop()).__module__)

    if not has_uvloop:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    run_loop(main())
    assert loops[0].startswith("uvloop" if has_uvloop else "asyncio")


def test_garbage_is_collected_when_the_process_grew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few objects that refer to themselves are no reason for Python to look for garbage."""
    assert (GarbageWatch()._resident_bytes() > 2**20) == (sys.platform == "linux")
    used_mb = 100
    monkeypatch.setattr(GarbageWatch, "_resident_bytes", lambda _: used_mb * 2**20)

    class Holder:
        def __init__(self) -> None:
            self.itself = self

    gc.disable()
    try:
        watch, gone = GarbageWatch(), weakref.ref(Holder())
        assert not watch.is_due()
        used_mb += 50
        assert watch.is_due()
        watch.collect()
        assert not gone()
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_large_pieces_of_memory_are_given_back_and_small_ones_are_used_again() -> None:
    """By default glibc keeps a freed file of 20 MB if a larger one was freed before."""
    code = """
from resource import getpagesize, getrusage
from bot.runtime.process import tune_interpreter
def mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * getpagesize() // 2**20
tune_interpreter()
before = mb()
bytearray(b"x") * (30 * 2**20)
large = bytearray(b"x") * (20 * 2**20)
small = bytearray(b"x") * 200_000
del large
print(mb() - before)
for _ in range(3):
    faults = getrusage(0).ru_minflt
    [bytearray(b"x") * 400_000 for _ in range(6)].clear()
print(getrusage(0).ru_minflt - faults)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    grown_mb, faults = map(int, run.stdout.split())
    assert grown_mb < 5
    assert faults < 10


async def test_a_lost_cancellation_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.store.tasks._CANCEL_AGAIN_S", 0.0)
    lost = list[asyncio.CancelledError]()

    async def loses_two() -> None:
        while len(lost) < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as cancelled:
                lost.append(cancelled)
        await asyncio.Event().wait()

    task = asyncio.create_task(loses_two())
    await asyncio.sleep(0)
    await end_tasks([task])
    assert (len(lost), task.cancelled()) == (2, True)


def test_a_process_that_cannot_stop_ends_and_says_what_it_waits_for() -> None:
    code = """
import asyncio, os, signal
from bot.runtime import process

async def hangs(stopping):
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()

process._STOP_WITHIN_S = 0.0
process.run_loop(process.run_until_signal(hangs))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "stopped late" in ended.stdout


@contextmanager
def forked(serve: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that forks two; each says its number and id, then does as `serve` says."""
    code = f"""
import asyncio, os, signal, sys
from bot.runtime import process

def serve(number):
    os.write(1, b"forked %d %d\\n" % (number, os.getpid()))
    {serve}

process.load_sdk = lambda: asyncio.sleep(0)
process.index_class = process.encoding = int  # nothing is shared here that takes a second to load
process._REPLACE_AFTER_S = 0
sys.exit(process.run_forked(2, serve))
"""
    run = [sys.executable, "-c", code]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as parent:
        try:
            yield parent
        finally:
            parent.kill()


def started(parent: "subprocess.Popen[str]", count: int) -> dict[int, int]:
    """Read the numbers and ids of so many processes; log lines stand between them."""
    said = (line.split()[1:] for line in parent.stdout or () if line.startswith("forked"))
    return {int(number): int(pid) for number, pid in islice(said, count)}


def test_a_forked_process_that_was_killed_is_replaced_and_all_end_with_the_first() -> None:
    with forked("signal.pause()") as parent:
        killed = started(parent, 2)[1]
        os.kill(killed, signal.SIGKILL)
        assert started(parent, 1)[1] != killed
        parent.terminate()
        assert parent.wait(60) == 0


def test_a_forked_process_that_fails_ends_all_with_its_status() -> None:
    with forked("return 3 if number else signal.pause()") as parent:
        assert parent.wait(60) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of that death")
def test_forked_processes_end_if_the_first_is_killed() -> None:
    with forked("signal.pause()") as parent:
        started(parent, 2)
        parent.kill()
        parent.communicate()  # returns when nobody can write any more
