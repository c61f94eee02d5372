"""Limits for a process that parses a file which anybody may have made."""

import ctypes
import logging
import os
import struct
import sys
from contextlib import suppress

_NICENESS = 5  # the bot has priority on the machine
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_SET_NO_NEW_PRIVS = 38
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
"""Instructions of the kernel's filter language: load a word, compare it, return a verdict."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001
"""Let a call through; answer it with "operation not permitted"."""
_POINTER_BYTES = 8
_CALL_AT, _MACHINE_AT = 0, 4
"""Where the number of a call and the kind of machine stand in what the filter looks at."""
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62),
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "ioctl": (16, 29), "pread64": (17, 67), "writev": (20, 66), "sched_yield": (24, 124),
    "mremap": (25, 216), "madvise": (28, 233), "nanosleep": (35, 101), "getpid": (39, 172),
    "exit": (60, 93), "gettimeofday": (96, 169), "getrusage": (98, 165), "sysinfo": (99, 179),
    "times": (100, 153), "sigaltstack": (131, 132), "gettid": (186, 178), "futex": (202, 98),
    "restart_syscall": (219, 128), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "exit_group": (231, 94), "newfstatat": (262, 79),
    "getrandom": (318, 278), "rseq": (334, 293),
}  # fmt: skip
"""What a process asks of Linux that only computes, reads its input and writes its output; and the
number of each call on both machines."""


def confine(memory_mb: int, cpu_s: int) -> None:
    """Limit memory and processor time of this process; from here on it can open nothing.

    On Linux it can open no file, connect to nothing, start no process, and look at no other one:
    the kernel refuses every call that is not in a short list. Other systems only forbid new open
    files and processes. Windows has no such limits; there the process is merely another one.
    Whatever the parser needs has to be imported before.
    """
    logging.disable()  # the answer says what is wrong
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - Windows has none

    os.nice(_NICENESS)
    for kind, maximum in (
        (resource.RLIMIT_AS, memory_mb * 2**20),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 0),  # not even the number of a file that is closed is free
    ):
        with suppress(OSError, ValueError):  # the system has no such limit
            resource.setrlimit(kind, (maximum, maximum))
    hide_from_others()
    _refuse_other_calls()


def hide_from_others() -> None:
    """Hide memory and environment of this process from others of the same user, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _refuse_other_calls() -> None:
    """Let the kernel refuse all calls but `_CALLS`; do nothing if it cannot."""
    machines, name = list(_MACHINES), os.uname().machine
    if sys.platform != "linux" or name not in machines or struct.calcsize("P") != _POINTER_BYTES:
        return
    calls = [numbers[machines.index(name)] for numbers in _CALLS.values()]
    refuse_at = len(calls) + 3
    steps = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_JUMP_IF_EQUAL, 0, refuse_at - 2, _MACHINES[name]),
        (_LOAD, 0, 0, _CALL_AT),
        *((_JUMP_IF_EQUAL, len(calls) - at, 0, call) for at, call in enumerate(calls)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    filter_ = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # without it only root may set a filter
    prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(filter_), 0, 0)
