"""Forks every bot of a test run from one process, the `launcher`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.forked import READY
from tests.acceptance.rig import ROOT, BotProcess


@contextmanager
def bots_forked(folder: Path) -> Iterator[None]:
    """Fork bots from one process, if the system can supervise forks."""
    if not hasattr(os, "pidfd_open"):
        yield
        return
    path = str(folder / "socket")
    command = [sys.executable, "-m", "tests.acceptance.launcher", path]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        assert process.stdout.readline() == READY
        BotProcess.launcher = path
        yield
        process.communicate(timeout=60)
