"""A due reminder is one message, whenever the worker that sends it dies or the chat is cleared."""

import asyncio
import time
from dataclasses import dataclass, replace

import pytest

from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part
from bot.runtime.due_reminders import DueReminders
from bot.telegram.chat import Destination
from bot.telegram.errors import Blocked, FloodWait, OutcomeUnknown, TelegramError, Unreachable
from bot.turn.deliver import Deliverer
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS
from tests.memory.reminders.test_reminders import (
    LEASE_S,
    NEW_YEAR,
    let_the_lease_end,
    reminder,
    store,
)
from tests.memory.store.test_migration import DyingClient
from tests.memory.turns import HERE
from tests.quiet_chat import QuietChat, no_export

TEXT = "⏰ Call Ben"
SENTENCES = Sentences(Catalogue())
MAX_STEPS = 30


@dataclass
class ScriptedChat(QuietChat):
    """Takes a message, and answers it with the next error of the script if there is one."""

    errors: list[TelegramError | None]

    def __post_init__(self) -> None:
        super().__init__()
        self.before_answer = asyncio.Event()
        self.before_answer.set()
        self.asked = asyncio.Event()

    async def send(self, to: Destination, part: Part, timeout_s: float = 0) -> int:
        error = self.errors.pop(0) if self.errors else None
        if isinstance(error, FloodWait | Unreachable | Blocked):  # these were not sent
            raise error
        message_id = await super().send(to, part, timeout_s)
        self.asked.set()
        await self.before_answer.wait()
        if error:
            raise error
        return message_id

    @property
    def texts(self) -> list[str]:
        return [part.text for _, part in self.sent]


async def no_pause(seconds: float) -> None:
    del seconds


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter) -> Memory:
    return Memory(store, 42, tokens, None, OPTIONS)


def worker(memory: Memory, chat: QuietChat) -> DueReminders:
    deliverer = Deliverer(chat, 5, no_export, lambda _: None, no_pause)
    return DueReminders(memory.reminders, deliverer, SENTENCES, LEASE_S)


async def work(due: DueReminders) -> None:
    """Look once, and wait until what is due was served."""
    await due.check()
    await asyncio.gather(*due._sending.values())


async def test_whoever_dies_between_any_two_steps_at_most_the_message_in_doubt_is_repeated(
    memory: Memory, valkey: str, tokens: TokenCounter
) -> None:
    """The heir works when the lease has ended; a worker that dies early has sent nothing."""
    dying = await DyingClient.open(valkey)
    sent = []
    for steps in range(MAX_STEPS):
        one = reminder(due=time.time() - 1)
        await store(memory, one, update_id=steps + 1)
        chat = ScriptedChat([])
        dying.calls_left = steps
        try:
            await work(worker(Memory(dying, 42, tokens, None, OPTIONS), chat))
        except Exception:  # noqa: BLE001 - it died before it found anything
            assert steps in (0, 1)
        if dying.calls_left > 0:  # it lived to the end
            break
        if await memory.reminders.find(HERE, one.id):
            await let_the_lease_end(memory, one.id)
        await work(worker(memory, chat))
        assert await memory.reminders.list_open(HERE) == []
        assert set(chat.texts) == {TEXT}
        sent.append(len(chat.texts))
    await dying.close()
    assert sent.count(2) == 1
    assert set(sent) == {1, 2}


async def test_two_deaths_while_sending_are_the_last_try(memory: Memory) -> None:
    one = reminder(due=time.time() - 1)
    await store(memory, one)
    chat = ScriptedChat([])
    for _ in range(2):
        taken = await memory.reminders.take(HERE, one.id, LEASE_S)
        assert taken
        await memory.reminders.mark_sending(taken, LEASE_S)
        await let_the_lease_end(memory, one.id)
    await work(worker(memory, chat))
    assert chat.texts == []
    assert await memory.reminders.list_open(HERE) == []


async def test_the_reminder_of_a_removed_person_waits(memory: Memory) -> None:
    one = reminder(due=time.time() - 1)
    await store(memory, one)
    chat, people = ScriptedChat([]), set[int]()
    deliverer = Deliverer(chat, 5, no_export, lambda _: None, no_pause)
    due = DueReminders(
        memory.reminders, deliverer, SENTENCES, LEASE_S, lambda person, _: person in people
    )
    await work(due)
    assert chat.texts == []
    assert [each.id for each in await memory.reminders.list_open(HERE)] == [one.id]
    assert await memory.reminders.find_due(8) == []
    people.add(one.person)
    await let_the_lease_end(memory, one.id)
    await work(due)
    assert chat.texts == [TEXT]


async def test_what_was_cleared_or_cancelled_while_it_was_sent_is_deleted(memory: Memory) -> None:
    one = reminder(due=time.time() - 1)
    await store(memory, one)
    chat = ScriptedChat([])
    chat.before_answer.clear()
    working = asyncio.create_task(work(worker(memory, chat)))
    await chat.asked.wait()
    await memory.reminders.cancel(HERE, one.id)
    chat.before_answer.set()
    await working
    assert chat.deleted == [(7, 100)]
    assert await memory.client.call("EXISTS", memory.keys.scope(HERE).reminders) == 0


async def test_each_error_of_telegram_has_its_effect(memory: Memory) -> None:
    """Unknown: not sent again. A flood: later. Blocked: erased, also if it would repeat."""
    errors: list[TelegramError | None] = [
        OutcomeUnknown(),
        FloodWait(3),
        None,
        Blocked(),
        FloodWait(600),
    ]
    chat = ScriptedChat(errors)
    for number, left in enumerate((0, 0, 0, 1)):
        one = replace(reminder(str(number), due=time.time() - 1), rule="0 9 * * *" * (number == 2))
        await store(memory, one, update_id=number + 1)
        await work(worker(memory, chat))
        assert len(await memory.reminders.list_open(HERE)) == left
    assert chat.texts == ["⏰ 0", "⏰ 1"]
    [waiting] = await memory.reminders.list_open(HERE)
    assert waiting.sends == 0
    await let_the_lease_end(memory, waiting.id)
    await work(worker(memory, chat))
    assert chat.texts[2:] == ["⏰ 3"]


async def test_a_late_one_says_so_and_what_repeats_does_not_make_up_for_what_it_missed(
    memory: Memory,
) -> None:
    hours_ago = time.time() - 5 * 3_600
    one = replace(reminder(due=hours_ago), rule="0 * * * *", zone="Europe/Berlin", language="de")
    await store(memory, one)
    chat = ScriptedChat([])
    await work(worker(memory, chat))
    await work(worker(memory, chat))
    [(to, part)] = chat.sent
    assert (to.chat_id, part.text.partition("\n\n")[0]) == (7, TEXT)
    assert "kommt zu spät" in part.text
    assert [entity.url for entity in part.entities] == [f"tg://time?unix={int(hours_ago)}"]
    [waiting] = await memory.reminders.list_open(HERE)
    assert 0 < waiting.due - time.time() <= 3_600
    assert waiting.due % 3_600 == 0
    assert waiting.due < NEW_YEAR
