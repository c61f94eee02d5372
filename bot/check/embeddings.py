"""The embedding model: does it answer, and do its vectors have the dimensions that we ask for."""

from dataclasses import replace

from bot.check.model_trouble import name_shared_key, trouble
from bot.check.recognition import recognize
from bot.check.rows import Row, Rows
from bot.model.embedder import OpenAIEmbedder
from bot.model.model_errors import ModelError
from bot.model.models import secret_of
from bot.model.openai_client import open_client
from config.settings import Settings
from memory.search.embeddings import EmbeddingsUnavailable

_WHAT = "Embeddings"
_TIMEOUT_S = 30.0
_ENOUGH_DIMENSIONS = 512
"""More dimensions fill a small Redis and improve recall little."""


async def check_embeddings(settings: Settings) -> Rows:
    """Yield one row."""
    name, wanted = settings.openai_embedding_model, settings.openai_embedding_dimensions
    if name is None:
        yield Row(_WHAT, "ok", "off: recall uses words alone")
        return
    key = secret_of(settings.openai_embedding_api_key)
    async with open_client(settings.openai_embedding_base_url, key, _TIMEOUT_S) as client:
        native = 0
        try:
            native = await _dimensions(OpenAIEmbedder(client, name, None, _TIMEOUT_S))
            if wanted is None:
                yield native_row(name, native)
                return
            got = await _dimensions(OpenAIEmbedder(client, name, wanted, _TIMEOUT_S))
        except EmbeddingsUnavailable as error:
            if wanted is not None and 0 < native < wanted:
                yield _too_few(name, wanted, native)
            else:
                yield await _failed(error, settings)
            return
        yield Row(_WHAT, "ok", f"{name}: {got} dimensions, as set (the model's own: {native})")


def native_row(name: str, native: int) -> Row:
    """Return the model's own dimensions, with the advice to ask for fewer if they are many."""
    advice = ""
    if native > _ENOUGH_DIMENSIONS:
        factor = native / _ENOUGH_DIMENSIONS
        advice = (
            f"OPENAI_EMBEDDING_DIMENSIONS={_ENOUGH_DIMENSIONS} needs {factor:.0f} times less memory"
        )
    return Row(_WHAT, "ok", f"{name}: {native} dimensions", advice)


async def _dimensions(embedder: OpenAIEmbedder) -> int:
    return int((await embedder.embed(["Is anybody there?"])).shape[1])


def _too_few(name: str, wanted: int, native: int) -> Row:
    seen = f"{name} has {native} dimensions, but {wanted} are set"
    return Row(_WHAT, "fail", seen, f"set OPENAI_EMBEDDING_DIMENSIONS to {native} or less")


async def _failed(error: EmbeddingsUnavailable, settings: Settings) -> Row:
    key = secret_of(settings.openai_embedding_api_key)
    known = await recognize(settings.openai_embedding_base_url, key)
    cause = error.__cause__
    reason = cause if isinstance(cause, ModelError) else ModelError()
    row = trouble(_WHAT, reason, "OPENAI_EMBEDDING_MODEL", known)
    row = name_shared_key(row, settings, "OPENAI_EMBEDDING")
    return replace(row, advice=f"{row.advice}, or do without: OPENAI_EMBEDDING_MODEL=off")
