"""A turn that fails again and again ends with a notice, whatever it was that failed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.reply.parts import Part
from bot.telegram.updates import IncomingMessage, to_bytes
from bot.turn.outbox import Outbox
from bot.turn.setting_aside import MAX_FAILURES, UNSEEN, SetAside, is_given_up
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.queue.open_turn import OpenTurn
from memory.store.keys import Scope
from tests.bot.telegram import raw
from tests.memory.conftest import memory
from tests.memory.turns import take

__all__ = ["memory"]

TOPIC = Scope.of_chat(-1005, 3)
GARBAGE = b"[not a message"
REPLY = Outbox(7, 0, 0, (Part("yes"),), said="yes").to_bytes()
NOTICE = Outbox(7, 0, 0, (Part("slower"),), unread=True).to_bytes()


def apologise(mail: Sequence[IncomingMessage], reference: str) -> Outbox:
    asked = mail[-1]
    return Outbox(
        asked.chat_id, asked.topic_id, asked.message_id, (Part(f"sorry {reference}"),), said="sorry"
    )


async def turn_of(memory: Memory, body: bytes, conversation: Scope) -> OpenTurn:
    await memory.mailbox.put(conversation, Entry(1, 7, is_command=False, body=body))
    return await take(memory, conversation)


async def given_up(memory: Memory, turn: OpenTurn) -> Outbox:
    return await SetAside(memory.dead_letters, apologise).outbox_of(turn)


@pytest.mark.parametrize(
    ("attempts", "failures", "outbox", "expected"),
    [
        (MAX_FAILURES - 1, MAX_FAILURES - 1, b"", False),
        (MAX_FAILURES, 0, b"", True),
        (MAX_FAILURES, 0, REPLY, False),
        (MAX_FAILURES, MAX_FAILURES, REPLY, True),
        (1, 0, NOTICE, True),
    ],
    ids=["not yet", "nobody came to a reply", "parked often", "not deliverable", "a notice"],
)
async def test_a_turn_is_given_up(
    memory: Memory, attempts: int, failures: int, outbox: bytes, *, expected: bool
) -> None:
    turn = await turn_of(memory, GARBAGE, TOPIC)
    turn = replace(turn, attempts=attempts, failures=failures, outbox=outbox)
    assert is_given_up(turn) is expected


async def test_the_notice_answers_the_message_and_nothing_of_the_turn_is_remembered(
    memory: Memory,
) -> None:
    inbound = replace(raw.inbound(raw.message("Hello")), message_id=55)
    turn = await turn_of(memory, to_bytes(inbound), Scope.of_chat(7))
    outbox = await given_up(memory, replace(turn, error="ValueError"))
    assert outbox == Outbox(7, 0, 55, (Part("sorry 1"),), said="sorry", unread=True)
    [letter] = await memory.dead_letters.listed()
    assert (letter.id, letter.error) == ("1", "ValueError")


async def test_mail_that_cannot_be_read_is_apologised_for_where_it_waits(memory: Memory) -> None:
    outbox = await given_up(memory, await turn_of(memory, GARBAGE, TOPIC))
    assert (outbox.chat_id, outbox.topic_id, outbox.parts) == (-1005, 3, (Part("sorry 1"),))
    [letter] = await memory.dead_letters.listed()
    assert letter.error == UNSEEN


async def test_a_notice_on_its_way_is_not_written_anew(memory: Memory) -> None:
    turn = await turn_of(memory, GARBAGE, TOPIC)
    assert (await given_up(memory, replace(turn, outbox=NOTICE))).to_bytes() == NOTICE
    assert await memory.dead_letters.listed() == []


async def test_where_the_notice_fails_too_the_turn_ends_in_silence(memory: Memory) -> None:
    turn = await turn_of(memory, GARBAGE, TOPIC)
    turn = replace(turn, outbox=NOTICE, failures=MAX_FAILURES + 1)
    assert await given_up(memory, turn) == Outbox(-1005, 3, 0, (), unread=True)
    assert len(await memory.dead_letters.listed()) == 1
