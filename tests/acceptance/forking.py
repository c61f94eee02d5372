"""Forks every bot of a test run from one process, the `launcher`."""

import os
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path
from subprocess import run

from tests.acceptance.rig import ROOT, BotProcess


def fork_bots(folder: Path, user: int) -> None:
    """Have bots forked from now on, if the system can supervise forks.

    All test workers that name the same folder share the launcher. It ends with the process `user`.
    """
    if not hasattr(os, "pidfd_open"):
        return
    path = folder / "launcher"
    with path.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not path.exists():
            command = [sys.executable, "-m", "tests.acceptance.launcher", str(path), str(user)]
            run(command, cwd=ROOT, check=True)  # returns when the launcher waits for requests
    BotProcess.launcher = str(path)
