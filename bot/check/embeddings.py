"""The embedding model: does it answer, and are its vectors as long as was asked for."""

from dataclasses import replace

from bot.check.model_trouble import trouble
from bot.check.recognition import recognize
from bot.check.rows import Row, Rows
from bot.model.embedder import OpenAIEmbedder
from bot.model.model_errors import ModelError
from bot.model.openai_client import open_client
from config.settings import Settings
from memory.search.embeddings import EmbeddingsUnavailable

_WHAT = "Embeddings"
_PATIENCE_S = 30.0
_LONG = 512
"""Longer vectors take more of a small Redis than they give back in recall."""


async def check_embeddings(settings: Settings) -> Rows:
    """Yield one row."""
    name, asked = settings.openai_embedding_model, settings.openai_embedding_dimensions
    if name is None:
        yield Row(_WHAT, "ok", "off: recall goes by words alone")
        return
    key = settings.openai_embedding_api_key
    secret = key.get_secret_value() if key else None
    async with open_client(settings.openai_embedding_base_url, secret, _PATIENCE_S) as client:
        try:
            native = await _length(OpenAIEmbedder(client, name, None, _PATIENCE_S))
        except EmbeddingsUnavailable as error:
            yield await _failed(error, settings)
            return
        if asked is None:
            yield unasked(name, native)
            return
        try:
            got = await _length(OpenAIEmbedder(client, name, asked, _PATIENCE_S))
        except EmbeddingsUnavailable as error:
            if native < asked:
                yield _too_short(name, asked, native)
            else:
                yield await _failed(error, settings)
            return
        yield Row(_WHAT, "ok", f"{name}: {got} dimensions, as asked (of itself {native})")


def unasked(name: str, native: int) -> Row:
    """Say how long the model's own vectors are, and how to have them shorter."""
    advice = ""
    if native > _LONG:
        advice = f"OPENAI_EMBEDDING_DIMENSIONS={_LONG} takes {native / _LONG:.0f} times less memory"
    return Row(_WHAT, "ok", f"{name}: {native} dimensions", advice)


async def _length(embedder: OpenAIEmbedder) -> int:
    return int((await embedder.embed(["Is anybody there?"])).shape[1])


def _too_short(name: str, asked: int, native: int) -> Row:
    seen = f"{name}: {asked} dimensions asked for, it has {native}"
    return Row(_WHAT, "fail", seen, f"set OPENAI_EMBEDDING_DIMENSIONS to {native} or less")


async def _failed(error: EmbeddingsUnavailable, settings: Settings) -> Row:
    key = settings.openai_embedding_api_key
    secret = key.get_secret_value() if key else None
    known = await recognize(settings.openai_embedding_base_url, secret)
    cause = error.__cause__
    reason = cause if isinstance(cause, ModelError) else ModelError()
    row = trouble(_WHAT, reason, "OPENAI_EMBEDDING_MODEL", known)
    return replace(row, advice=f"{row.advice}, or go without: OPENAI_EMBEDDING_MODEL=off")
