"""What is dropped when Redis is full, and what never is."""

from collections.abc import Sequence
from functools import partial
from time import time

from memory.behaviors.learning_behavior import LearningBehavior
from memory.learning.learner import LearningConfig
from memory.learning.progress import watermark_place
from memory.limits.dropping import Dropped, Dropping, WatermarkPlace
from memory.limits.stats import count_conversation
from memory.memory import Memory
from memory.scopes.changes import Revision
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from tests.memory.conftest import OPTIONS
from tests.memory.learning.scripted import Notes, ScriptedModel
from tests.memory.limits.admins import Admins
from tests.memory.limits.conftest import REDIS_BYTES
from tests.memory.limits.filling import fill
from tests.memory.limits.old_days import DAY_S, OldDays
from tests.memory.words_embedder import WordsEmbedder
from tests.valkey import ValkeyServer

ANN, BOB, GROUP = (Scope.of_chat(chat) for chat in (7, 8, -9))
STAMP = "words:512"


async def stored(memory: Memory, *conversations: Scope) -> list[tuple[int, int]]:
    counts = [await count_conversation(memory.client, memory.keys, each) for each in conversations]
    return [(stats.messages, stats.vectors) for stats in counts]


async def seqs(memory: Memory, conversation: Scope) -> list[int]:
    log = await memory.client.call("XRANGE", memory.keys.scope(conversation).log, "-", "+")
    return [int(entry.partition(b"-")[0]) for entry, _ in log]


async def all_steps(dropping: Dropping) -> list[Dropped]:
    return [dropped async for dropped in dropping.steps()]


async def old_talk(
    old_days: OldDays, conversation: Scope, exchanges: int, days_ago: float, fingerprint: str = ""
) -> None:
    since = time() - days_ago * DAY_S
    sender = abs(conversation.chat_id)
    until = since + DAY_S / 2
    await old_days.talk(
        conversation, exchanges, since=since, until=until, sender=sender, fingerprint=fingerprint
    )


def places(behaviors: Sequence[LearningBehavior]) -> list[WatermarkPlace]:
    return [partial(watermark_place, behavior) for behavior in behaviors]


async def test_vectors_are_dropped_first_beginning_with_the_least_active_conversation(
    memory: Memory, old_days: OldDays
) -> None:
    for conversation, days_ago in ((GROUP, 3), (ANN, 9), (BOB, 1)):
        await old_talk(old_days, conversation, 700, days_ago, STAMP)
    await fill(memory, 0.91)
    await memory.capacity.check(Admins().tell)
    assert await stored(memory, ANN, GROUP, BOB) == [(1400, 0), (1400, 1400), (1400, 1400)]
    stats = await memory.capacity.stats()
    assert (stats.dropped, stats.fill_level.share < 0.9) == (Dropped(vectors=1400), True)
    counted = await count_conversation(memory.client, memory.keys, ANN)
    assert counted.dropped == Dropped(vectors=1400)


async def test_messages_without_vectors_are_still_found_by_words(
    memory: Memory, old_days: OldDays
) -> None:
    await old_talk(old_days, ANN, 100, 9, STAMP)
    history = await ChatHistory.read(memory.histories, ANN)
    await history.append_user_message("The zebra ate my rhubarb", time())
    await memory.scripts["drop_vectors"](memory.keys.scope(ANN).all)
    found = await history.search("Who ate the rhubarb?", 3)
    assert found[0].messages[0].text == "The zebra ate my rhubarb"


async def test_dropped_vectors_are_embedded_again_only_when_there_is_much_space(
    memory: Memory, old_days: OldDays, embedder: WordsEmbedder, small_server: ValkeyServer
) -> None:
    small_server.ask(f"CONFIG SET maxmemory {2 * REDIS_BYTES}")
    await old_talk(old_days, ANN, 10, 9, STAMP)
    await memory.scripts["drop_vectors"](memory.keys.scope(ANN).all)
    await memory.client.call("HSET", memory.keys.capacity, "lexical_only", 1)
    await old_talk(old_days, ANN, 10, 1)
    assert (await memory.learn(ANN)).messages == 0
    assert await stored(memory, ANN) == [(40, 0)]

    await memory.capacity.check(Admins().tell)
    assert await memory.sweep.take_late_learning(9) == [ANN]
    assert (await memory.learn(ANN)).messages == 40
    assert await stored(memory, ANN) == [(40, 40)]
    assert len(embedder.texts) == 40


async def test_vectors_that_arrive_after_the_drop_are_not_stored(
    memory: Memory, old_days: OldDays, embedder: WordsEmbedder
) -> None:
    async def meanwhile() -> None:
        await memory.scripts["drop_vectors"](memory.keys.scope(ANN).all)

    await old_talk(old_days, ANN, 10, 9)
    embedder.meanwhile = meanwhile
    await memory.learn(ANN)
    assert await stored(memory, ANN) == [(20, 0)]


async def test_a_clear_lets_a_conversation_be_embedded_again(
    memory: Memory, old_days: OldDays
) -> None:
    await old_talk(old_days, ANN, 10, 9, STAMP)
    await memory.scripts["drop_vectors"](memory.keys.scope(ANN).all)
    history = await ChatHistory.read(memory.histories, ANN)
    await history.clear()
    await history.append_user_message("Hello again", time())
    assert (await memory.learn(ANN)).messages == 1
    counted = await count_conversation(memory.client, memory.keys, ANN)
    assert counted.dropped == Dropped()


async def test_messages_are_dropped_by_age_over_all_conversations(
    memory: Memory, old_days: OldDays
) -> None:
    for conversation, days_ago in ((ANN, 9), (BOB, 1), (GROUP, 5)):
        await old_talk(old_days, conversation, 300, days_ago)
    went: list[Scope] = []
    before = await stored(memory, ANN, BOB, GROUP)
    async for _ in Dropping(memory.store, OPTIONS.tail).steps():
        after = await stored(memory, ANN, BOB, GROUP)
        changed = [
            each
            for each, was, now in zip((ANN, BOB, GROUP), before, after, strict=True)
            if was != now
        ]
        went += changed
        before = after
    assert list(dict.fromkeys(went)) == [ANN, GROUP, BOB]
    assert went == sorted(went, key=[ANN, GROUP, BOB].index)


async def test_the_window_stays_and_has_no_gap(memory: Memory, old_days: OldDays) -> None:
    await old_talk(old_days, ANN, 300, 9)
    await old_talk(old_days, BOB, OPTIONS.tail // 2, 9)
    dropped = sum(await all_steps(Dropping(memory.store, OPTIONS.tail)), Dropped())
    kept = await seqs(memory, ANN)
    assert kept == list(range(dropped.messages + 1, 601))
    assert OPTIONS.tail <= len(kept) < OPTIONS.tail + 100  # a node of a stream goes whole
    assert await stored(memory, BOB) == [(OPTIONS.tail, 0)]
    assert await all_steps(Dropping(memory.store, OPTIONS.tail)) == []


async def test_a_message_stays_until_every_behavior_has_learned_from_it(
    memory: Memory, old_days: OldDays
) -> None:
    behaviors = [Notes("diary"), Notes("facts", is_personal=True)]
    dropping = Dropping(memory.store, OPTIONS.tail, places(behaviors))
    await old_talk(old_days, ANN, 300, 9)
    assert await all_steps(dropping) == []
    await old_days.learned(ANN, 500, "diary")
    assert await all_steps(dropping) == []
    scope, learner = watermark_place(behaviors[1], ANN, (await memory.scopes.read(ANN)).generation)
    await old_days.learned(scope, 200, learner)
    assert await all_steps(dropping) != []
    first = (await seqs(memory, ANN))[0]
    assert 100 < first <= 201


async def test_progress_from_before_an_expiry_does_not_let_messages_be_dropped(
    memory: Memory, old_days: OldDays
) -> None:
    dropping = Dropping(
        memory.store, OPTIONS.tail, places([facts := Notes("facts", is_personal=True)])
    )
    await old_talk(old_days, ANN, 300, 9)
    scope, learner = watermark_place(facts, ANN, (await memory.scopes.read(ANN)).generation)
    await old_days.learned(scope, 600, learner)
    await memory.client.call("DEL", *memory.keys.scope(ANN).all)
    await old_talk(old_days, ANN, 300, 3)
    assert await all_steps(dropping) == []


async def test_dropping_reads_the_progress_of_learning(memory: Memory) -> None:
    """Learning writes them."""
    behaviors = [Notes("diary", 1), Notes("facts", 1, is_personal=True)]
    model = ScriptedModel()
    model.parts = {each.name: {"text": "Ann rows."} for each in behaviors}
    memory.enable_learning(LearningConfig(behaviors, model))
    history = await ChatHistory.read(memory.histories, ANN)
    for at in range(60):
        await history.append_user_message(f"I rowed {at} miles", time() - 100)
        await history.append_assistant_message("Well done", time() - 100)
    dropping = Dropping(memory.store, 10, places(behaviors))
    assert await all_steps(dropping) == []
    await memory.learn(ANN)
    dropped = await all_steps(dropping)
    assert sum(step.messages for step in dropped) > 0


async def test_a_step_decided_before_an_erasure_drops_nothing(
    memory: Memory, old_days: OldDays
) -> None:
    await old_talk(old_days, ANN, 100, 9)
    await memory.scopes.erase(ANN, Revision(messages=[200]))
    assert await _step(memory, "0", "0") == [0, 0]
    assert (await _step(memory, "0", "1"))[0] > 0


async def _step(memory: Memory, epoch: str, erasure: str) -> Sequence[int]:
    keys = memory.keys.scope(ANN).all
    counts: Sequence[int] = await memory.scripts["drop_messages"](
        keys, {"epoch": epoch, "erasure": erasure, "keep": 150, "window": OPTIONS.tail}
    )
    return counts
