"""A warm conversation takes a bounded number of bytes for each message."""

import tracemalloc
from datetime import UTC
from random import Random

from memory.message import Message
from memory.scopes.stream import MessageStream

DIMENSIONS = 512
MESSAGES = 2_000
MAX_BYTES = 1_600
"""The words of 10,000 messages take about 500 bytes a message more, those of 100,000 about 100."""


def test_a_warm_message_takes_at_most_1600_bytes_beside_the_vocabulary() -> None:
    random = Random(7)
    vocabulary = ["".join(random.choices("aeioulnrst", k=5)) for _ in range(300)]
    texts = [" ".join(random.choices(vocabulary, k=33)) for _ in range(MESSAGES + 1)]
    stream = MessageStream()
    stream.append([Message(1, 1, "user", texts[0], 1.7e9)])
    stream.indexed(UTC)
    tracemalloc.start()
    try:
        for seq, text in enumerate(texts[1:], 2):
            # As when a message is read: nothing of it is shared with another one.
            said = Message(seq, seq // 2, "user", "".join(list(text)), 1.7e9 + seq, 2**40 + seq)
            stream.append([said])
        stream.vectors.extend(
            [(seq, random.randbytes(4 + DIMENSIONS)) for seq in range(1, MESSAGES + 2)]
        )
        index = stream.indexed(UTC)
        index.search(texts[0], None, 8)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert index.vectors == MESSAGES + 1
    assert held / MESSAGES <= MAX_BYTES
    assert stream.nbytes / MESSAGES <= MAX_BYTES
