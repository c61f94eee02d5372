"""The embedding model: does it answer, and what do its vectors add to words.

For the second question (`check --compare-embeddings`) nobody has labelled the talks of this bot. So
the check takes a message of a person and looks for those that were said right before and after it,
among all of the conversation: by words alone, by vectors alone, and by both as recall does. Nothing
is asked of a model, because all of them have vectors, and only counts are shown.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import inf, sqrt

import numpy as np

from bot.features.check.advice import name_shared_server, recognize, trouble
from bot.model.embedder import OpenAIEmbedder
from bot.model.model_errors import ModelError
from bot.model.openai_client import open_client
from bot.probe import Row, Rows, StoreProbe
from config.settings import Settings
from config.values import secret_of
from memory.scopes.log import message_of, seq_of
from memory.search.arrays import int8_rows
from memory.search.embeddings import EmbeddingsUnavailable
from memory.search.hybrid import HybridIndex
from memory.search.message_search import SESSION_PAUSE_S, IndexRecord
from memory.search.weights import DEFAULTS
from memory.search.words import asked_terms, words_of
from memory.store.client import RedisClient
from memory.store.keys import Keys, Scope
from memory.store.store import pages_of_scopes, stream_entries

_WHAT = "Embeddings"
_TIMEOUT_S = 30.0
_ENOUGH_DIMENSIONS = 512  # more dimensions fill a small Redis and improve recall little

_COMPARED = "Words and vectors"
_FIRST = 5  # a message counts as found if one of its neighbors is among that many first hits
_NEAR = 2  # how many messages of people before it, and after it, in its session are its neighbors
_MIN_MESSAGES = 60  # with fewer messages in a conversation, chance finds many neighbors
_MAX_ASKED = 200
_MAX_CONVERSATIONS = 50
_MAX_ENTRIES = 4_000
_MIN_WORDS = 4
_BOTH = replace(DEFAULTS, floor=-inf, floor_without_vectors=-inf, min_words=0)
_VECTORS = replace(_BOTH, lexical=0, min_lexical=-inf)


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
                seen = f"{name} has {native} dimensions, but {wanted} are set"
                advice = f"set OPENAI_EMBEDDING_DIMENSIONS to {native} or less"
                yield Row(_WHAT, "fail", seen, advice)
            else:
                yield await _failed(error, settings)
            return
        yield Row(_WHAT, "ok", f"{name}: {got} dimensions, as set (the model's own: {native})")


def native_row(name: str, native: int) -> Row:
    """Return the model's own dimensions, with the advice to ask for fewer if they are many."""
    advice = ""
    if native > _ENOUGH_DIMENSIONS:
        setting = f"OPENAI_EMBEDDING_DIMENSIONS={_ENOUGH_DIMENSIONS}"
        advice = f"{setting} needs {native / _ENOUGH_DIMENSIONS:.0f} times less memory"
    return Row(_WHAT, "ok", f"{name}: {native} dimensions", advice)


async def _dimensions(embedder: OpenAIEmbedder) -> int:
    return int((await embedder.embed(["Is anybody there?"])).shape[1])


async def _failed(error: EmbeddingsUnavailable, settings: Settings) -> Row:
    key = secret_of(settings.openai_embedding_api_key)
    known = await recognize(settings.openai_embedding_base_url, key)
    cause = error.__cause__
    reason = cause if isinstance(cause, ModelError) else ModelError()
    row = trouble(_WHAT, reason, "OPENAI_EMBEDDING_MODEL", known)
    row = name_shared_server(row, settings, "OPENAI_EMBEDDING_MODEL")
    return replace(row, advice=f"{row.advice}, or do without: OPENAI_EMBEDDING_MODEL=off")


async def _compare(settings: Settings, client: RedisClient, keys: Keys) -> Rows:
    name = settings.openai_embedding_model
    if name is None:
        yield Row(_COMPARED, "ok", "OPENAI_EMBEDDING_MODEL=off: recall uses words alone")
        return
    fingerprint = f"{name}:{settings.openai_embedding_dimensions or 'default'} | "
    counts, conversations = np.zeros(4), 0
    async for page in pages_of_scopes(client, keys):
        for scope in (each for each in page if each.is_conversation):
            stored = await _stored(client, keys, scope, fingerprint)
            if len(stored) < _MIN_MESSAGES or conversations == _MAX_CONVERSATIONS:
                continue
            counts += await asyncio.to_thread(_found, stored)
            conversations += 1
    *found, asked = counts.tolist()
    yield comparison_row([100 * each / max(asked, 1) for each in found], int(asked), conversations)


COMPARISON = StoreProbe(_COMPARED, _compare)


def comparison_row(shares: Sequence[float], asked: int, conversations: int) -> Row:
    """Return the row for what words, vectors and both find, in percent."""
    words, vectors, both = shares
    if not asked:
        seen = f"no conversation has {_MIN_MESSAGES} messages of people with vectors of this model"
        return Row(_COMPARED, "unknown", seen, "try again when people have talked more")
    seen = (
        f"of {asked} messages of {conversations} conversations, what was said beside them is among "
        f"the first {_FIRST} by words for {words:.0f} %, by vectors for {vectors:.0f} %, by both "
        f"for {both:.0f} %"
    )
    if both - words >= 100 / sqrt(asked):  # less may be chance
        return Row(_COMPARED, "ok", seen)
    advice = "words alone find about as much here: try another model, or OPENAI_EMBEDDING_MODEL=off"
    return Row(_COMPARED, "warn", seen, advice)


async def _stored(
    client: RedisClient, keys: Keys, scope: Scope, fingerprint: str
) -> list[tuple[IndexRecord, bytes]]:
    """Return what people have said here, oldest first, with vectors; none of another model's."""
    parts = keys.scope(scope)
    stored = await client.call("HGET", parts.meta, "vector_fingerprint")
    rows = await _newest(client, parts.vectors)
    if not rows or not (stored or b"").decode().startswith(fingerprint):
        return []
    vectors = {seq_of(entry): fields[b"v"] for entry, fields in rows}
    found, session, before = [], 0, 0.0
    for entry, fields in await _newest(client, parts.log):
        message = message_of(seq_of(entry), fields)
        session += message.sent_at - before > SESSION_PAUSE_S
        before = message.sent_at
        if message.role == "user" and message.seq in vectors:
            found.append((IndexRecord(message.text, session), vectors[message.seq]))
    return found


async def _newest(client: RedisClient, key: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
    entries: list[tuple[bytes, dict[bytes, bytes]]] = []
    async for entry in stream_entries(client, key, newest_first=True):
        entries.append(entry)
        if len(entries) == _MAX_ENTRIES:
            break
    return entries[::-1]


def _found(stored: Sequence[tuple[IndexRecord, bytes]]) -> list[int]:
    said, packed = zip(*stored, strict=True)
    rows = int8_rows(packed).astype(np.float32)
    vectors = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    indexes = [HybridIndex(weights=weights) for weights in (_BOTH, _VECTORS, _BOTH)]
    for number, record in enumerate(said):
        for index in indexes:  # each is a session of its own: neighbors would raise each other
            index.extend([record._replace(session=number)])
            index.put_stored([number], [packed[number]])
    asking = list[tuple[int, set[int]]]()
    for number, record in enumerate(said):
        around = range(max(0, number - _NEAR), min(len(said), number + _NEAR + 1))
        near = {at for at in around if at != number and said[at].session == record.session}
        if near and len(asked_terms(words_of(record.text), {})) >= _MIN_WORDS:
            asking.append((number, near))
    counts = [0, 0, 0, 0]
    for number, near in asking[:: len(asking) // _MAX_ASKED + 1]:
        others = np.arange(len(said)) != number
        for way, index in enumerate(indexes):
            hits = index.search(said[number].text, vectors[number] if way else None, _FIRST, others)
            counts[way] += not near.isdisjoint(hit.row for hit in hits)
        counts[3] += 1
    return counts
