"""A due reminder is one message, whenever the worker that sends it dies or the chat is cleared."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from bot.commands.notices import set_mute
from bot.feature import Feature, Work
from bot.features.off_record.feature import OffRecordSessions
from bot.features.reminders.due import DueReminders
from bot.reply.parts import Part
from bot.runtime.work import WorkLoop
from bot.telegram.chat import Destination
from bot.telegram.errors import (
    Blocked,
    FloodWait,
    OutcomeUnknown,
    RefusalReason,
    Refused,
    TelegramError,
)
from bot.telegram.updates import from_bytes
from bot.turn.deliver import Deliverer
from bot.turn.observers import Event, PartSent
from bot.turn.outbox import Outbox
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.work.item import BEGUN, WorkItem, due_task
from tests.bot.features.services import SENTENCES
from tests.conftest import Doomed
from tests.memory.clients import DyingClient
from tests.memory.turns import ANN, GROUP, HERE, close, take
from tests.memory.work.test_items import LEASE_S, let_the_lease_end, reminder, store
from tests.quiet_chat import QuietChat, no_export

TEXT = "⏰ Call Ben"
[_NOTE] = SENTENCES.say("en", "reminders.repeated")
DOUBTED = f"{TEXT}\n\n{_NOTE.text}"
[_LOST] = SENTENCES.say("en", "reminders.lost_topic")
LAST = f"{TEXT}\n\n{_LOST.text}"
CLOSED = Refused("closed")


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
        if error and not isinstance(error, OutcomeUnknown):  # it was not sent
            raise error
        message_id = await super().send(to, part, timeout_s)
        self.asked.set()
        await self.before_answer.wait()
        if error:
            raise error
        return message_id


async def no_pause(seconds: float) -> None:
    del seconds


class Says:
    """Work that says the text of its item, or nothing if it has none any more."""

    kind = "reminder"

    async def message(self, item: WorkItem) -> Outbox | None:
        if item.text == "over":
            return None
        return Outbox(Destination(item.chat_id, item.topic_id), (Part(item.text),))


def worker(
    memory: Memory,
    chat: QuietChat,
    kind: Work | None = None,
    pause: Callable[[float], Awaitable[None]] = no_pause,
    serves: Callable[[int, int], bool] = lambda *_: True,
) -> WorkLoop:
    feature = Feature(name="due", work=[kind or DueReminders(memory.work, SENTENCES)])
    deliverer = Deliverer(chat, 5, no_export, lambda _: None, pause)
    return WorkLoop(memory.work, memory.scopes, [feature], deliverer, LEASE_S, serves)


async def begin(due: WorkLoop) -> None:
    """Begin to send what is due; what was put off until now may be due in the next millisecond."""
    while await due.check() < 0.1:
        pass


async def work(due: WorkLoop) -> None:
    """Look once, and wait until what is due was served."""
    await begin(due)
    await asyncio.gather(*due._doing.values())


async def said(memory: Memory, kind: Work | None = None) -> list[str]:
    """Look once, and return what was said."""
    chat = ScriptedChat([])
    await work(worker(memory, chat, kind))
    return chat.texts


async def deaths(
    memory: Memory, dying: DyingClient, doomed: Doomed, make: Callable[[], WorkItem]
) -> AsyncIterator[tuple[WorkItem, ScriptedChat]]:
    """Let a worker die after each step that it takes with an item, and an heir look afterwards."""
    for steps in dying.deaths():
        one = await store(memory, make(), update_id=steps + 1)
        chat = ScriptedChat([])
        try:
            await work(worker(doomed(), chat))
        except Exception:  # noqa: BLE001 - it died before it found anything
            assert steps in (0, 1)
        found = await memory.work.find(HERE, one.id)
        if found and found.due == one.due:  # still to be done
            await let_the_lease_end(memory, one.id)
        await work(worker(memory, chat))
        yield one, chat


async def test_whoever_dies_between_any_two_steps_at_most_the_message_in_doubt_is_repeated(
    memory: Memory, dying: DyingClient, doomed: Doomed
) -> None:
    """The heir works when the lease has ended; a worker that dies early has sent nothing."""
    sent = []
    due = lambda: reminder(due=int(time.time()) - 1)  # noqa: E731
    async for _, chat in deaths(memory, dying, doomed, due):
        assert await memory.work.list_open(HERE) == []
        assert chat.texts == [TEXT, DOUBTED][: len(chat.texts)]
        sent.append(len(chat.texts))
    assert sent.count(2) == 1
    assert set(sent) == {1, 2}


async def test_a_reminder_whose_request_is_in_doubt_comes_again_and_says_so(memory: Memory) -> None:
    one = await store(memory, reminder(due=time.time() - 1))
    for in_doubt in (1, 2, 3):
        taken = await memory.work.take(HERE, one.id, LEASE_S)
        assert taken
        await memory.work.hold(taken, LEASE_S, taken.item.sends + 1)
        await let_the_lease_end(memory, one.id)
        if in_doubt == 2:
            due = await DueReminders(memory.work, SENTENCES).message(taken.item)
            assert isinstance(due, Outbox)
            assert due.parts[0].text == DOUBTED
    assert await said(memory) == []  # three requests are enough
    assert await memory.work.list_open(HERE) == []


@pytest.mark.parametrize("is_killed", [True, False])
async def test_who_ends_while_telegram_takes_nothing_has_not_tried(
    memory: Memory, *, is_killed: bool
) -> None:
    """The first 429 is Telegram's, later the worker waits for a permit of its own limit."""
    one = await store(memory, reminder(due=time.time() - 1))
    chat = ScriptedChat([FloodWait(15)] * 5)
    for _ in range(5):
        waits = asyncio.Event()

        async def pause(_: float, waits: asyncio.Event = waits) -> None:
            waits.set()
            await asyncio.Event().wait()

        due = worker(memory, chat, pause=pause)
        await begin(due)
        await waits.wait()
        [waiting] = await memory.work.list_open(HERE)
        assert waiting.sends == 0
        for task in due._doing.values():
            task.cancel()
        await asyncio.gather(*due._doing.values(), return_exceptions=True)
        if is_killed:  # a cancelled worker has given it back
            await let_the_lease_end(memory, one.id)
    await work(worker(memory, chat))
    assert chat.texts == [TEXT]


@pytest.mark.parametrize("is_stopped", [True, False])
async def test_what_is_cancelled_while_it_is_sent_and_what_its_stopped_worker_sends_is_deleted(
    memory: Memory, *, is_stopped: bool
) -> None:
    """If the worker was stopped, it comes again as the first."""
    one = await store(memory, reminder(due=time.time() - 1))
    chat = ScriptedChat([])
    chat.before_answer.clear()
    due = worker(memory, chat)
    await begin(due)
    await chat.asked.wait()
    [task] = due._doing.values()
    if is_stopped:
        task.cancel()
    else:
        await memory.work.cancel(HERE, one.id)
    chat.before_answer.set()
    await asyncio.gather(task, return_exceptions=True)
    assert chat.deleted == [(7, 100)]
    await work(worker(memory, chat))
    assert chat.texts == [TEXT] * (2 if is_stopped else 1)
    assert await memory.client.call("EXISTS", memory.keys.scope(HERE).work) == 0


async def test_the_reminder_of_a_removed_person_waits(memory: Memory) -> None:
    one = await store(memory, reminder(due=time.time() - 1))
    chat, people = ScriptedChat([]), set[int]()
    due = worker(memory, chat, serves=lambda person, _: person in people)
    await work(due)
    assert chat.texts == []
    assert [each.id for each in await memory.work.list_open(HERE)] == [one.id]
    assert await memory.work.find_due(8) == []
    people.add(one.person)
    await let_the_lease_end(memory, one.id)
    await work(due)
    assert chat.texts == [TEXT]


@pytest.mark.parametrize("is_key", [True, False])
async def test_damaged_items_of_one_chat_do_not_hold_up_those_of_others(
    memory: Memory, *, is_key: bool
) -> None:
    """They are the first in the index, and as many as a worker looks at."""
    past = [reminder(str(number), due=number + 1) for number in range(8)]
    await store(memory, *past, conversation=GROUP)
    await store(memory, reminder(due=time.time() - 1), update_id=2)
    key = memory.keys.scope(GROUP).work
    for each in past:
        await memory.client.call(*(("SET", key) if is_key else ("HSET", key, each.id)), "damaged")
    due = worker(memory, chat := ScriptedChat([]))
    for _ in range(2):
        await work(due)
    assert [text.splitlines()[0] for text in chat.texts] == [TEXT]
    assert 50 < await memory.work.due_in_s() < 70


@pytest.mark.parametrize(("late_s", "pause_s"), [(1, 60), (600, 600), (9e6, 86_400)])
async def test_an_item_of_an_unknown_kind_waits_as_long_as_it_is_late(
    memory: Memory, late_s: float, pause_s: float
) -> None:
    """A worker of a newer release, or one where the feature is on, may stand beside this one."""
    began = time.time()
    await store(memory, replace(reminder(due=began - late_s), kind="new"))
    assert await said(memory) == []
    looks_at = time.time() + await memory.work.due_in_s()
    assert began + pause_s - 1 <= looks_at <= 2 * time.time() - began + pause_s + 1


async def test_each_error_of_telegram_has_its_effect(memory: Memory) -> None:
    """After a flood it waits, without a chat it is erased, after a refusal it comes next time."""
    gone = Refused("chat_gone")
    chat = ScriptedChat([FloodWait(3), None, gone, Refused("other"), FloodWait(600)])
    for number, (rule, left) in enumerate([("", 0), ("0 9 * * *", 0), ("0 9 * * *", 1), ("", 1)]):
        one = replace(reminder(str(number), due=time.time() - 1), rule=rule)
        await store(memory, one, update_id=number + 1)
        await work(worker(memory, chat))
        assert len(await memory.work.list_open(HERE)) == left
        if number == 2:
            await memory.work.cancel(HERE, one.id)
    assert chat.texts == ["⏰ 0"]
    [waiting] = await memory.work.list_open(HERE)
    assert waiting.sends == 0
    await let_the_lease_end(memory, waiting.id)
    await work(worker(memory, chat))
    assert chat.texts[1:] == ["⏰ 3"]


@pytest.mark.parametrize("kind", [None, Says()], ids=["reminder", "other work"])
@pytest.mark.parametrize("rule", ["", "0 9 * * *"])
@pytest.mark.parametrize("reason", ["topic_gone", "closed", "chat_gone"])
async def test_what_has_lost_its_topic_or_its_chat_ends(
    memory: Memory, kind: Work | None, rule: str, reason: RefusalReason
) -> None:
    one = replace(reminder(due=time.time() - 1), rule=rule, topic_id=5, message_id=11)
    await store(memory, one)
    chat = ScriptedChat([Refused(reason)])
    await work(worker(memory, chat, kind))
    waits, is_said = rule and reason == "closed", reason != "chat_gone"
    said = [] if waits or not is_said else [(Destination(7), one.text if kind else LAST)]
    assert [(to, part.text) for to, part in chat.sent] == said
    assert len(await memory.work.list_open(HERE)) == bool(waits)


@pytest.mark.parametrize(
    ("topic_id", "rule", "errors"),
    [(0, "", [CLOSED]), (5, "", [CLOSED] * 2), (5, "0 9 * * *", [Blocked()])],
)
async def test_a_reminder_waits_while_its_chat_is_closed_or_has_blocked_the_bot(
    memory: Memory, topic_id: int, rule: str, errors: list[TelegramError | None]
) -> None:
    item = replace(reminder(due=time.time() - 600), topic_id=topic_id, rule=rule)
    one, chat = await store(memory, item), ScriptedChat(errors)
    await work(worker(memory, chat))
    assert chat.texts == []
    held_s = await memory.work.due_in_s()
    assert 550 < held_s < 650  # looks again when it is twice as late
    await let_the_lease_end(memory, one.id)
    await work(worker(memory, chat))
    assert [text.splitlines()[0] for text in chat.texts] == [TEXT]
    left = await memory.work.list_open(HERE)
    assert [each.due > time.time() for each in left] == [True] * bool(rule)


@pytest.mark.parametrize(
    ("days", "asked", "error"), [(31, 11, CLOSED), (31, 11, Blocked()), (1, 0, Blocked())]
)
async def test_an_item_ends_if_its_chat_is_closed_for_a_month_or_nobody_asked_for_it(
    memory: Memory, days: int, asked: int, error: TelegramError
) -> None:
    """Who gave a task that has ended hears of it in their private chat."""
    item = reminder(due=time.time() - days * 86_400)
    await store(memory, replace(item, rule="0 9 * * *" * (error is not CLOSED), message_id=asked))
    chat = ScriptedChat([error])
    await work(worker(memory, chat))
    assert await memory.work.list_open(HERE) == []
    ended = replace(reminder(due=time.time()), chat_id=-100, closed_since=1.0)
    await store(memory, ended, update_id=2)
    await work(worker(memory, chat))
    [said] = SENTENCES.say("en", "reminders.task_closed", text="Call Ben")
    assert [(to, part.text) for to, part in chat.sent] == [(Destination(ANN), said.text)]


async def test_without_telegrams_answer_it_is_sent_once_more_and_says_so(memory: Memory) -> None:
    one = await store(memory, reminder(due=time.time() - 1))
    chat = ScriptedChat([OutcomeUnknown(), OutcomeUnknown()])
    await work(worker(memory, chat))
    assert len(await memory.work.list_open(HERE)) == 1
    assert await memory.work.take(HERE, one.id, LEASE_S) is None  # not at once
    await let_the_lease_end(memory, one.id)
    await work(worker(memory, chat))
    assert chat.texts == [TEXT, DOUBTED]
    assert await memory.work.list_open(HERE) == []


async def test_a_late_one_says_so_and_what_repeats_makes_up_for_nothing(memory: Memory) -> None:
    began = time.time()
    hours_ago = began - 5 * 3_600
    one = replace(reminder(due=hours_ago), rule="0 * * * *", zone="Europe/Berlin", language="de")
    await store(memory, one)
    chat = ScriptedChat([])
    await work(worker(memory, chat))
    await work(worker(memory, chat))
    [(to, part)] = chat.sent
    assert (to.chat_id, part.text.partition("\n\n")[0]) == (7, TEXT)
    assert "kommt zu spät" in part.text
    assert [entity.url for entity in part.entities] == [f"tg://time?unix={int(hours_ago)}"]
    [waiting] = await memory.work.list_open(HERE)
    assert began < waiting.due <= time.time() + 3_600
    assert waiting.due % 3_600 == 0


async def test_a_question_that_stayed_without_an_answer_is_ended_with_one_message(
    memory: Memory, dying: DyingClient, doomed: Doomed
) -> None:
    """Also if the worker dies between two steps: at most the message in doubt is repeated."""
    [asked] = SENTENCES.say("de", "reminders.unanswered", text="Call Ben")
    past = replace(reminder(due=0), at="2020-01-01T09:00", rule="", language="de")
    sent = []
    async for _, chat in deaths(memory, dying, doomed, lambda: replace(past)):
        assert await memory.work.find(HERE, past.id) is None
        assert {*chat.texts} == {asked.text}
        sent.append(len(chat.texts))
    assert sent.count(2) == 1


async def test_an_erased_question_says_nothing_when_its_time_comes(memory: Memory) -> None:
    repeating = await store(memory, replace(reminder(due=0), at="", rule="0 9 * * *", zone="UTC"))
    await memory.work.cancel(HERE, repeating.id)
    await memory.client.call("ZADD", memory.keys.work, 0, f"{HERE.tag}|{repeating.id}")
    assert await said(memory) == []
    await store(memory, replace(repeating, id="0badcafe"), update_id=2)
    await memory.client.call("ZADD", memory.keys.work, 0, f"{HERE.tag}|0badcafe")
    assert len(await said(memory)) == 1
    assert await memory.work.find(HERE, "0badcafe") is None


def a_task(rule: str = "") -> WorkItem:
    return replace(reminder("Say hello", due=int(time.time()) - 1), is_task=True, rule=rule)


async def waiting(memory: Memory) -> list[Entry]:
    members = await memory.client.call("ZRANGE", memory.keys.scope(HERE).mailbox, 0, -1)
    return [Entry.of_member(each) for each in members]


@pytest.mark.parametrize("rule", ["", "0 8 * * *"])
async def test_whoever_dies_between_any_two_steps_a_task_has_one_turn(
    memory: Memory, dying: DyingClient, doomed: Doomed, rule: str
) -> None:
    async for one, chat in deaths(memory, dying, doomed, lambda: a_task(rule)):
        assert chat.texts == []
        [entry] = await waiting(memory)
        assert (entry.update_id, entry.sender_id) == (one.turn_id, one.person)
        assert from_bytes(entry.body).text == "⏰ Say hello"
        assert due_task(entry.update_id, time.time())[0] == one.id
        left = await memory.work.find(HERE, one.id)
        assert left
        assert (left.is_open, left.sends) == ((True, 0) if rule else (False, BEGUN))
        await memory.work.cancel(HERE, one.id)
        await close(memory, await take(memory))


async def test_a_task_waits_while_the_conversation_is_off_the_record(memory: Memory) -> None:
    one = await store(memory, a_task())
    end = Entry(9, ANN, is_alone=True, body=b"[]")
    sessions = OffRecordSessions(memory.store, memory.mailbox)
    await sessions.begin(HERE, time.time() - 1, time.time() + 60, end)
    due = worker(memory, ScriptedChat([]))
    await work(due)
    assert await waiting(memory) == []
    assert await memory.work.find(HERE, one.id) == one
    await sessions.end(HERE, 9, is_due=False)
    await let_the_lease_end(memory, one.id)
    await work(due)
    assert [each.update_id for each in await waiting(memory)] == [one.turn_id]


async def test_a_task_that_has_begun_is_erased_after_a_day(memory: Memory) -> None:
    one = await store(memory, a_task())
    assert await said(memory) == []
    assert await memory.work.list_open(HERE) == []
    assert await said(memory) == []
    assert await memory.work.find(HERE, one.id)
    await let_the_lease_end(memory, one.id)  # a day is over
    assert await said(memory) == []
    assert await memory.work.find(HERE, one.id) is None
    assert len(await waiting(memory)) == 1


async def test_who_mutes_gets_of_a_feature_that_says_unasked_only_what_they_asked_for(
    memory: Memory,
) -> None:
    here = await memory.scopes.read(HERE)
    asked = replace(reminder("asked for", due=time.time() - 1), message_id=11)
    unasked = replace(asked, text="unasked", message_id=0, id="00000001")
    for each in (asked, unasked, replace(asked, text="over", id="00000002")):
        await memory.work.add(here, each)
    await set_mute(memory.scopes, ANN, 1, is_muted=True)
    chat = ScriptedChat([])
    loop = worker(memory, chat)
    loop.features = [Feature(name="tips", work=[Says()], says_unasked=True)]
    await work(loop)
    assert chat.texts == ["asked for"]
    assert await memory.work.list_open(HERE) == []


class Fails(Says):
    """Work of an operator, with a mistake."""

    def __init__(self, answer: Any = None) -> None:
        self.tries, self._answer = 0, answer

    async def message(self, item: WorkItem) -> Any:
        if item.text == "fine":
            return await super().message(item)
        self.tries += 1
        if self._answer is None:
            raise ZeroDivisionError
        return self._answer


@pytest.mark.parametrize(
    ("answer", "rule"),
    [(None, ""), ("a text", "0 9 * * *"), (Outbox(Destination(7), (cast("Part", "x"),)), "")],
)
async def test_work_that_fails_three_times_is_given_up_until_it_is_due_again(
    memory: Memory, answer: Any, rule: str
) -> None:
    one = replace(reminder(due=time.time() - 1), rule=rule)
    chat, kind = ScriptedChat([]), Fails(answer)
    await memory.work.add(await memory.scopes.read(HERE), one)
    due, seen = worker(memory, chat, kind), list[Event]()
    due.deliverer.observe = seen.append
    for tries in range(1, 4):
        await work(due)
        await work(due)  # not before its pause is over
        assert kind.tries == tries
        if tries < 3:
            await let_the_lease_end(memory, one.id)
    await memory.work.add(await memory.scopes.read(HERE), reminder("fine", due=time.time() - 1))
    await work(due)
    left = await memory.work.list_open(HERE)
    assert [each.due > time.time() for each in left] == [True] * bool(rule)
    assert (kind.tries, chat.texts) == (3, ["fine"])
    assert [each for each in seen if each == PartSent("given_up")] == [PartSent("given_up")]


@pytest.mark.parametrize("how", [("0 25 * * *", "Europe/Berlin"), ("0 9 * * *", "Nowhere/Land")])
async def test_work_never_due_again_is_said_and_ends(memory: Memory, how: tuple[str, str]) -> None:
    one = replace(reminder(due=time.time() - 1), rule=how[0], zone=how[1])
    await memory.work.add(await memory.scopes.read(HERE), one)
    assert await said(memory, Says()) == [one.text]
    assert await memory.work.list_open(HERE) == []


async def test_work_that_does_not_end_is_a_failure_unless_it_is_cancelled(memory: Memory) -> None:
    one = reminder(due=time.time() - 1)
    await memory.work.add(await memory.scopes.read(HERE), one)

    class Hangs(Says):
        async def message(self, item: WorkItem) -> Outbox | None:
            del item
            await asyncio.Event().wait()
            return None

    due = worker(memory, ScriptedChat([]), Hangs())
    due.lease_s = 0.01
    await work(due)
    assert [each.sends for each in await memory.work.list_open(HERE)] == [0]
    assert due._failures == {(HERE, one.id): 1}
    await memory.client.call("ZADD", memory.keys.work, 0, f"{HERE.tag}|{one.id}")
    await memory.work.cancel(HERE, one.id)
    await work(due)
    assert due._failures == {}
