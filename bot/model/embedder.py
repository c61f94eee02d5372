"""Embeddings from an OpenAI-compatible server, as unit rows of a known length.

Trouble becomes `EmbeddingsUnavailable`, for recall degrades and a turn goes on without it.
"""

import asyncio
from collections.abc import Iterator, Sequence

import numpy as np
import structlog
from openai import AsyncOpenAI, omit

from bot.model.errors import FOREIGN
from memory.embeddings import EmbeddingsUnavailable, Vectors

log = structlog.get_logger(__name__)

_MOST_TEXTS = 256
_MOST_CHARS = 400_000
_LONGEST_TEXT = 12_000
"""Characters of one text; models take about 8,000 tokens, and a long text says little more."""


class OpenAIEmbedder:
    """One embedding model; `dimensions` is asked for only when given."""

    def __init__(
        self, client: AsyncOpenAI, model: str, dimensions: int | None, timeout_s: float
    ) -> None:
        self._client = client
        self._model = model
        self._dimensions = dimensions
        self._timeout_s = timeout_s

    @property
    def stamp(self) -> str:
        """Name model and dimensions as they were asked for."""
        return f"{self._model}:{self._dimensions or 'default'}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` float32 unit rows; zeros for a blank text."""
        clean = [_clean(text) for text in texts]
        wanted = [(number, text) for number, text in enumerate(clean) if text]
        if not wanted:
            raise EmbeddingsUnavailable("nothing but blanks")
        batches = _batches([text for _, text in wanted])
        found = np.concatenate([await self._embed_batch(batch) for batch in batches])
        out: Vectors = np.zeros((len(texts), found.shape[1]), np.float32)
        out[[number for number, _ in wanted]] = found
        return out

    async def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.embeddings.create(
                    model=self._model,
                    input=list(texts),
                    dimensions=omit if self._dimensions is None else self._dimensions,
                )
            ordered = sorted(answer.data, key=lambda each: each.index)
            rows: Vectors = np.asarray([each.embedding for each in ordered], np.float32)
        except (*FOREIGN, TimeoutError, ValueError) as error:
            raise EmbeddingsUnavailable(type(error).__name__) from error
        if rows.ndim != 2 or len(rows) != len(texts):
            raise EmbeddingsUnavailable("not one vector for each text")
        if self._dimensions is not None and rows.shape[1] < self._dimensions:
            raise EmbeddingsUnavailable(f"{rows.shape[1]} dimensions, {self._dimensions} asked for")
        # Servers that ignore `dimensions` send more; the front of such a vector is a good one.
        return _unit(rows[:, : self._dimensions])


def _unit(rows: Vectors) -> Vectors:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Vectors = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode().strip()[:_LONGEST_TEXT]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for text in texts:
        if batch and (len(batch) == _MOST_TEXTS or chars + len(text) > _MOST_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(text)
        chars += len(text)
    yield batch
