"""A turn that fails repeatedly ends with a notice, whatever the failure was."""

from dataclasses import replace

import pytest

from bot.commands.access import Access, Operators
from bot.commands.bot_command import ShownOnTop
from bot.commands.general import RetryCommand
from bot.reply.parts import Part
from bot.telegram.chat import Destination
from bot.telegram.updates import Sender, from_bytes, to_bytes
from bot.turn.outbox import Outbox
from bot.turn.turn import MAX_FAILURES, PROCESS_DIED, GiveUp, is_given_up
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.queue.open_turn import OpenTurn
from memory.scopes.log import Cursor
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES
from tests.bot.telegram import raw
from tests.memory.turns import take
from tests.quiet_chat import QuietChat
from tests.settings import Settings

TOPIC = Scope.of_chat(-1005, 3)
GARBAGE = b"[not a message"
REPLY = Outbox(Destination(7), (Part("yes"),), said="yes").to_bytes()
NOTICE = Outbox(Destination(7), (Part("slower"),), is_unread=True).to_bytes()


APOLOGY = SENTENCES.say("en", "error.apology", reference="1")
APOLOGY_IN_GERMAN = SENTENCES.say("de", "error.apology", reference="1")


async def turn_of(memory: Memory, body: bytes, conversation: Scope) -> OpenTurn:
    await memory.mailbox.put(conversation, Entry(1, 7, is_alone=False, body=body))
    return await take(memory, conversation)


async def given_up(memory: Memory, turn: OpenTurn) -> Outbox:
    return await GiveUp(memory.dead_letters, SENTENCES, lambda _: None).give_up(turn)


@pytest.mark.parametrize(
    ("attempts", "failures", "outbox", "expected"),
    [
        (MAX_FAILURES - 1, MAX_FAILURES - 1, b"", False),
        (MAX_FAILURES, 0, b"", True),
        (MAX_FAILURES, 0, REPLY, False),
        (MAX_FAILURES, MAX_FAILURES, REPLY, True),
        (1, 0, NOTICE, True),
    ],
    ids=["not yet", "no reply was stored", "parked often", "undeliverable", "a notice"],
)
async def test_a_turn_is_given_up_after_its_last_failure(
    memory: Memory, attempts: int, failures: int, outbox: bytes, *, expected: bool
) -> None:
    turn = await turn_of(memory, GARBAGE, TOPIC)
    turn = replace(turn, attempts=attempts, failures=failures, outbox=outbox)
    assert is_given_up(turn) is expected


async def test_the_notice_replies_to_the_message_and_is_not_remembered(memory: Memory) -> None:
    inbound = replace(raw.inbound(raw.message("Hello")), message_id=55, is_group=True)
    turn = await turn_of(memory, to_bytes(inbound), Scope.of_chat(7))
    outbox = await given_up(memory, replace(turn, error="ValueError"))
    assert (outbox.to, outbox.is_unread) == (Destination(7, 0, 55), True)
    assert [replace(part, buttons=()) for part in outbox.parts] == [*APOLOGY_IN_GERMAN]
    [letter] = await memory.dead_letters.listed()
    assert (letter.id, letter.error) == ("1", "ValueError")


async def test_a_stored_message_that_cannot_be_read_gets_an_apology_in_its_conversation(
    memory: Memory,
) -> None:
    outbox = await given_up(memory, await turn_of(memory, GARBAGE, TOPIC))
    assert (outbox.to, outbox.parts) == (Destination(-1005, 3), APOLOGY)
    assert outbox.parts[-1].buttons == ()
    [letter] = await memory.dead_letters.listed()
    assert letter.error == PROCESS_DIED


async def test_a_dead_letter_keeps_no_text_of_what_was_replied_to(memory: Memory) -> None:
    """It may be another person's, whose /forget would not find it. Its id stays."""
    here = Scope.of_chat(7)
    inbound = raw.inbound(raw.message("Why?", reply_to_message=raw.said("I am Ben", raw.OTHER_BOT)))
    assert inbound.reply
    await given_up(memory, await turn_of(memory, to_bytes(inbound), here))
    letters = await memory.client.call("HGETALL", memory.keys.scope(here).dead_letters)
    [member] = [value for value in letters.values() if b"Why?" in value]
    kept = from_bytes(Entry.of_member(member).body)
    assert kept == replace(inbound, reply=None)
    assert kept.replied_to == inbound.reply.message_id


async def test_a_notice_in_the_outbox_is_not_written_again(memory: Memory) -> None:
    turn = await turn_of(memory, GARBAGE, TOPIC)
    assert (await given_up(memory, replace(turn, outbox=NOTICE))).to_bytes() == NOTICE
    assert await memory.dead_letters.listed() == []


async def test_a_turn_ends_silently_if_its_notice_fails_too(memory: Memory) -> None:
    turn = await turn_of(memory, GARBAGE, TOPIC)
    turn = replace(turn, outbox=NOTICE, failures=MAX_FAILURES + 1)
    assert await given_up(memory, turn) == Outbox(Destination(-1005, 3), (), is_unread=True)
    assert len(await memory.dead_letters.listed()) == 1


async def test_the_button_below_the_notice_puts_the_messages_back_once(memory: Memory) -> None:
    inbound = raw.inbound(raw.message("Hello"))
    turn = await turn_of(memory, to_bytes(inbound), TOPIC)
    notice = await given_up(memory, turn)
    await memory.turns.commit(turn, [], Cursor())
    [[button]] = notice.parts[-1].buttons
    assert button.text == SENTENCES.text("de", "buttons.again")
    verb, _, nonce = button.callback_data.partition(":")
    access = Access(QuietChat(), SENTENCES, Operators(memory.store, Settings()), memory.store)
    press = RetryCommand(memory, access, SENTENCES).command.buttons[verb]
    pressed = raw.press(raw.pressed(message=raw.said("Sorry", raw.US)))
    with pytest.raises(NotConfirmed):
        await press(replace(pressed, sender=Sender(8, "Ben")), TOPIC, nonce)
    await memory.client.call("SET", memory.keys.scope(TOPIC).lease, turn.lease.token)
    with pytest.raises(ShownOnTop, match="later"):
        await press(pressed, TOPIC, nonce)
    await memory.turns.hand_over(turn.lease)
    assert await press(pressed, TOPIC, nonce) == SENTENCES.say("de", "retry.begun")
    again = await take(memory, TOPIC)
    assert [from_bytes(entry.body) for entry in again.entries] == [inbound]
    with pytest.raises(ShownOnTop, match="nothing"):
        await press(pressed, TOPIC, nonce)
