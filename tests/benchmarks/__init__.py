"""Benchmarks: measured through the product's own classes, printed as JSON lines."""

import memory  # noqa: F401 - before numpy: it says how many threads a product takes
