"""Forks every bot of a test run from a `launcher`; bots with a preloaded library have another."""

import os
import sys
from collections.abc import Mapping
from fcntl import LOCK_EX, flock
from functools import partial
from pathlib import Path
from subprocess import run

from tests.acceptance.rig import ROOT, BotProcess


def fork_bots(folder: Path, user: int) -> None:
    """Have bots forked from now on, if the system can supervise forks.

    All test workers that name the same folder share the launcher. It ends with the process `user`.
    """
    if hasattr(os, "pidfd_open"):
        BotProcess.launcher = partial(_launcher, folder, user)
        BotProcess.launcher({})


def _launcher(folder: Path, user: int, preloading: Mapping[str, str]) -> str:
    """Return the socket of the launcher with this part of its environment, which is started once.

    A library can only be preloaded at the start of a process.
    """
    path = folder / ("preloading-launcher" if preloading else "launcher")
    with path.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not path.exists():
            command = [sys.executable, "-m", "tests.acceptance.launcher", str(path), str(user)]
            # It returns when the launcher waits for requests.
            run(command, cwd=ROOT, env={**os.environ, **preloading}, check=True)
    return str(path)
