"""Learning after the reply: vectors for messages that have none yet.

Takes up where the stored vectors end, so a crash only delays it. Never on a turn's path.
"""

from memory.embeddings import Embedder
from memory.history import HistoryParts, stamp_of, version_of
from memory.indexed import indexed_text
from memory.keys import Conversation
from memory.log import message_of, packed, seq_of

_BATCH = 128


async def learn_vectors(parts: HistoryParts, embedder: Embedder, conversation: Conversation) -> int:
    """Embed and store what has no vector yet; return how many. Safe to repeat and to race.

    Vectors of another stamp are replaced from the beginning. Stops when something is erased or
    another model's vectors come in between; the next call takes it up. Raise
    `EmbeddingsUnavailable`; what was stored until then stays.
    """
    keys = parts.keys.conversation(conversation)
    learned = 0
    while True:
        meta, newest = await parts.client.pipeline(
            [
                ("HMGET", keys.meta, "epoch", "erasure", "vec_stamp"),
                ("XREVRANGE", keys.vectors, "+", "-", "COUNT", 1),
            ]
        )
        named = (*version_of(meta), stamp_of(embedder), parts.ttl_s)
        if meta[2] != stamp_of(embedder).encode():
            await parts.scripts["learn_vectors"](keys.all, named)
            continue
        last = seq_of(newest[0][0]) if newest else 0
        log = await parts.client.call("XRANGE", keys.log, f"({last}-0", "+", "COUNT", _BATCH)
        if not log:
            return learned
        messages = [message_of(entry, fields) for entry, fields in log]
        rows = await embedder.embed([indexed_text(message) for message in messages])
        vectors = zip(messages, map(packed, rows), strict=True)
        pairs = [argument for message, row in vectors for argument in (message.seq, row)]
        if await parts.scripts["learn_vectors"](keys.all, (*named, last, *pairs)) != b"ok":
            return learned
        learned += len(messages)
