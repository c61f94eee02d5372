"""Embeddings from an OpenAI-compatible server, as unit rows of a known length.

Trouble becomes `EmbeddingsUnavailable`: recall then uses words alone and the turn goes on.
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import structlog

from bot.http_client import read_json
from bot.model.call import ObservedCall, Post, Usage, time_limit
from bot.model.model_errors import UNREADABLE, AnswerIncomplete, ModelError, ModelRefused, NotAModel
from bot.model.openai_client import ModelClient
from bot.model.resilience import ModelCondition
from bot.model.wire import count_of, list_of, object_of
from memory.search.embeddings import EmbeddingsUnavailable, Vectors, load_index

log = structlog.get_logger(__name__)

_MAX_BYTES = 64 * 1024
_MAX_BYTES_PER_TEXT = 100_000  # 4,096 numbers in full, if a server does not know base64
_MAX_TEXTS, _MAX_TEXTS_IN_FULL = 256, 32
_VALUES_IN_FULL = 10_000
"""JSON values of a text whose vector comes in numbers. Parsing those of 256 texts holds others up
for a quarter of a second, so fewer are sent at once until a server shows that it knows base64."""
_MAX_BATCH_BYTES = 250_000
_MAX_TEXT_BYTES = 8_000
"""A token has at least one byte, so these stay below OpenAI's limits in every script: 8,192 tokens
for a text, 300,000 for a request. A longer text says little more."""


@dataclass(slots=True)
class OpenAIEmbedder:
    """One embedding model; `dimensions` is sent only if it is given."""

    client: ModelClient
    model: str
    dimensions: int | None
    timeout_s: float
    condition: ModelCondition | None = None  # lets it rest; without one it is always asked
    _sends_dimensions: bool = True
    _gets_base64: bool = False

    @property
    def fingerprint(self) -> str:
        """The model and the dimensions that we ask for."""
        return f"{self.model}:{self.dimensions or 'default'}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` float32, unit rows; zeros for a blank text.

        Raise `EmbeddingsUnavailable`, also if all texts are blank: we cannot tell the dimensions.
        """
        wanted: dict[int, str] = {}
        for number, text in enumerate(texts):
            # Half an emoji cannot be sent, and a cut may leave half a letter.
            encoded = text.strip().encode("utf-8", "replace")[:_MAX_TEXT_BYTES]
            if clean := encoded.decode("utf-8", "ignore").rstrip():
                wanted[number] = clean
        if not wanted:
            raise EmbeddingsUnavailable("all texts are blank")
        batches = self._batches(list(wanted.values()))
        trouble = EmbeddingsUnavailable
        attempt = self.condition.attempt(trouble) if self.condition else nullcontext()
        try:
            with attempt, ObservedCall("embedding", self.model, self.client) as call:
                found = [row for batch in batches for row in await self._embed(batch, call)]
                await load_index()
                given = dict(zip(wanted, found, strict=True))
                return _unit_rows(given, len(texts), self.dimensions)
        except ModelError as error:
            raise EmbeddingsUnavailable(f"{type(error).__name__}: {error}") from error

    async def _embed(self, texts: Sequence[str], call: ObservedCall) -> list[object]:
        """Return the vectors of one batch as the server sent them; the limit is for one batch."""
        request: dict[str, Any] = {"model": self.model, "input": list(texts)}
        request["encoding_format"] = "base64"
        if self.dimensions is not None and self._sends_dimensions:
            request["dimensions"] = self.dimensions
        max_bytes = _MAX_BYTES + len(texts) * _MAX_BYTES_PER_TEXT
        async with time_limit(self.timeout_s):
            try:
                body = await self.client.post_whole(Post("/embeddings", request), max_bytes)
            except ModelRefused as error:
                if "dimensions" not in request or not error.objects_to("dimensions"):
                    raise
                log.info("parameter dropped", parameter="dimensions")
                self._sends_dimensions = False
                del request["dimensions"]
                body = await self.client.post_whole(Post("/embeddings", request), max_bytes)

        try:
            max_values = _VALUES_IN_FULL * min(len(texts), _MAX_TEXTS_IN_FULL)
            answer = object_of(read_json(body, max_values))
            call.usage += Usage(count_of(object_of(answer.get("usage")).get("prompt_tokens")))
            found = [object_of(each) for each in list_of(answer["data"])]
            # Some servers leave the index out; the sort then keeps their order.
            found.sort(key=lambda each: count_of(each.get("index")))
            rows = [each["embedding"] for each in found]
        except (*UNREADABLE, KeyError, AnswerIncomplete) as error:
            raise NotAModel(type(error).__name__) from error
        if len(rows) != len(texts):
            raise ModelError("not one vector for each text")
        self._gets_base64 = all(isinstance(row, str) for row in rows)
        return rows

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        batch_bytes = 0
        for text in texts:
            max_texts = _MAX_TEXTS if self._gets_base64 else _MAX_TEXTS_IN_FULL
            text_bytes = len(text.encode())
            if batch and (len(batch) >= max_texts or batch_bytes + text_bytes > _MAX_BATCH_BYTES):
                yield batch
                batch, batch_bytes = [], 0
            batch.append(text)
            batch_bytes += text_bytes
        yield batch


def _unit_rows(given: Mapping[int, object], count: int, dimensions: int | None) -> Vectors:
    """Return `(count, dimensions)` unit rows, with zeros for each text that was not sent.

    Some servers send numbers although we asked for base64.
    """
    import numpy as np  # noqa: PLC0415 - see `embeddings.py`

    try:
        with np.errstate(over="ignore"):  # a number beyond float32 becomes infinite
            rows = np.stack(
                [
                    np.frombuffer(b64decode(row, validate=True), "<f4")
                    if isinstance(row, str)
                    else np.asarray(row, np.float32)
                    for row in given.values()
                ]
            )
    except UNREADABLE as error:
        raise NotAModel(type(error).__name__) from error
    if not rows.size or not np.isfinite(rows).all():
        raise NotAModel("no finite numbers")
    if rows.ndim != 2:
        raise ModelError("not one vector for each text")
    if dimensions is not None and rows.shape[1] < dimensions:
        raise ModelError(f"{rows.shape[1]} dimensions, {dimensions} asked for")
    # A server that ignores `dimensions` sends more; the first of them are good vectors too.
    rows = rows[:, :dimensions]
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)  # no square overflows
    unit: Vectors = np.zeros((count, rows.shape[1]), np.float32)
    unit[list(given)] = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit
