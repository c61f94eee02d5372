"""The one way to read bytes that anybody may have made: a parser in a process of its own."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from bot.parsing.answers import NotRead
from memory.store.tasks import end_tasks

HERE = Path(__file__).parent
_ROOT = str(HERE.parents[1])
_CHUNK = 2**16
REASONS = {
    "type": "no format that is read",
    "too_big": "too big",
    "too_long": "too many pages or too much text",
    "encrypted": "protected by a password",
    "no_text": "no text found; is it a scan?",
    "damaged": "damaged, or reading it took too long",
    "letters": "unknown text encoding; save it as UTF-8",
}
"""Why a parser does not read a file, as operators read it. Any other reason counts as "damaged"."""
_MUCH_MB = 1_024
"""A machine or container with less memory reads one file at a time. The process that reads it gets
at most half of that memory; the bot itself needs the other half."""
_SLOTS: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Parser:
    """A script that reads files, and what its process may take and give."""

    script: Path
    max_bytes: int  # of the file
    max_answer_bytes: int
    memory_mb: int = 320
    cpu_s: int = 8  # bounds the work
    timeout_s: float = 60  # long, because a small plan may give a tenth of a processor


async def parse(parser: Parser, content: bytes, *arguments: int) -> dict[str, Any]:
    """Return what a parser found in `content`; raise `NotRead` with one of `REASONS`.

    It may also be "stopped": the parser took too long, or its limits stopped it. A process
    reads at most two files at once, one if it has little memory; others wait here.
    """
    if len(content) > parser.max_bytes:
        raise NotRead("too_long")
    loop = asyncio.get_running_loop()
    if loop not in _SLOTS:
        _SLOTS[loop] = asyncio.Semaphore(1 if memory_mb() < _MUCH_MB else 2)
    async with _SLOTS[loop]:
        written = await _answer(parser, content, arguments)
    try:
        # In a thread, so that the event loop does not wait for a long one.
        answer = await asyncio.to_thread(orjson.loads, written)
    except orjson.JSONDecodeError:
        raise NotRead("stopped") from None
    if "refused" in answer:
        raise NotRead(answer["refused"] if answer["refused"] in REASONS else "damaged")
    return dict(answer)


async def _answer(parser: Parser, content: bytes, arguments: tuple[int, ...]) -> bytes:
    limits = (*arguments, min(parser.memory_mb, memory_mb() // 2), parser.cpu_s)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(parser.script), *map(str, limits)),
        env={"PYTHONPATH": os.pathsep.join((_ROOT, *filter(None, sys.path)))},  # and no secrets
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    assert process.stdout  # noqa: S101 - it was started with a pipe
    writing = asyncio.create_task(_write(process, content))
    try:
        async with asyncio.timeout(parser.timeout_s):
            answer = bytearray()
            while chunk := await process.stdout.read(_CHUNK):
                answer += chunk
                if len(answer) > parser.max_answer_bytes:
                    raise NotRead("too_long")
            await process.wait()
            return bytes(answer)
    except TimeoutError:
        raise NotRead("stopped") from None
    finally:
        await end_tasks([writing])
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _write(process: Process, content: bytes) -> None:
    """Write in pieces: the transport would keep a copy of all that is given to it at once."""
    assert process.stdin  # noqa: S101 - it was started with a pipe
    with suppress(OSError):  # it ended before it had read everything
        for start in range(0, len(content), _CHUNK):
            process.stdin.write(content[start : start + _CHUNK])
            await process.stdin.drain()
    process.stdin.close()


@cache
def memory_mb() -> int:
    """Return how much memory this machine has, or this container may take."""
    limits = [2**62]
    with suppress(AttributeError, ValueError, OSError):  # Windows has no such call
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    groups: list[str] = []
    with suppress(OSError):
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    for group in groups:
        _, kinds, path = group.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        root = Path("/sys/fs/cgroup", kinds)
        name = "memory.limit_in_bytes" if kinds else "memory.max"
        for folder in (root, root / path.lstrip("/")):
            with suppress(OSError, ValueError):  # there is no such file, or it says "max"
                limits.append(int((folder / name).read_text()))
    return min(limits) // 2**20
