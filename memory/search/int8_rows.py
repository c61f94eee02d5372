"""Vectors in one byte for each component, as they are stored, and their products.

A product converts a block of rows at a time, which then still is in the processor's cache. So it
takes no longer than it would with float32 rows, which are four times as large.
"""

from collections.abc import Iterator
from threading import Thread
from typing import Final

import numpy as np
import numpy.typing as npt

from memory.search.arrays import Floats

Int8Rows = npt.NDArray[np.int8]
"""`(n, dimensions)` int8: vectors by their directions; their lengths do not matter."""

_BLOCK_ROWS: Final = 512
"""Rows that a product converts at once; with 512 dimensions they take 1 MB as float32."""
_WORTH_A_THREAD: Final = 20_000
"""From this many rows in each half, a second thread saves more time than it costs."""


def quantised(vector: Floats) -> Int8Rows:
    """Return a `(dimensions,)` vector with its largest component as 127 or -127."""
    largest = max(float(np.abs(vector).max(initial=0.0)), 1e-12)
    direction: Int8Rows = np.rint(vector * np.float32(127 / largest)).astype(np.int8)
    return direction


def product(matrix: Int8Rows, question: Floats) -> Floats:
    """Return `matrix @ question`; a second thread computes half of a large one."""
    half, product = len(matrix) // 2, np.empty(len(matrix), np.float32)
    if half < _WORTH_A_THREAD:
        _multiply(matrix, question, product)
        return product
    other = Thread(target=_multiply, args=(matrix[:half], question, product[:half]))
    other.start()
    _multiply(matrix[half:], question, product[half:])
    other.join()
    return product


def _multiply(matrix: Int8Rows, question: Floats, product: Floats) -> None:
    """Put `matrix @ question` into `product`."""
    converted = np.empty((min(len(matrix), _BLOCK_ROWS), matrix.shape[1]), np.float32)
    for block in blocks(len(matrix)):
        rows = converted[: block.stop - block.start]
        np.copyto(rows, matrix[block])
        np.dot(rows, question, out=product[block])


def blocks(count: int) -> Iterator[slice]:
    """Yield `range(count)` in slices of as many rows as are converted at once."""
    for start in range(0, count, _BLOCK_ROWS):
        yield slice(start, min(start + _BLOCK_ROWS, count))
