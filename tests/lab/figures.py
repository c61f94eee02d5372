"""What becomes of samples: percentiles, slopes, shares. Knows nothing of what was sampled."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return count, median, 99th percentile and greatest of at least one time."""
    p50, p99, most = (1000 * np.percentile(seconds, [50, 99, 100])).round(1).tolist()
    return {"samples": len(seconds), "p50_ms": p50, "p99_ms": p99, "max_ms": most}


def slope_an_hour(times_s: Sequence[float], values: Sequence[float]) -> float:
    """Return how much the values rise in an hour: the slope of the line that fits them best.

    Needs two times that differ.
    """
    slope, _ = np.polyfit(np.asarray(times_s) - times_s[0], values, 1)
    return float(3600 * slope)


def second_half(samples: Sequence[T]) -> Sequence[T]:
    """Return the later half of what was sampled, the middle one included."""
    return samples[len(samples) // 2 :]
