"""Turns samples into figures: percentiles and slopes."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return count, median, 99th percentile and maximum of at least one time in seconds."""
    p50, p99, longest = (1000 * np.percentile(seconds, [50, 99, 100])).round(1).tolist()
    return {"samples": len(seconds), "p50_ms": p50, "p99_ms": p99, "max_ms": longest}


def slope_an_hour(times_s: Sequence[float], values: Sequence[float]) -> float:
    """Return how much the values rise in an hour: the slope of the least-squares line.

    It needs two different times.
    """
    slope, _ = np.polyfit(np.asarray(times_s) - times_s[0], values, 1)
    return float(3600 * slope)


def second_half(samples: Sequence[T]) -> Sequence[T]:
    """Return the later half of the samples, with the middle one."""
    return samples[len(samples) // 2 :]
