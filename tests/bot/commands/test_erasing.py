"""What the buttons of erasing commands erase beside the history."""

import time
from dataclasses import replace

import pytest

from bot.commands.command_set import CommandSet
from bot.telegram.updates import ButtonPress, ReplyTarget, to_bytes
from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.store.keys import Scope
from tests.bot.commands.test_arguments import ANNA, ASKED
from tests.bot.commands.test_help import commands as commands  # noqa: PLC0414 - a fixture
from tests.memory.turns import BOB, GROUP, HERE, carry_out, store, take
from tests.stored import everything_stored

CANARY = "quokka"
AT = int(time.time())


async def put_reply(memory: Memory, number: int, here: Scope, sender: int, text: str) -> None:
    target = ReplyTarget(11, "Anna", AT, text, text, author_id=ANNA.id)
    reply = replace(ASKED, update_id=number, message_id=number, kind="text", reply=target)
    body = to_bytes(replace(reply, text=f"What of it? ({number})"))
    await memory.mailbox.put(here, Entry(number, sender, is_alone=True, body=body))


@pytest.mark.usefixtures("commands")
async def test_a_forgotten_person_leaves_no_word_in_what_others_have_waiting(
    memory: Memory, valkey: str
) -> None:
    await store(memory, [Message(0, 0, "user", CANARY, AT, ANNA.id, "Anna", (11,), 3)], GROUP)
    for number, sender in ((2, ANNA.id), (3, BOB)):
        await put_reply(memory, number, GROUP, sender, CANARY)
    await carry_out(memory, Job("job", "forget", ANNA.id, 9, AT + 1, b""))
    stored = await everything_stored(valkey)
    words = (CANARY.encode(), b"What of it? (2)", b"What of it? (3)")
    assert [each in stored for each in words] == [False, False, True]


@pytest.mark.parametrize("state", ["waits", "is answered", "is a dead letter"])
async def test_a_forgotten_message_leaves_no_word_in_those_that_reply_to_it(
    commands: CommandSet, memory: Memory, valkey: str, state: str
) -> None:
    said = Message(0, 0, "user", f"I have a {CANARY}", AT, ANNA.id, "Anna", (11,), 3)
    await store(memory, [said], HERE)
    for number in (2, 3):
        await put_reply(memory, number, HERE, ANNA.id, said.text)
    if state != "waits":
        turn = await take(memory, HERE)
        if state == "is a dead letter":
            await memory.dead_letters.set_aside(turn, "Error", b"[]")
        else:
            await memory.turns.write_outbox(turn, CANARY.encode())
    asked = replace(ASKED, command="forget", text="", replied_to=11, replied_at=AT)
    [part] = (await commands.answer(asked, HERE)).parts
    assert part.question is not None
    await memory.questions.ask(HERE, part.question.kind, ANNA.id, part.question.about, "nonce")
    pressed = ButtonPress(
        *(9, "c", HERE.chat_id, 0), is_group=False, message_id=9, sender=ANNA, callback_data=""
    )
    for _ in range(2):
        await commands.buttons["delete_message"](pressed, HERE, "nonce")
    stored = await everything_stored(valkey)
    words = (CANARY.encode(), b"What of it? (2)", b"What of it? (3)")
    assert [each in stored for each in words] == [False, True, True]
