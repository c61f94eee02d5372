"""Embeddings from an OpenAI-compatible server, as unit rows of a known length.

Trouble becomes `EmbeddingsUnavailable`, for recall degrades and a turn goes on without it.
"""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import orjson
import structlog

from bot.model.call import Usage
from bot.model.model_errors import (
    SDK_ERRORS,
    AnswerIncomplete,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)
from bot.model.openai_client import ModelClient
from bot.model.wire import count_of, list_of, object_of
from memory.search.embeddings import EmbeddingsUnavailable, Vectors

log = structlog.get_logger(__name__)

_MAX_BYTES = 64 * 1024
_MAX_BYTES_A_TEXT = 100_000
"""Of an answer: 4,096 numbers in full length, where a server does not know base64."""
_MAX_TEXTS = 256
_MAX_BATCH_BYTES = 250_000
_LONGEST_TEXT_BYTES = 8_000
"""No token is shorter than a byte, so this stays below OpenAI's 8,192 tokens for one text (and
300,000 for a request) in every script; a longer text says little more."""


class OpenAIEmbedder:
    """One embedding model; `dimensions` is asked for only when given."""

    def __init__(
        self,
        client: ModelClient,
        model: str,
        dimensions: int | None,
        timeout_s: float,
        on_usage: Callable[[Usage], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._on_usage = on_usage
        self._model = model
        self._dimensions = dimensions
        self._asks_for_dimensions = dimensions is not None
        self._timeout_s = timeout_s

    @property
    def fingerprint(self) -> str:
        """Name model and dimensions as they were asked for."""
        return f"{self._model}:{self._dimensions or 'default'}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` float32 unit rows; zeros for a blank text.

        Raise `EmbeddingsUnavailable`, also when all are blank: nobody knows their dimensions then.
        """
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
                rows = await self._ask(texts)
        except TimeoutError as error:
            late = ModelUnavailable("no answer in time", code="timeout")
            late.__cause__ = error
            raise EmbeddingsUnavailable(str(late)) from late
        except ModelError as error:
            raise EmbeddingsUnavailable(f"{type(error).__name__}: {error}") from error
        if rows.ndim != 2 or len(rows) != len(texts):
            raise EmbeddingsUnavailable("not one vector for each text")
        if self._dimensions is not None and rows.shape[1] < self._dimensions:
            raise EmbeddingsUnavailable(f"{rows.shape[1]} dimensions, {self._dimensions} asked for")
        # Servers that ignore `dimensions` send more; the front of such a vector is a good one.
        return _unit(rows[:, : self._dimensions])

    async def _ask(self, texts: Sequence[str]) -> Vectors:
        """Return the server's rows; `dimensions` is left out once the server has refused it."""
        dimensions = self._dimensions if self._asks_for_dimensions else None
        try:
            return await self._rows(texts, dimensions)
        except ModelRefused as error:
            if dimensions is None or not error.objects_to("dimensions"):
                raise
            log.info("parameter dropped", parameter="dimensions")
            self._asks_for_dimensions = False
            return await self._rows(texts, None)

    async def _rows(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        request: dict[str, Any] = {
            "model": self._model,
            "input": list(texts),
            "encoding_format": "base64",
        }
        if dimensions is not None:
            request["dimensions"] = dimensions
        max_bytes = _MAX_BYTES + len(texts) * _MAX_BYTES_A_TEXT
        body = await self._client.post_whole("/embeddings", request, max_bytes)
        try:
            answer = object_of(orjson.loads(body))
            usage = object_of(answer.get("usage"))
            self._on_usage(Usage(count_of(usage.get("prompt_tokens"))))
            found = [object_of(each) for each in list_of(answer["data"])]
            # Sparse servers leave the index out; the sort keeps their order.
            found.sort(key=lambda each: count_of(each.get("index")))
            with np.errstate(over="ignore"):  # a number beyond float32 is infinite
                rows = np.stack([_row(each["embedding"]) for each in found])
        except (*SDK_ERRORS, KeyError, AnswerIncomplete) as error:
            raise NotAModel(type(error).__name__) from error
        if not rows.size or not np.isfinite(rows).all():
            raise NotAModel("no finite numbers")
        return rows


def _row(given: object) -> Vectors:
    """Return one vector; some servers send numbers although base64 was asked for."""
    if isinstance(given, str):
        return np.frombuffer(b64decode(given, validate=True), np.dtype("<f4")).astype(np.float32)
    return np.asarray(given, np.float32)


def _unit(rows: Vectors) -> Vectors:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Vectors = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit


def _clean(text: str) -> str:
    """Return what of a text can be sent: no lone surrogates, not too long."""
    encoded = text.strip().encode("utf-8", "replace")
    return encoded[:_LONGEST_TEXT_BYTES].decode("utf-8", "ignore").rstrip()


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        cost = len(text.encode())
        if batch and (len(batch) == _MAX_TEXTS or size + cost > _MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += cost
    yield batch
