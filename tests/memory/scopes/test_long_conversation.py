"""A conversation of any length takes a bounded part of the memory; the newest is found."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from datetime import UTC
from random import Random
from typing import Literal

import numpy as np

from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.scopes.log import UNKNOWN, StreamDelta, packed
from memory.scopes.stream import MessageStream
from memory.store.keys import Scope
from tests.lab.recall import found_alone
from tests.memory.turns import HERE, store

MAX_BYTES = 4 * 2**20


def said(seq: int, text: str) -> Message:
    return Message(seq, seq, "user", text, 1.7e9 + seq, 7)


def found(stream: MessageStream, text: str) -> list[int]:
    index = stream.indexed(UTC)
    hits = index.search(text, None, 3, np.ones(len(index.ids), np.bool_))
    return [stream.messages[hit.row].seq for hit in hits]


def made_up_words(count: int) -> Iterator[Message]:
    """Yield texts of which nearly every pair of characters is a new term."""
    random = Random(7)
    for seq in range(1, count + 1):
        yield said(seq, "".join(chr(random.randrange(0x4E00, 0x9FA0)) for _ in range(2_000)))


def test_texts_of_made_up_words_take_a_bounded_part_of_the_memory() -> None:
    """An index of 300 messages of 4,096 random ideographs takes 350 MB."""
    stream = MessageStream()
    stream.max_bytes = 6 * MAX_BYTES
    messages = [*made_up_words(80), said(81, "The boat lies in Oulu")]
    stream.append(messages)
    stream.indexed(UTC)
    assert stream.nbytes <= 6 * MAX_BYTES
    assert 20 <= len(stream.messages) < 81
    assert found(stream, "Where is the boat?")[0] == 81


def test_a_conversation_that_grows_too_long_keeps_its_newest_messages_and_their_vectors() -> None:
    random = np.random.default_rng(7)
    stream = MessageStream()
    stream.max_bytes = MAX_BYTES
    vectors = {seq: random.standard_normal(64).astype(np.float32) for seq in range(1, 2_001)}
    for seq, vector in vectors.items():
        vectors[seq] = vector / np.linalg.norm(vector)
        stream.append([said(seq, f"number {seq} " + "of a boat " * 300)])
        stream.add(StreamDelta(length=UNKNOWN, vectors=[(seq, packed(vectors[seq]))]))
        if seq % 100 == 0:
            index = stream.indexed(UTC)
            assert (len(index.stored_from(0)), stream.unindexed_bytes) == (len(stream.messages), 0)
    assert stream.nbytes <= MAX_BYTES
    assert stream.is_embedded
    assert stream.count == 2_000
    first = stream.messages[0].seq
    assert [each.seq for each in stream.messages] == [*range(first, 2_001)]
    assert found(stream, "number 1999")[0] == 1_999
    everything = np.ones(len(stream.messages), np.bool_)
    [hit] = index.search("Which boat is it?", vectors[1_950], 1, everything)
    assert stream.messages[hit.row].seq == 1_950


async def test_of_a_long_conversation_the_newest_messages_are_read(memory: Memory) -> None:
    history = await ChatHistory.read(memory.histories, HERE)
    for number in range(80):
        await history.append_user_message(f"number {number} " + "of a boat " * 1_000, 1.7e9)
    memory.scopes.conversation_bytes = 400_000
    memory.scopes.drop(HERE)
    history = await ChatHistory.read(memory.histories, HERE)
    assert 20 <= len(history.messages) < 60
    newest = await history.append_user_message("The harbour is in Oulu", 1.7e9)
    assert await found_alone(history, "harbour Oulu", 1) == [newest.seq - 1]
    assert newest.seq == 81


class Queue(asyncio.Lock):
    """A lock that tells when it was asked for three times."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = asyncio.Semaphore(3)
        self.is_full = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        await self._asked.acquire()
        if self._asked.locked():
            self.is_full.set()
        return await super().acquire()


async def test_long_conversations_are_read_one_after_the_other(memory: Memory) -> None:
    """Six of 10,000 long messages of made-up words take 500 MB at once."""
    long, turn = [Scope.of_chat(8), Scope.of_chat(9)], Queue()
    for scope in (HERE, *long):
        texts = (f"number {n} " + "of a boat " * 1_500 for n in range(2 if scope == HERE else 410))
        await store(memory, [said(0, text) for text in texts], scope)
    memory.scopes.reading_long = turn
    async with turn:
        reading = [asyncio.create_task(ChatHistory.read(memory.histories, scope)) for scope in long]
        await ChatHistory.read(memory.histories, HERE)
        await turn.is_full.wait()
        assert not any(each.done() for each in reading)
    for history in await asyncio.gather(*reading):
        assert len(await found_alone(history, "number 409", 1)) == 1


async def test_the_vectors_of_a_long_conversation_do_not_wait_for_its_end(memory: Memory) -> None:
    width, count, missing = 1_024, 6_000, 500
    await store(memory, [said(0, f"number {n}") for n in range(count)], HERE)
    keys, row = memory.keys.scope(HERE), bytes(4 + width)
    embedded = range(missing + 1, count + 1)  # so pages of vectors are ahead of those of messages
    rows = [("XADD", keys.vectors, f"{seq}-0", "v", row) for seq in embedded]
    await memory.client.pipeline([("HSET", keys.meta, "vector_fingerprint", "x"), *rows])
    tracemalloc.start()
    try:
        _, stream = await memory.scopes.read_messages(HERE)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(stream.indexed(UTC).stored_from(0)) == count - missing
    assert most - held < 1.4 * count * width


DIMENSIONS = 512
MESSAGES = 2_000
MAX_MESSAGE_BYTES = 1_600
"""The words of 10,000 messages take about 500 bytes a message more, those of 100,000 about 100."""


def test_a_warm_message_takes_at_most_1600_bytes_beside_the_vocabulary() -> None:
    random = Random(7)
    vocabulary = ["".join(random.choices("aeioulnrst", k=5)) for _ in range(300)]
    texts = [" ".join(random.choices(vocabulary, k=33)) for _ in range(MESSAGES)]
    rows = [(seq, random.randbytes(4 + DIMENSIONS)) for seq in range(1, MESSAGES + 1)]

    def searched() -> MessageStream:
        stream = MessageStream()
        for seq, text in enumerate(texts, 1):
            # As when a message is read: nothing of it is shared with another one.
            said = Message(seq, seq // 2, "user", "".join(list(text)), 1.7e9 + seq, 2**40 + seq)
            stream.append([said])
        stream.add(StreamDelta(length=UNKNOWN, vectors=rows))
        stream.indexed(UTC).search(texts[0], None, 8)
        gc.collect()  # what is waiting for it may be a tenth of the whole
        return stream

    searched()  # fills the cache of stems, whose table may take 2.6 MB when it grows
    tracemalloc.start()
    try:
        stream = searched()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(stream.indexed(UTC).stored_from(0)) == MESSAGES
    assert held / MESSAGES <= MAX_MESSAGE_BYTES
    assert stream.nbytes / MESSAGES <= MAX_MESSAGE_BYTES


def test_a_first_message_of_any_time_has_a_day() -> None:
    stream = MessageStream()
    stream.append([Message(1, 1, "user", "a", -100.0)])
    assert len(stream.indexed(UTC)) == 1
