"""An embedder for tests: hashed words, a log of embedded texts, and failures on request."""

from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from memory.search.embeddings import EmbeddingsUnavailable, Vectors
from tests.servers.word_vectors import embed

DIMENSIONS = 128


class WordsEmbedder:
    """Texts that share words are near each other.

    `calls` has the texts of each call. The call number `fails_at` (from 1) fails, once; `meanwhile`
    runs within the next call, as if that took long.
    """

    def __init__(self, fingerprint: str = "words", dimensions: int = DIMENSIONS) -> None:
        self.fingerprint = fingerprint
        self.dimensions = dimensions
        self.calls: list[Sequence[str]] = []
        self.fails_at = 0
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    @property
    def texts(self) -> list[str]:
        """Everything that was embedded, in order."""
        return [text for call in self.calls for text in call]

    async def embed(self, texts: Sequence[str]) -> Vectors:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()
        if len(self.calls) + 1 == self.fails_at:
            self.fails_at = 0
            raise EmbeddingsUnavailable("out of order")
        self.calls.append(texts)
        return np.stack([embed(text, self.dimensions) for text in texts])
