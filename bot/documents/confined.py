"""Limits for a process that parses a file which anybody may have made."""

import logging
import os
import resource
from contextlib import suppress

_NICENESS = 5
"""The bot has priority on the machine."""


def confine(memory_mb: int, cpu_s: int) -> None:
    """Limit memory and processor time of this process; from here on it can open nothing.

    So it opens no connection, and none of the files in /proc that other processes of the same user
    show. Whatever it needs has to be imported before.
    """
    os.nice(_NICENESS)
    _limit(resource.RLIMIT_AS, memory_mb * 2**20)
    _limit(resource.RLIMIT_CPU, cpu_s)
    _limit(resource.RLIMIT_NOFILE, 3)
    logging.disable()  # the answer says what is wrong


def _limit(resource_: int, maximum: int) -> None:
    with suppress(OSError, ValueError):  # the system has no such limit
        resource.setrlimit(resource_, (maximum, maximum))
