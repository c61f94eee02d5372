"""A turn that fails again and again is given up, so that its conversation goes on.

Its messages become a dead letter, which operators see in the inspector; the person gets a
neutral sentence, with a button that tries once more. An error is counted; a process that dies
leaves only the count of the attempts.
"""

from dataclasses import dataclass, replace

import structlog

from bot.commands.sentences import Sentences
from bot.reply.parts import Button, with_buttons
from bot.telegram.updates import IncomingMessage, Sender, from_bytes, to_bytes
from bot.turn.observers import GaveUp, Observer
from bot.turn.outbox import Outbox
from bot.turn.request import answer_to, is_off_record
from memory.erasure.questions import Question
from memory.queue.dead_letters import DeadLetters
from memory.queue.mailbox import Entry
from memory.queue.open_turn import OpenTurn

log = structlog.get_logger(__name__)

MAX_FAILURES = 3
"""A turn is given up after this many errors, or attempts without a reply."""

UNSEEN = "Interrupted"
"""Stands for an error that no process lived to see."""


def is_given_up(opened: OpenTurn) -> bool:
    """Tell whether a turn gets a notice and nothing else."""
    unanswered = opened.attempts >= MAX_FAILURES and not (opened.outbox or opened.is_stopped)
    return unanswered or opened.failures >= MAX_FAILURES or _has_notice(opened)


@dataclass(slots=True, eq=False)
class GiveUp:
    """Makes a dead letter of a turn and returns the notice."""

    letters: DeadLetters
    sentences: Sentences
    observe: Observer

    async def give_up(self, opened: OpenTurn) -> Outbox:
        """Return the notice of a turn that is given up; raise `LeaseLost` or `StoreError`.

        If even the notice has failed, nothing is sent.
        """
        if _has_notice(opened) and opened.failures <= MAX_FAILURES:
            return Outbox.from_bytes(opened.outbox)
        error = opened.error or UNSEEN
        log.error("turn given up", attempts=opened.attempts, failures=opened.failures, error=error)
        outbox = self._notice(opened)
        entries = tuple(map(_without_reply, opened.entries))
        last = _last_message(opened)
        is_kept = not (is_off_record(opened, [last]) or last.is_task)
        if is_kept and last.message_id and outbox.parts:
            label = self.sentences.text(last.sender.language, "buttons.again")
            question = Question("letter", last.sender.id, f"{opened.id},{last.sender.id}")
            button = Button(label, f"letter:{question.nonce}")
            asking = with_buttons(outbox.parts, button, question=question)
            outbox = replace(outbox, parts=asking)
        letter, stored = replace(opened, entries=entries), outbox.to_bytes()
        await self.letters.set_aside(letter, error, stored, outbox.questions, is_kept=is_kept)
        self.observe(GaveUp(error))
        return outbox

    def _notice(self, opened: OpenTurn) -> Outbox:
        last = _last_message(opened)
        if opened.failures > MAX_FAILURES:
            return Outbox(replace(answer_to(last), reply_to=0), (), is_unread=True)
        said = self.sentences.say(last.sender.language, "error.apology", reference=opened.id)
        former = last.replaced.answer_ids if last.replaced else ()
        return Outbox(answer_to(last), said, is_unread=True, replaces=former)


def _without_reply(entry: Entry) -> Entry:
    """Return the entry without the text it replies to, which may be another person's.

    A dead letter may stay for long, and that person's /forget would not find it.
    """
    try:
        message = from_bytes(entry.body)
    except (KeyError, TypeError, ValueError):
        return entry
    return replace(entry, body=to_bytes(replace(message, reply=None)))


def _has_notice(opened: OpenTurn) -> bool:
    return bool(opened.outbox) and Outbox.from_bytes(opened.outbox).is_unread


def _last_message(opened: OpenTurn) -> IncomingMessage:
    """Return the message that is answered; one that cannot be read is replaced by its place."""
    entry = opened.entries[-1]
    try:
        return from_bytes(entry.body)
    except (KeyError, TypeError, ValueError):
        chat = opened.lease.conversation
        return IncomingMessage(
            update_id=entry.update_id,
            chat_id=chat.chat_id,
            topic_id=chat.topic_id,
            is_group=chat.chat_id < 0,
            message_id=0,
            sent_at=0,
            sender=Sender(entry.sender_id, ""),
            kind="unsupported",
            text="",
        )
