"""An answer that promises to remind is noticed, and corrected if no reminder is set."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from bot.features.claims.feature import claims_to_have_saved
from bot.features.reminders.claims import promise_note, promises_to_remind
from bot.telegram.updates import Sender
from bot.turn.request import Request
from memory.behaviors.context import AgentContext, CallContext, Person
from memory.behaviors.steps import CompletedStep
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.work.item import WorkChanges, WorkItem
from tests.bot.features.claims.test_claims import KEYS, NO_CLAIMS, REQUEST, step
from tests.memory.turns import HERE
from tests.memory.work.test_items import store as store_items

PROMISES = Path(__file__).with_name("promises.txt").read_text("utf-8").splitlines()
NO_PROMISES = Path(__file__).with_name("no_promises.txt").read_text("utf-8").splitlines()


def test_a_promise_to_remind_is_told_from_all_other_answers() -> None:
    assert [*filter(promises_to_remind, [*PROMISES, *NO_PROMISES, *NO_CLAIMS])] == PROMISES
    assert [*filter(claims_to_have_saved, PROMISES)] == []


TOMORROW = WorkItem(7, "Call Ines about the boat", at="2031-01-01T09:00", due=9e9)
PROMISE = "All right, I'll remind you tomorrow."


async def corrected(
    memory: Memory,
    *steps: CompletedStep,
    asks: str = "Remind me tomorrow to water the plants",
    says: str = PROMISE,
    changes: WorkChanges | None = None,
    request: Request = REQUEST,
) -> str:
    """Return what corrects an agent that promises to remind a person."""
    history = await ChatHistory.read(memory.histories, HERE)
    message = Message(0, 0, "user", asks, 0, sender_id=7)
    context = AgentContext(CallContext(HERE, Person(), 0), history, message)
    context.completed_steps += steps
    context.work = changes or WorkChanges()
    below = await promise_note(memory.work, KEYS, request, context, says)
    return below.correction.text if below.correction else ""


async def test_a_promise_is_corrected_unless_a_reminder_is_set_or_a_fitting_one_is_open(
    memory: Memory,
) -> None:
    correction = partial(corrected, memory)
    failed = step("set_reminder", failed=True)
    assert await correction() == "claims.reminder"
    assert await correction(step("list_reminders", reads=True)) == "claims.reminder"
    assert await correction(step("remember")) == "claims.reminder"
    assert await correction(says="Hello.") == ""
    assert await correction(failed) == "claims.reminder_failed"
    assert await correction(failed, says="When?") == "claims.reminder_failed"
    assert await correction(failed, step("calendar__add")) == ""
    nobody = replace(REQUEST.last, sender=Sender(-5, "Club", is_person=False))
    of_nobody = replace(REQUEST, updates=(nobody,))
    assert await correction(failed, request=of_nobody) == "error.anonymous_admin"
    assert await correction(step("calendar__add")) == ""
    for changes in (WorkChanges(added=[TOMORROW]), WorkChanges(cancelled=[TOMORROW])):
        assert await correction(failed, step("set_reminder"), changes=changes) == ""

    await store_items(memory, TOMORROW)
    assert await correction() == "claims.reminder"
    assert await correction(failed) == "claims.reminder_failed"
    assert await correction(asks="Thanks!") == ""
    assert await correction(asks="What have you planned?") == ""
    assert await correction(step("list_reminders", reads=True)) == ""
    assert await correction(asks="Remind me to call Ines") == ""
    assert await correction(failed, asks="Remind me to call Ines") == ""
