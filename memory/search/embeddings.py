"""What an embedding model is, and a small cache of question vectors; imports the index late.

The SDK of a model lives in `bot`. An idle bot needs no numpy, which takes 16 MB. So `index_class`
imports numpy with the index; other modules name its types only.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memory.text.internal_model import ModelTrouble

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from memory.search.hybrid import HybridIndex

Vectors: TypeAlias = "npt.NDArray[np.float32]"

_MAX_CACHED = 64
_MAX_WAIT_S = 2.5
"""A turn waits no longer for the vector of its question; then it searches by words alone."""


class EmbeddingsUnavailable(ModelTrouble):
    """Raised when the model gives no vectors now. Search uses words alone; the turn goes on."""


class Embedder(Protocol):
    """Turns texts into unit vectors, all by the same model."""

    @property
    def fingerprint(self) -> str:
        """Model and dimensions; vectors of different fingerprints are never compared."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` float32 unit rows; raise `EmbeddingsUnavailable`."""


def fingerprint_of(embedder: Embedder, recipe: str) -> str:
    """Return model, dimensions and text recipe; vectors with different ones cannot be compared."""
    return f"{embedder.fingerprint} | {recipe}"


@cache
def index_class() -> "type[HybridIndex]":
    """Import the index, which takes 0.05 s."""
    from memory.search.hybrid import HybridIndex  # noqa: PLC0415 - see above

    return HybridIndex


async def load_index() -> None:
    """Import the index in a thread, so that the event loop goes on."""
    if not index_class.cache_info().currsize:
        await asyncio.to_thread(index_class)


class QuestionVectors:
    """Embeds questions; searches that ask for the same one at the same time share one call."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._asked: OrderedDict[tuple[str, str], asyncio.Task[Vectors]] = OrderedDict()

    async def vector(self, text: str, compared_with: str, recipe: str) -> "Vectors | None":
        """Return the vector of `text`, `(dimensions,)` float32.

        None without a model, if its fingerprint is not `compared_with`, in trouble, or after 2.5 s.
        """
        if self.embedder is None or compared_with != fingerprint_of(self.embedder, recipe):
            return None
        key = (self.embedder.fingerprint, text)
        task = self._asked.get(key)
        if task is None:
            task = asyncio.create_task(self.embedder.embed([text]))
            task.add_done_callback(partial(self._drop_failed, key))
            self._asked[key] = task
            while len(self._asked) > _MAX_CACHED:
                self._asked.popitem(last=False)
        try:
            async with asyncio.timeout(_MAX_WAIT_S):
                row: Vectors = (await asyncio.shield(task))[0]
                return row
        except (TimeoutError, EmbeddingsUnavailable):
            return None

    def forget(self) -> None:
        """Drop all questions, because one of them may have been erased."""
        for key, task in self._asked.items():
            # A running task needs a reference until it is done.
            task.add_done_callback(partial(self._drop, key))

    def _drop(self, key: tuple[str, str], _: "asyncio.Task[Vectors]") -> None:
        self._asked.pop(key, None)

    def _drop_failed(self, key: tuple[str, str], task: "asyncio.Task[Vectors]") -> None:
        """Drop a question whose call failed, even if its callers no longer wait for it."""
        if task.cancelled() or task.exception():
            self._drop(key, task)
