"""The border to whoever turns texts into vectors, and what questions of one moment share of it.

The SDK behind it lives in `bot`; here are only shapes.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

_KEPT = 64
_PATIENCE_S = 2.5
"""A turn waits no longer for its question's vector; words find most of it alone."""


class EmbeddingsUnavailable(Exception):  # noqa: N818 - says when, not that it is an error
    """Raised when no vectors can be had now; recall degrades and the turn goes on.

    `rests_s` is for how many seconds nobody asks the model, because it fails for everybody; 0 when
    only this call failed.
    """

    def __init__(self, reason: str = "", *, rests_s: float = 0.0) -> None:
        super().__init__(reason)
        self.rests_s = rests_s


class Embedder(Protocol):
    """Turns texts into unit vectors of one model."""

    @property
    def fingerprint(self) -> str:
        """Name model and dimensions; vectors of different stamps are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` float32 unit rows; raise `EmbeddingsUnavailable`."""
        ...


class QuestionVectors:
    """Embeds questions, each once, however many searches of a turn ask for it side by side."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._asked: OrderedDict[tuple[str, str], asyncio.Task[Vectors]] = OrderedDict()

    async def of(self, text: str) -> Vectors | None:
        """Return `(dimensions,)` float32, or nothing where there is none to be had."""
        if self.embedder is None:
            return None
        key = (self.embedder.fingerprint, text)
        task = self._asked.get(key)
        if task is None:
            task = asyncio.create_task(self._embed(self.embedder, text))
            self._asked[key] = task
            while len(self._asked) > _KEPT:
                self._asked.popitem(last=False)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await asyncio.shield(task)
        except TimeoutError:
            return None
        except EmbeddingsUnavailable:
            self._asked.pop(key, None)
            return None

    def forget(self) -> None:
        """Drop every question: somebody's was erased, and nobody knows which."""
        for key, task in self._asked.items():
            # One that still runs is kept alive until it is done.
            task.add_done_callback(partial(self._drop, key))

    def _drop(self, key: tuple[str, str], _: "asyncio.Task[Vectors]") -> None:
        self._asked.pop(key, None)

    @staticmethod
    async def _embed(embedder: Embedder, text: str) -> Vectors:
        row: Vectors = (await embedder.embed([text]))[0]
        return row
