"""What happens when a reminder is due: its text is sent as it was given, with what is odd about it.

A task has a turn of its own instead. Its message has the text, and no message in the chat shows
it. The turn is like any other: with memory, tools, and the person's quota.
"""

from dataclasses import replace

from bot.commands.bot_command import ShownOnTop
from bot.commands.sentences import Sentences
from bot.features.reminders.tools import KIND, SIGN
from bot.reply.parts import Button, Part, Parts, with_buttons
from bot.reply.split import with_line
from bot.telegram.chat import Destination
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender
from bot.turn.notes import QUESTION_ALONE, Below
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.erasure.questions import NotConfirmed
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from memory.work.item import WorkItem, due_task
from memory.work.items import WorkItems

STOP = "task"  # the button that stops a task
_LATE_S = 300
_SILENT = ("", QUESTION_ALONE, "...")


def message_of(item: WorkItem, now: float) -> IncomingMessage:
    """Return the message that the turn of a due task answers."""
    return IncomingMessage(
        update_id=item.turn_id,
        chat_id=item.chat_id,
        topic_id=item.topic_id,
        is_group=item.chat_id < 0,
        message_id=item.turn_id,
        sent_at=int(now),
        sender=Sender(item.person, item.name, language=item.language),
        kind="text",
        text=f"{SIGN}{item.text}",
        is_first_party=item.is_first_party,
        replied_to=item.message_id,
    )


class DueReminders:
    """Sends reminders as replies to the messages that asked for them, and tasks as turns."""

    kind = KIND

    def __init__(self, reminders: WorkItems, sentences: Sentences) -> None:
        self._reminders = reminders
        self._sentences = sentences

    async def message(self, item: WorkItem) -> Outbox | IncomingMessage:
        """Return the reminder or the task, or that it was never agreed to in time.

        A due reminder does not use up a member's share of a group's answers. The request for it
        did, and a refused reminder would be lost.
        """
        has_lost_topic = item.topic_id < 0
        if item.is_task and item.is_open and not has_lost_topic:
            return message_of(item, self._reminders.now())
        say, text = self._sentences.say, item.text.removeprefix(SIGN)  # a task's turn has added it
        part, keys = Part(f"{SIGN}{text}"), ["reminders.lost_topic"] * has_lost_topic
        to = Destination(item.chat_id, item.topic_id, item.message_id)
        if item.closed_since:
            to = Destination(item.person)
            part = say(item.language, "reminders.task_closed", text=text)[-1]
        elif not item.is_open:
            part = say(item.language, "reminders.unanswered", text=text)[-1]
        elif item.sends or self._reminders.now() - item.due > _LATE_S:
            keys.append("reminders.repeated" if item.sends else "reminders.late")
        if keys:
            moment = self._sentences.local(item.language, item.due, item.zone)
            [below] = say(item.language, *keys, **moment)
            [part] = with_line((part,), below)
        return Outbox(to, (part,))

    async def check(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Say nothing if the task was erased since its turn began."""
        if not request.last.is_task:
            return None
        id_, _ = due_task(request.last.update_id, self._reminders.now())
        is_there = await self._reminders.find(history.conversation, id_)
        return None if is_there else Outbox(request.to, (), is_unread=True)

    async def below(self, request: Request, context: AgentContext, text: str) -> Below:
        """Return the line that marks the answer, with a button if the task repeats."""
        number = request.last.message_id  # below 0 for a task, also if it is answered again
        if number >= 0 or text.strip() in _SILENT:
            return Below()
        now, language = self._reminders.now(), request.language
        id_, due = due_task(number, now)
        item = await self._reminders.find(context.conversation, id_)
        if item is None:
            return Below()
        is_late = request.last.is_task and now - due > _LATE_S  # not if it is answered again
        keys = ["reminders.late"] * is_late + ["reminders.task_done"]
        moment = self._sentences.local(language, due, item.zone)
        line = self._sentences.say(language, *keys, text=item.text, **moment)
        row = (Button(self._sentences.text(language, "buttons.stop_task"), f"{STOP}:{item.id}"),)
        return Below(with_buttons(line, *row) if item.rule else line)

    async def finish(self, request: Request, outbox: Outbox) -> Outbox:
        """Send nothing if the model has nothing to say."""
        said = outbox.said.strip()
        if not (request.last.is_task and said in _SILENT and len(outbox.parts) == 1):
            return outbox
        # A line below says that something was done, so it is shown.
        if said and outbox.parts[0].text.strip() != said:
            return outbox
        return replace(outbox, parts=(), said="", is_unread=True)

    async def stop(self, pressed: ButtonPress, conversation: Scope, id_: str) -> Parts:
        """Erase a task; the answer above the button stays as it is."""
        if task := await self._reminders.find(conversation, id_):
            if task.person != pressed.sender.id:
                raise NotConfirmed("not_yours")
            await self._reminders.cancel(conversation, id_)
        elif not pressed.asked_at:  # the button may belong to another topic
            raise ShownOnTop("clear.expired")
        raise ShownOnTop("reminders.task_stopped")
