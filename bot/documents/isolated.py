"""Runs a parser of untrusted files in a process of its own and returns its JSON answer."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import orjson

_ROOT = str(Path(__file__).parents[2])


class ParserFailed(Exception):
    """Raised when a parser took too long, was stopped by its limits, or wrote no JSON."""


async def parse(script: Path, arguments: tuple[int, ...], content: bytes, timeout_s: float) -> Any:
    """Give `content` to a parser's script and return its answer; raise `ParserFailed`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(script), *map(str, arguments)),
        env={"PYTHONPATH": os.pathsep.join((_ROOT, *filter(None, sys.path)))},  # and no secrets
        stdin=PIPE,
        stdout=PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(timeout_s):
            written, _ = await process.communicate(content)
        return orjson.loads(written)
    except (TimeoutError, orjson.JSONDecodeError):
        raise ParserFailed(script.stem) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
