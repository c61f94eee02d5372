"""The border to whoever turns texts into vectors.

The SDK behind it lives in `bot`; here are only shapes.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class EmbeddingsUnavailable(Exception):  # noqa: N818 - says when, not that it is an error
    """Raised when no vectors can be had now; recall degrades and the turn goes on."""


class Embedder(Protocol):
    """Turns texts into unit vectors of one model."""

    @property
    def stamp(self) -> str:
        """Name model and dimensions; vectors of different stamps are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` float32 unit rows; raise `EmbeddingsUnavailable`."""
        ...
