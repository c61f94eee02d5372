"""Figures of a process, and percentiles of samples."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return user and system time so far, in seconds; counted by the kernel in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MB, shared memory included."""
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(status.partition("VmRSS:")[2].split()[0]) / 1024, 1)


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return count, median, 99th percentile and maximum of at least one time in seconds."""
    p50, p99, longest = (1000 * np.percentile(seconds, [50, 99, 100])).round(1).tolist()
    return {"samples": len(seconds), "p50_ms": p50, "p99_ms": p99, "max_ms": longest}


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return median and 99th percentile of times in seconds, in milliseconds."""
    return {f"p{p}": round(1000 * float(np.percentile(seconds, p)), 2) for p in (50, 99)}
