"""Turns samples into figures: percentiles."""

from collections.abc import Sequence

import numpy as np


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return count, median, 99th percentile and maximum of at least one time in seconds."""
    p50, p99, longest = (1000 * np.percentile(seconds, [50, 99, 100])).round(1).tolist()
    return {"samples": len(seconds), "p50_ms": p50, "p99_ms": p99, "max_ms": longest}


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return median and 99th percentile of times in seconds, in milliseconds."""
    return {f"p{p}": round(1000 * float(np.percentile(seconds, p)), 2) for p in (50, 99)}
