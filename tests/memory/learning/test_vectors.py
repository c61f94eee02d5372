"""Vectors follow the log in order, without gaps, all of one model; trouble delays them."""

from collections.abc import Sequence
from time import time

import pytest

from memory.erasure.jobs import Job
from memory.learning.progress import progress_of
from memory.learning.vectors import VectorLearner
from memory.memory import Memory
from memory.message import Message
from memory.queue.turn_store import LEARN_LATE_S
from memory.scopes.log import seq_of
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.client import RedisClient
from tests.memory.conftest import OPTIONS, memory_of
from tests.memory.turns import (
    ANN,
    BOB,
    GROUP,
    HERE,
    begin,
    carry_out,
    close,
    end_pauses,
    exchange,
    exchange_of,
    history_of,
    read_by,
    store,
    texts,
    turn_of,
)
from tests.memory.words_embedder import DIMENSIONS, WordsEmbedder

LONG = 300  # messages: more than two batches


def beside(memory: Memory, embedder: WordsEmbedder) -> Memory:
    """Return another process with another embedding model."""
    return memory_of(memory.client, embedder)


async def say(memory: Memory, *texts: str) -> None:
    history = await history_of(memory)
    for text in texts:
        await history.append_user_message(text, 1000.0, sender_id=ANN, sender_name="Ann")


async def say_much(memory: Memory) -> None:
    said = (Message(0, 0, "user", f"text {n}", 1000.0, ANN, "Ann") for n in range(LONG))
    await store(memory, [*said])


async def embed(memory: Memory, embedder: WordsEmbedder) -> int:
    """Embed the messages without the lease, so that other learners may race."""
    progress = await progress_of(memory.scopes, HERE)
    return await VectorLearner(memory.scopes, embedder).learn_messages(progress)


async def vectors(memory: Memory) -> list[tuple[int, int]]:
    """Return (sequence, dimensions) of each stored vector."""
    stored = await memory.client.call("XRANGE", memory.keys.scope(HERE).vectors, "-", "+")
    return [(seq_of(entry), len(fields[b"v"]) - 4) for entry, fields in stored]


def all_of(last: int, dimensions: int = DIMENSIONS) -> Sequence[tuple[int, int]]:
    return [(seq, dimensions) for seq in range(1, last + 1)]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Message(1, 1, "user", "Hello", 0.0, 7, "Ann"), "Ann: Hello"),
        (Message(1, 1, "user", "Hello", 0.0), "user: Hello"),
        (Message(2, 1, "assistant", "Hi", 0.0), "assistant: Hi"),
    ],
)
def test_a_message_is_embedded_with_its_speaker_not_its_date(message: Message, text: str) -> None:
    assert message.embedded_text == text


async def test_every_message_gets_its_vector_once(memory: Memory, embedder: WordsEmbedder) -> None:
    assert ((await memory.learn(HERE)).messages, embedder.calls) == (0, [])
    await say(memory, "one", "two")
    assert [(await memory.learn(HERE)).messages, (await memory.learn(HERE)).messages] == [2, 0]
    await say(memory, "three")
    assert (await memory.learn(HERE)).messages == 1
    assert [text.split(": ")[1] for text in embedder.texts] == ["one", "two", "three"]
    assert await vectors(memory) == all_of(3)


async def test_without_a_model_nothing_is_embedded(store: RedisClient) -> None:
    memory = memory_of(store)
    await say(memory, "one")
    assert (await memory.learn(HERE)).messages == 0
    assert await vectors(memory) == []


async def test_texts_stored_before_a_failure_are_not_embedded_again(
    memory: Memory, embedder: WordsEmbedder
) -> None:
    await say_much(memory)
    embedder.fails_at = 2
    with pytest.raises(EmbeddingsUnavailable):
        await memory.learn(HERE)
    stored = len(await vectors(memory))
    assert 0 < stored < LONG
    await end_pauses(memory)
    assert (await memory.learn(HERE)).messages == LONG - stored
    wanted = [f"text {number}" for number in range(LONG)]
    assert [text.split(": ")[1] for text in embedder.texts] == wanted
    assert await vectors(memory) == all_of(LONG)


async def test_racing_learners_store_vectors_once(memory: Memory, embedder: WordsEmbedder) -> None:
    await say_much(memory)
    other = WordsEmbedder()

    async def learn_beside() -> None:
        await embed(memory, other)
        await say(memory, "and one more")
        await embed(memory, other)

    embedder.meanwhile = learn_beside
    await memory.learn(HERE)
    assert await vectors(memory) == all_of(LONG + 1)


async def test_the_first_learners_of_a_conversation_may_race(memory: Memory) -> None:
    """Both have read that there are no vectors yet before one of them stores some."""
    await say(memory, "one", "two")
    other = beside(memory, WordsEmbedder())
    progress = await progress_of(other.scopes, HERE)
    assert await embed(memory, WordsEmbedder()) == 2
    assert await VectorLearner(other.scopes, WordsEmbedder()).learn_messages(progress) == 2
    assert await vectors(memory) == all_of(2)


async def test_another_model_embeds_from_the_first_message(memory: Memory) -> None:
    await say_much(memory)
    await memory.learn(HERE)
    larger = WordsEmbedder("larger", dimensions=256)
    assert await embed(memory, larger) == LONG
    assert len(larger.texts) == LONG
    assert await vectors(memory) == all_of(LONG, 256)
    [fingerprint] = await memory.store.read_meta(HERE, "vector_fingerprint")
    assert fingerprint == b"larger | speaker words"  # with another recipe it is another one, too


async def test_processes_with_two_models_replace_each_others_vectors_once(memory: Memory) -> None:
    await say(memory, "one", "two")
    models = (WordsEmbedder(), WordsEmbedder("larger", dimensions=256))
    learners, learned = [VectorLearner(memory.scopes, each) for each in models], []
    for learner in learners * 3:
        progress = await progress_of(memory.scopes, HERE)
        learned.append(await learner.learn_messages(progress))
    assert learned == [2, 2, 2, 0, 0, 0]


async def test_vectors_of_an_unknown_model_are_replaced(memory: Memory) -> None:
    """The name of the model is lost with the metadata."""
    await say(memory, "one")
    await memory.learn(HERE)
    keys, of_another = memory.keys.scope(HERE), bytes(4 + DIMENSIONS)
    await memory.client.call("HDEL", keys.meta, "vector_fingerprint")
    await memory.client.call("DEL", keys.vectors)
    await memory.client.call("XADD", keys.vectors, "1-0", "v", of_another)
    await memory.learn(HERE)
    [(_, stored)] = await memory.client.call("XRANGE", keys.vectors, "-", "+")
    assert stored[b"v"] != of_another


async def test_an_old_models_batch_is_refused(memory: Memory, embedder: WordsEmbedder) -> None:
    await say_much(memory)
    larger = WordsEmbedder("larger", dimensions=256)

    async def replace_model() -> None:
        await embed(memory, larger)

    embedder.meanwhile = replace_model
    assert (await memory.learn(HERE)).messages == 0
    assert await vectors(memory) == all_of(LONG, 256)


async def test_a_cached_chat_works_on_if_its_model_changes_under_the_same_name(
    memory: Memory, embedder: WordsEmbedder
) -> None:
    async def first_found(update_id: int) -> int:
        turn = await turn_of(memory, update_id)
        found = await (await read_by(memory, turn)).search("boat", 8)
        await close(memory, turn)
        await memory.learn(HERE)
        return found[0].seq

    await say(memory, "My boat is called Aurora")
    await memory.learn(HERE)
    assert await first_found(1) == 1
    embedder.dimensions = 64
    assert await first_found(2) == 1
    await memory.learn(HERE)
    assert (await first_found(3), await first_found(4)) == (1, 1)
    assert await vectors(memory) == all_of(9, 64)


async def test_a_batch_beyond_a_gap_is_refused(memory: Memory, embedder: WordsEmbedder) -> None:
    """All vectors may have been replaced and started again while a later batch was embedded."""
    await say_much(memory)
    embedder.fails_at = 3
    with pytest.raises(EmbeddingsUnavailable):
        await memory.learn(HERE)
    larger, same = WordsEmbedder("larger"), WordsEmbedder()
    same.fails_at = 2

    async def there_and_back() -> None:
        await embed(memory, larger)
        with pytest.raises(EmbeddingsUnavailable):
            await embed(memory, same)

    embedder.meanwhile = there_and_back
    await end_pauses(memory)
    assert (await memory.learn(HERE)).messages == 0
    stored = len(await vectors(memory))
    assert 0 < stored < LONG
    assert (await memory.learn(HERE)).messages == LONG - stored
    assert await vectors(memory) == all_of(LONG)


async def test_no_vector_is_stored_for_a_message_that_was_cleared_meanwhile(
    memory: Memory, embedder: WordsEmbedder
) -> None:
    await say(memory, "My boat is called Aurora")

    async def clear() -> None:
        await (await history_of(memory)).clear()

    embedder.meanwhile = clear
    assert (await memory.learn(HERE)).messages == 0
    assert await vectors(memory) == []
    await say(memory, "Hello")
    await memory.learn(HERE)
    assert await vectors(memory) == [(2, DIMENSIONS)]


async def test_learning_that_another_erasure_interrupted_continues_soon(
    memory: Memory, embedder: WordsEmbedder
) -> None:
    for update_id, sender in ((1, BOB), (2, ANN)):
        await exchange(memory, update_id, GROUP, sender=sender)

    async def forget_bob() -> None:
        await carry_out(memory, Job("job", "forget", BOB, 10, 2_000.0, b""))

    embedder.meanwhile = forget_bob
    assert (await memory.learn(GROUP)).messages == 0
    due = await memory.client.call("ZSCORE", memory.keys.learning, GROUP.tag)
    assert due is not None
    assert 0 < due - time() < 10
    assert (await memory.learn(GROUP)).messages == len(await texts(memory, GROUP)) > 0
    assert not await memory.client.call("EXISTS", memory.keys.learning)


async def test_four_turns_share_one_request_and_after_a_pause_all_is_embedded(
    memory: Memory, embedder: WordsEmbedder
) -> None:
    requests = []
    for number in range(1, 6):
        turn = await begin(memory, number)
        history, said = await read_by(memory, turn), exchange_of(turn)
        await memory.turns.write_outbox(turn, b"[]")
        committed = await memory.turns.commit(turn, said, memory.scopes.cursor(HERE))
        history.committed(said, committed.exchange, committed.first_seq)
        memory.turns.learning_due[HERE] -= number  # seconds: the process is busy
        requests.append((await memory.learn(HERE)).messages)
    assert requests == [0, 0, 0, 8, 0]
    assert (await memory.learn(HERE)).messages == 2  # as maintenance does when the talk pauses
    assert len(embedder.texts) == 10


async def test_a_round_that_had_to_wait_sends_nothing_that_another_process_has_erased(
    memory: Memory, embedder: WordsEmbedder
) -> None:
    await say(memory, "Hello")
    await memory.learn(HERE)
    await say(memory, "My boat is called Aurora")
    await history_of(memory)
    memory.turns.learning_due[HERE] = time() + LEARN_LATE_S - 1  # as if it had waited for a second
    await (await history_of(beside(memory, WordsEmbedder()))).clear()
    await memory.learn(HERE)
    assert embedder.texts == ["Ann: Hello"]


async def test_vectors_expire_with_their_conversation(memory: Memory) -> None:
    await exchange(memory, 1)
    await memory.learn(HERE)
    keys = memory.keys.scope(HERE)
    of_log, of_vectors = [
        await memory.client.call("PEXPIRETIME", key) for key in (keys.log, keys.vectors)
    ]
    assert 0 < of_log <= of_vectors < of_log + OPTIONS.ttl_s * 100  # a tenth of it, in ms
