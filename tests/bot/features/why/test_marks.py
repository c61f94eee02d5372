"""The mark ✍ stands on messages that a fact came from, and on no others."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import time

from bot.features.why.marks import LearnedMarks
from bot.runtime.background_learner import BackgroundLearner
from memory.behaviors.context import CallContext, Person
from memory.memory import Memory
from memory.scopes.changes import Write
from memory.scopes.entries import THE_ONE_BEFORE, Ended, Fact, ScopeEntry
from memory.scopes.sources import Source
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from tests.conftest import Doomed
from tests.memory.clients import DyingClient
from tests.memory.turns import ANN, ANNS, HERE, begin, exchange_of
from tests.quiet_chat import QuietChat

TOPIC = Scope.of_chat(ANN, 5)
NOW = time()


@dataclass
class Reactions(QuietChat):
    """A chat that knows which messages have the mark."""

    marked: set[int] = field(default_factory=set)
    has_no_permit: int = 0
    """How often a reaction still has to wait."""

    async def react(self, chat_id: int, message_id: int, emoji: str) -> bool:
        assert chat_id == ANN
        if self.has_no_permit:
            self.has_no_permit -= 1
            return False
        self.marked.add(message_id) if emoji else self.marked.discard(message_id)
        return True


async def say(memory: Memory, *message_ids: int, conversation: Scope = HERE) -> None:
    """Commit an exchange for each message, in one turn."""
    turn = await begin(memory, min(message_ids), conversation)
    said, answer = exchange_of(turn)
    messages = [
        each
        for id_ in message_ids
        for each in (replace(said, message_ids=(id_,), sent_at=NOW), replace(answer, sent_at=NOW))
    ]
    await memory.turns.commit(turn, messages, memory.histories.cursor(conversation))


async def learn(memory: Memory, *entries: ScopeEntry) -> None:
    await memory.scopes.write(await memory.scopes.read(ANNS), Write(entries))
    await memory.scopes.read(ANNS)  # as embedding does before the marks are shown


def fact(text: str, seq: int, conversation: Scope = HERE) -> Fact:
    return Fact(0, text, (Source(conversation.tag, seq, 0, ANN),), NOW)


async def test_a_mark_goes_before_its_fact_but_stays_for_another_one(memory: Memory) -> None:
    marks = LearnedMarks(memory, chat := Reactions())
    await say(memory, 101, 103)
    await say(memory, 201, conversation=TOPIC)
    await learn(memory, fact("sails", 1), fact("rows", 1), fact("sings", 3))
    await learn(memory, fact("swims", 1, TOPIC))
    await marks.show(HERE)
    await marks.show(TOPIC)
    assert chat.marked == {101, 103, 201}
    await marks.leave_fact(HERE, 1)
    assert chat.marked == {101, 103, 201}
    await memory.correcting.delete_fact(HERE, 1)
    for id_ in (2, 4):  # the second one was said in another topic
        await marks.leave_fact(HERE, id_)
    assert chat.marked == {103}
    await marks.leave_messages(HERE, [1, 3])
    assert chat.marked == set()


async def test_an_edited_fact_shows_no_mark_and_a_replaced_one_gives_it_up(memory: Memory) -> None:
    marks = LearnedMarks(memory, chat := Reactions())
    await say(memory, 101, 103, 105)
    await learn(memory, fact("sails", 1), fact("lives in Graz", 3))
    await marks.show(HERE)
    await marks.leave_fact(HERE, 1)
    await memory.correcting.edit_fact(HERE, 1, "rows", ANN)
    await learn(memory, fact("lives in Linz", 5), Ended(2, NOW, THE_ONE_BEFORE))
    await marks.show(HERE)
    assert chat.marked == {105}


async def test_a_message_is_marked_and_unmarked_however_many_follow_it(memory: Memory) -> None:
    marks = LearnedMarks(memory, chat := Reactions())
    await say(memory, *range(101, 251))
    await learn(memory, fact("sails", 1))
    await marks.show(HERE)
    assert chat.marked == {101}
    await marks.leave_all(CallContext(HERE, Person(), 0))
    assert chat.marked == set()


async def test_a_mark_without_a_permit_comes_when_there_is_one(memory: Memory) -> None:
    """It does not wait until there is more to learn; a process that stops does not wait for it."""
    await say(memory, 101)
    await learn(memory, fact("sails", 1))
    chat = Reactions(has_no_permit=3)
    learner = BackgroundLearner(memory.learn, [LearnedMarks(memory, chat).show], after_again_s=0)
    learner.learn(HERE)
    await asyncio.gather(*learner.running.values())
    assert chat.marked == {101}
    assert chat.has_no_permit == 0
    waiting = BackgroundLearner(
        memory.learn, [LearnedMarks(memory, Reactions(has_no_permit=99)).show], after_again_s=3_600
    )
    waiting.learn(HERE)
    await waiting.stop(grace_s=60)


async def test_wherever_a_process_dies_the_next_learning_shows_the_mark(
    memory: Memory, dying: DyingClient, doomed: Doomed
) -> None:
    await say(memory, 101)
    await learn(memory, fact("sails", 1))
    meta = memory.keys.scope(HERE).meta
    for steps in dying.deaths():  # noqa: B007 - the last is looked at below
        await memory.client.call("HDEL", meta, "marked")
        chat = Reactions()
        with suppress(StoreUnavailable):
            await LearnedMarks(doomed(), chat).show(HERE)
        assert await LearnedMarks(memory, chat).show(HERE)
        assert chat.marked == {101}
        assert await memory.client.call("HGET", meta, "marked") == b"1"
    assert steps > 2
