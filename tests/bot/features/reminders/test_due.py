"""Tasks are few, ask first where reminders ask first, and make no further tasks."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands.bot_command import ShownOnTop
from bot.features.reminders.due import DueReminders, message_of
from bot.features.reminders.tools import MAX_TASKS
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, Sender, from_bytes, to_bytes
from bot.turn.outbox import Outbox
from bot.turn.request import Request, answer_to
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.scopes.history import ChatHistory
from memory.work.item import WorkItem, due_task
from tests.bot.features.reminders.test_tools import IN_A_MINUTE, called, context_of
from tests.bot.features.services import SENTENCES
from tests.memory.turns import ANN, BOB, HERE
from tests.memory.work.test_items import reminder, store

TASK = replace(reminder("Say hello", due=int(time.time())), is_task=True, name="Ann", message_id=31)


def tasks_of(memory: Memory) -> DueReminders:
    return DueReminders(memory.work, SENTENCES)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32), st.integers(-3_000, 31_536_000))
def test_the_id_of_a_turn_tells_the_task_and_its_time(number: int, due: int, late_s: int) -> None:
    """Also if the clock of this machine is behind; a double holds the id exactly."""
    task = replace(TASK, id=f"{number:08x}", due=due)
    assert int(float(task.turn_id)) == task.turn_id < 0
    id_, at = due_task(task.turn_id, due + late_s)
    assert (id_, abs(at - due) <= 30) == (task.id, True)


async def test_a_person_has_at_most_ten_tasks_and_a_task_makes_none(memory: Memory) -> None:
    await store(memory, *(replace(TASK, id=f"{n:08x}") for n in range(MAX_TASKS - 1)), reminder())
    context = await context_of(memory)
    say = {"is_task": True, "in_minutes": 9}
    said = [await called(memory, context, "set_reminder", text=f"{n}", **say) for n in range(2)]
    assert said[0].startswith("Set for ")
    assert said[1] == "Error: the person has 10 tasks already; one has to go first"
    context.user_message = replace(context.user_message, message_ids=(-7,))
    said = [await called(memory, context, "set_reminder", text="Say more", **say)]
    assert said[0].startswith("Error: a task sets no further task")


async def test_a_task_made_beside_words_of_others_is_never_the_persons_own(memory: Memory) -> None:
    own = await context_of(memory, "Remind me in 1 minute to water the plants")
    others = await context_of(memory)
    others.user_message = replace(others.user_message, is_first_party=False)
    for each, is_own in ((own, True), (others, False)):
        await called(memory, each, "set_reminder", is_task=True, **IN_A_MINUTE)
        (task,) = each.work.added
        message = from_bytes(to_bytes(message_of(task, 0)))
        assert (task.is_open, message.is_first_party) == (is_own, is_own)
        assert (message.sender.name, answer_to(message).reply_to) == ("Ann", 31)
        stored = f"7|1|{round(task.due * 1000)}|0|0||{task.body}".encode()
        assert WorkItem.of_stored(task.id, stored) == task


async def test_a_task_erased_since_its_turn_began_says_nothing_and_one_without_news_neither(
    memory: Memory,
) -> None:
    await store(memory, TASK)
    message = (await context_of(memory)).user_message
    request = Request((message_of(TASK, 0),), message, (message,))
    history, tasks = await ChatHistory.read(memory.histories, HERE), tasks_of(memory)
    assert await tasks.check(request, history) is None
    for text, said in (("…", "…"), ("Sorry, I couldn't come up with an answer.", "")):
        outbox = await tasks.finish(request, Outbox(request.to, (Part(text),), said=said))
        assert (outbox.parts, outbox.is_unread) == ((), True)
    noted = Outbox(request.to, (Part("…\n\n✍ Noted"),), said="…")
    assert await tasks.finish(request, noted) == noted
    await memory.work.cancel(HERE, TASK.id)
    assert await tasks.check(request, history) == Outbox(request.to, (), is_unread=True)


async def test_only_its_person_stops_a_task(memory: Memory) -> None:
    await store(memory, TASK)
    pressed = ButtonPress(
        9, "p", 7, 0, is_group=False, message_id=40, sender=Sender(BOB, "Bob"), callback_data=""
    )
    with pytest.raises(NotConfirmed):
        await tasks_of(memory).stop(pressed, HERE, TASK.id)
    pressed = replace(pressed, sender=Sender(ANN, "Ann"), asked_at=time.time())
    for _ in range(2):
        with pytest.raises(ShownOnTop):
            await tasks_of(memory).stop(pressed, HERE, TASK.id)
    with pytest.raises(ShownOnTop) as unknown:  # Telegram no longer gives the button's topic
        await tasks_of(memory).stop(replace(pressed, asked_at=0), HERE, TASK.id)
    assert unknown.value.key == "clear.expired"
    assert await memory.work.list_open(HERE) == []


@pytest.mark.parametrize(("late_s", "rule"), [(0, "0 8 * * 1"), (3_600, "")])
async def test_the_answer_of_a_late_task_says_so_and_one_that_repeats_can_be_stopped(
    memory: Memory, late_s: int, rule: str
) -> None:
    task = await store(memory, replace(TASK, due=int(time.time()) - late_s, rule=rule))
    context = await context_of(memory)
    message = context.user_message
    request = Request((message_of(task, 0),), message, (message,))
    [line] = (await tasks_of(memory).below(request, context, "Here it is.")).lines
    assert ("this comes late" in line.text) == (late_s > 0)
    assert bool(line.buttons) == bool(rule)
    # After `/retry` the answer has the same mark and button, and is not late.
    again = replace(request, updates=(replace(request.last, update_id=99),))
    [below] = (await tasks_of(memory).below(again, context, "Here it is.")).lines
    assert (below.text, below.buttons) == (line.text.rpartition("\n\n")[-1], line.buttons)
