"""Two processes on one store do anything at once, and then both find the same."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC
from random import Random

import pytest

from memory.erasure.jobs import Job, JobKind
from memory.learning.progress import LearnerBusy
from memory.memory import Memory
from memory.message import Message
from memory.queue.open_turn import OpenTurn
from memory.scopes.history import ChatHistory
from memory.scopes.log import seq_of
from memory.search.embeddings import EmbeddingsUnavailable, QuestionVectors, fingerprint_of
from memory.search.message_search import SearchResult
from memory.store.client import RedisClient
from memory.store.errors import LeaseLost
from tests.memory.conftest import memory_of
from tests.memory.turns import ANN, BOB, GROUP, end_pauses, exchange_of, put, read_by, store
from tests.memory.words_embedder import DIMENSIONS, WordsEmbedder

WORDS = ("boat", "Aurora", "oven", "broken", "lighthouse", "Genoa", "tea", "lemon", "red", "blue")
LONG = 300  # messages that are embedded in more than two batches


@pytest.fixture
def two(store: RedisClient) -> tuple[Memory, Memory]:
    one, other = (memory_of(store, WordsEmbedder()) for _ in range(2))
    return one, other


async def history_of(memory: Memory) -> ChatHistory:
    return await ChatHistory.read(memory.histories, GROUP)


async def stored(memory: Memory) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the sequences of messages, and sequence and dimensions of vectors."""
    keys = memory.keys.scope(GROUP)
    reads = [("XRANGE", name, "-", "+") for name in (keys.log, keys.vectors)]
    log, vectors = await memory.client.pipeline(reads)
    rows = [(seq_of(entry), len(fields[b"v"]) - 4) for entry, fields in vectors]
    return [seq_of(entry) for entry, _ in log], rows


def seen(found: Sequence[SearchResult]) -> list[tuple[int, float, list[str]]]:
    return [(r.seq, round(r.score, 3), [m.text for m in r.messages]) for r in found]


async def turned(memory: Memory) -> ChatHistory:
    """Return the history as a turn sees it: what is cached, and what is new."""
    await put(memory, 2**50, GROUP, sender=ANN)
    turn = await memory.turns.acquire(GROUP, memory.scopes.cursor(GROUP))
    assert isinstance(turn, OpenTurn)
    history = await read_by(memory, turn)
    await memory.turns.hand_over(turn.lease)
    return history


class Process:
    """What a process may do at any time. It drops a step that is refused."""

    def __init__(self, memory: Memory, random: Random) -> None:
        self._memory = memory
        self._random = random
        does = [self.turns, self.turns, self.append, self.learn, self.search, self.forget]
        self._does = [*does, self.forget_newest, memory.scopes.drop_erased]

    async def do_something(self) -> None:
        with suppress(LeaseLost):
            await self._random.choice(self._does)()

    def _words(self) -> str:
        return " ".join(self._random.choices(WORDS, k=4))

    async def turns(self) -> None:
        """Take turns as a worker does, with the cache, until no message waits."""
        memory, sender = self._memory, self._random.choice((ANN, BOB))
        await put(memory, self._random.randrange(2**40), GROUP, sender=sender)
        turn = await memory.turns.acquire(GROUP, memory.scopes.cursor(GROUP))
        while isinstance(turn, OpenTurn):
            history = await read_by(memory, turn)
            await history.search(self._words(), 3)
            await memory.turns.write_outbox(turn, b"[]")
            said = exchange_of(turn, self._words())
            committed = await memory.turns.commit(turn, said, memory.scopes.cursor(GROUP))
            history.committed(said, committed.exchange, committed.first_seq)
            turn = committed.then

    async def append(self) -> None:
        """Append without a lease."""
        history = await history_of(self._memory)
        await history.append_user_message(self._words(), 1000.0, sender_id=ANN)

    async def learn(self) -> None:
        with suppress(LearnerBusy):  # it is learned all the same, by the other one
            await self._memory.learn(GROUP)

    async def search(self) -> None:
        await (await history_of(self._memory)).search(self._words(), 3)

    async def forget(self) -> None:
        """Erase single messages: one person's, with the answers to them."""
        job = f"job {self._random.random()}"
        await self._memory.jobs.start_job(Job(job, "forget", BOB, 0, 2000.0, b""))
        await self._memory.jobs.run_job(job)

    async def forget_newest(self) -> None:
        """Erase the newest message, as an edit of it does, or no message."""
        newest = await self._memory.forgetting._newest(GROUP)
        seqs = {newest} if newest and self._random.random() < 0.7 else set[int]()
        receipt = f"receipt {self._random.random()}"
        await self._memory.forgetting.erase_messages(GROUP, seqs, receipt)


@pytest.mark.parametrize("seed", range(12))
async def test_two_processes_give_each_message_one_number_and_one_vector(
    two: tuple[Memory, Memory], seed: int
) -> None:
    random = Random(seed)
    processes = [Process(memory, random) for memory in two]
    for _ in range(25):
        await asyncio.gather(*(process.do_something() for process in processes))
    for memory in two:
        memory.turns.learning_due.clear()  # right after a turn it would wait for more messages
        await memory.learn(GROUP)

    messages, vectors = await stored(two[0])
    assert messages
    assert messages == sorted(set(messages))
    assert vectors == [(seq, DIMENSIONS) for seq in messages]
    one, other = [await turned(memory) for memory in two]
    cold = await history_of(two[0])
    assert [m.seq for m in one.messages] == [m.seq for m in other.messages] == messages
    for word in WORDS:
        found = seen(await cold.search(word, 5))
        assert seen(await one.search(word, 5)) == found
        assert seen(await other.search(word, 5)) == found


async def test_after_a_change_of_model_search_is_lexical_until_all_is_embedded_again(
    two: tuple[Memory, Memory],
) -> None:
    old, _ = two
    others = (" ".join(Random(number).choices(WORDS[1:], k=3)) for number in range(LONG - 1))
    said = (Message(0, 0, "user", text, 1000.0, ANN) for text in (*others, "My boat is blue"))
    await store(old, [*said], GROUP)
    await old.learn(GROUP)
    warm = await turned(old)
    assert (await warm.search("boat", 1))[0].dense > 0

    embedder = WordsEmbedder("larger", dimensions=256)
    embedder.fails_at = 2
    new = memory_of(old.client, embedder)
    with pytest.raises(EmbeddingsUnavailable):
        await new.learn(GROUP)
    _, vectors = await stored(old)
    assert 0 < len(vectors) < LONG
    assert {dimensions for _, dimensions in vectors} == {256}
    for memory in (old, new):
        first, *_ = await (await turned(memory)).search("boat", 1)
        assert (first.seq, first.dense) == (LONG, 0.0)

    again = memory_of(old.client, embedder)
    await end_pauses(again, GROUP)
    await again.learn(GROUP)
    assert len(embedder.texts) == LONG
    _, vectors = await stored(old)
    assert vectors == [(seq, 256) for seq in range(1, LONG + 1)]
    assert (await (await turned(new)).search("boat", 1))[0].dense > 0
    assert (await (await turned(old)).search("boat", 1))[0].dense == 0.0


def read_texts(memory: Memory) -> list[str]:
    """Return the texts of a group that a process has in memory."""
    held = memory.scopes.held.get(GROUP)
    return [each.text for each in held.messages.messages] if held else []


async def say_and_learn(memory: Memory, text: str) -> None:
    await (await history_of(memory)).append_user_message(text, 1000.0, sender_id=ANN)
    memory.turns.learning_due.clear()
    await memory.learn(GROUP)


async def hear_of_erasures(processes: Sequence[Memory]) -> None:
    for memory in processes:
        await memory.scopes.drop_erased()


@pytest.mark.parametrize("kind", ["chat", "forget"])
async def test_every_process_drops_what_one_process_has_erased(
    two: tuple[Memory, Memory], kind: JobKind
) -> None:
    """At once, not only at the next turn of the conversation."""
    one = two[0]
    await (await history_of(one)).append_user_message("My boat is blue", 1000.0, sender_id=ANN)
    for memory in two:
        await turned(memory)
        await memory.scopes.read(GROUP)
    assert [read_texts(memory) for memory in two] == [["My boat is blue"]] * 2
    target = GROUP.chat_id if kind == "chat" else ANN
    await one.jobs.start_job(Job("job", kind, target, 2**60, 2000.0, b""))
    await one.jobs.run_job("job")
    await hear_of_erasures(two)
    assert [read_texts(memory) for memory in two] == [[], []]


async def test_after_an_erasure_of_what_no_search_has_indexed_nothing_is_read_or_indexed_again(
    two: tuple[Memory, Memory],
) -> None:
    """An edit erases the newest exchange; a correction of a fact erases no message."""
    one, other = two
    await store(one, [Message(0, 0, "user", text, 1000.0, ANN) for text in WORDS], GROUP)
    await one.learn(GROUP)
    for memory in two:
        await (await turned(memory)).search("boat", 3)
    streams = [memory.scopes.held[GROUP].messages for memory in two]
    indexes = [stream.indexed(UTC) for stream in streams]
    await say_and_learn(one, "My boat is secret")
    for memory in two:
        await history_of(memory)
    await one.forgetting.erase_messages(GROUP, {11}, "receipt")
    await hear_of_erasures(two)
    await one.forgetting.erase_messages(GROUP, (), "another")
    await hear_of_erasures(two)
    assert [stream.unindexed_bytes for stream in streams] == [0, 0]
    await say_and_learn(one, "My boat is red")
    cold = seen(await (await history_of(memory_of(one.client, WordsEmbedder()))).search("boat", 9))
    for memory, stream, index in zip(two, streams, indexes, strict=True):
        assert seen(await (await turned(memory)).search("boat", 9)) == cold
        assert memory.scopes.held[GROUP].messages is stream
        assert stream.indexed(UTC) is index
    await one.forgetting.erase_messages(GROUP, {1}, "a third")
    await hear_of_erasures(two)
    assert [memory.scopes.held.get(GROUP) for memory in two] == [None, None]
    assert other.store.erased.is_set()  # if it has the embedded server, that rewrites its file
    await turned(other)
    await hear_of_erasures(two)  # of none
    assert read_texts(other) == [*WORDS[1:], "My boat is red"]


async def test_questions_are_dropped_with_any_erasure() -> None:
    """It is not known which scope a question belongs to."""
    embedder = WordsEmbedder()
    questions = QuestionVectors(embedder)
    asked = ("Where is my boat?", fingerprint_of(embedder, ""), "")
    for _ in range(2):
        await questions.vector(*asked)
    assert len(embedder.calls) == 1
    questions.forget()
    await asyncio.sleep(0)
    await questions.vector(*asked)
    assert len(embedder.calls) == 2
