"""What acts at once, without a turn: buttons, `/stop`, and what features do at intake.

If a button erases something that a turn works on, the turn protocol refuses the turn's next step.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from bot.commands.access import asker_of
from bot.commands.bot_command import ANYTHING, Answer, BotCommand, ButtonHandler, ShownOnTop
from bot.commands.sentences import Sentences
from bot.reply.parts import Part, Parts
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import ChatMigrated, FloodWait, TelegramError
from bot.telegram.updates import (
    ButtonPress,
    ImmediateUpdate,
    IncomingMessage,
    StoppedDraft,
    ThumbsDown,
    to_bytes,
)
from memory.erasure.questions import NotConfirmed
from memory.limits.quotas import Verdict
from memory.memory import Memory
from memory.queue.mailbox import Entry, Mailbox, MailboxFull
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

Act = Callable[[Any], Awaitable[IncomingMessage | None]]
"""Acts on an update at intake; a repeat changes nothing. Returns a message that still has to be
answered in its turn. Raises `StoreError` or `TelegramError`."""

_NOT_YOURS = "not_yours"
_SEEN, _SEEN_S = "👀", 1.0


@dataclass(frozen=True, slots=True)
class ImmediateActions:
    """Acts on updates. The person who asked can stop an answer, and so can a group's admins."""

    press: Callable[[ButtonPress], Awaitable[None]]
    # Takes the reply to our question for other words; returns a message that is none.
    reword: Callable[[IncomingMessage], Awaitable[IncomingMessage]]
    mailbox: Mailbox
    chat: Chat
    acts: Mapping[type[Any], Act]  # on other updates, by their type: see `Feature.arrivals`

    async def act(self, update: ImmediateUpdate) -> IncomingMessage | None:
        """Act on an update, as `Act` says; after an error Telegram sends it again."""
        match update:
            case ButtonPress():
                await self.press(update)
            case StoppedDraft():
                here = Scope.of_chat(update.chat_id, update.topic_id)
                outcome = await self.mailbox.stop(
                    here, update.update_id, update.chat_id, update.draft_id
                )
                log.info("stop", conversation=here.tag, outcome=outcome)
            case IncomingMessage(kind="command", is_immediate=True):  # only `/stop` comes here
                here = Scope.of_chat(update.chat_id, update.topic_id)
                stop = partial(self.mailbox.stop, here, update.update_id, update.sender.id)
                outcome = await stop(as_admin=update.is_anonymous_admin)
                if outcome == _NOT_YOURS and await asker_of(update, self.chat).is_admin():
                    outcome = await stop(as_admin=True)
                log.info("stop", conversation=here.tag, outcome=outcome)
                return None if outcome in ("stopped", "answered") else replace(update, text=outcome)
            case IncomingMessage(is_immediate=True):
                return await self.reword(update)
            case IncomingMessage(kind="command"):  # it waits: let the person see that it came
                with suppress(TelegramError, TimeoutError):
                    async with asyncio.timeout(_SEEN_S):  # other updates wait for this one
                        await self.chat.react(update.chat_id, update.message_id, _SEEN)
            case _ if act := self.acts.get(type(update)):
                return await act(update)
        return None


def stop_command(sentences: Sentences) -> BotCommand:
    """Return the command that says why `/stop` stopped nothing."""

    async def answer(asked: IncomingMessage, _: Scope) -> Answer:
        # `ImmediateActions` left the reason in the text.
        key = "stop.not_yours" if asked.text == _NOT_YOURS else "stop.nothing"
        return Answer(sentences.say(asked.sender.language, key))

    return BotCommand("stop", answer, takes=ANYTHING)


def message_of(act: ButtonPress | ThumbsDown) -> IncomingMessage:
    """Return a command without name and text; the caller sets what its turn needs."""
    return IncomingMessage(
        update_id=act.update_id,
        chat_id=act.chat_id,
        topic_id=act.topic_id,
        is_group=act.is_group,
        message_id=act.message_id,
        sent_at=int(time.time()),
        sender=act.sender,
        kind="command",
        text="",
    )


async def put_press(mailbox: Mailbox, here: Scope, message: IncomingMessage) -> None:
    """Put the message of a press into the mailbox; raise `ShownOnTop` if it is full."""
    entry = Entry(message.update_id, message.sender.id, is_alone=True, body=to_bytes(message))
    try:
        await mailbox.put(here, entry)
    except MailboxFull:
        log.warning("mailbox full", conversation=here.tag, sender=message.sender.id)
        raise ShownOnTop("clear.not_yet") from None


_TRIES = 8
_PAUSE_S = 0.25
_CANCEL = "cancel"


class Buttons:
    """Finds the handler of a pressed button and shows what it returns in the button's place."""

    def __init__(
        self,
        handlers: Mapping[str, ButtonHandler],
        memory: Memory,
        chat: Chat,
        sentences: Sentences,
    ) -> None:
        self._handlers = {**handlers, _CANCEL: self._cancel}
        self._questions = memory.questions
        self._resolve = memory.mailbox.resolve
        self._quotas = memory.quotas
        self._chat = chat
        self._sentences = sentences

    async def press(self, pressed: ButtonPress) -> None:
        """Act on a button; raise `StoreError` or `TelegramError` so that Telegram asks again."""
        here = await self._resolve(Scope.of_chat(pressed.chat_id, pressed.topic_id))
        verb, _, rest = pressed.callback_data.partition(":")
        language, on_top = pressed.sender.language, ""
        shown: Parts = ()
        try:
            if pressed.is_group:
                await self._check_share(pressed)
            shown = await self._act_when_stored(pressed, here, verb, rest)
        except (FloodWait, ShownOnTop) as answer:
            # A chat may be closed for long, and other people's updates would wait for this one.
            key = answer.key if isinstance(answer, ShownOnTop) else "clear.not_yet"
            on_top = self._sentences.say(language, key)[0].text
        except ChatMigrated:  # it wanted to send something there
            shown = self._sentences.say(language, "clear.expired")
        except NotConfirmed as refusal:
            # An unknown verb may be any text of the person's; it stays out of the log.
            is_known, is_own = verb in self._handlers, str(refusal) != _NOT_YOURS
            log.info("button refused", verb=verb if is_known else "unknown", why=str(refusal))
            said = self._sentences.say(language, "clear.expired" if is_own else "clear.not_yours")
            if is_known and is_own:
                shown = said
            else:  # the message stays: a process of a newer release may know the button
                on_top = said[0].text
        for part in shown[:1]:
            with _quiet():
                on_top = await self._show(pressed, part)
        with _quiet():
            await self._chat.answer_button(pressed.callback_id, on_top)

    async def _show(self, pressed: ButtonPress, part: Part) -> str:
        """Replace the message; return what is shown on top if the chat is banned now."""
        try:
            await self._chat.edit(pressed.chat_id, pressed.message_id, part)
        except ChatMigrated as moved:
            await self._chat.send(Destination(moved.new_chat_id), part)
        except FloodWait:  # another press changes nothing more, and shows what was done
            return self._sentences.text(pressed.sender.language, "clear.not_yet")
        return ""

    async def _check_share(self, pressed: ButtonPress) -> None:
        """Raise `ShownOnTop` if a press may not use up a message that a group has left."""
        name, who = str(pressed.update_id), (pressed.chat_id, pressed.sender.id)
        if await self._quotas.admit_in_group(*who, name, "press") is not Verdict.ADMITTED:
            raise ShownOnTop("quota.pressed")

    async def _act_when_stored(
        self, pressed: ButtonPress, here: Scope, verb: str, rest: str
    ) -> Parts:
        """Act. If what the button needs is not stored yet, wait for the turn that stores it.

        Other people's updates wait for that, too, so it is short: a turn may be parked for minutes.
        """
        is_last = False
        for _ in range(_TRIES):
            try:
                return await self._act(pressed, here, verb, rest)
            except NotConfirmed as refusal:
                if is_last or str(refusal) != "unknown":
                    raise
            # If the turn was closed since, it is stored now.
            is_last = not await self._questions.is_on_its_way(here, pressed.callback_data)
            await asyncio.sleep(0 if is_last else _PAUSE_S)
        raise ShownOnTop("clear.not_yet")

    async def _act(self, pressed: ButtonPress, here: Scope, verb: str, rest: str) -> Parts:
        if verb not in self._handlers:
            raise NotConfirmed("unknown")
        return await self._handlers[verb](pressed, here, rest)

    async def _cancel(self, pressed: ButtonPress, here: Scope, rest: str) -> Parts:
        """Withdraw a question; one that was confirmed is confirmed again, which finishes it."""
        nonce, _, action = rest.partition(":")
        if await self._questions.withdraw(here, nonce, pressed.sender.id):
            return self._sentences.say(pressed.sender.language, "clear.cancelled")
        verb, _, detail = action.partition(":")
        if verb == _CANCEL:
            raise NotConfirmed("unknown")
        return await self._act(pressed, here, verb, f"{nonce}:{detail}" if detail else nonce)


@contextmanager
def _quiet() -> Iterator[None]:
    """Log an error of Telegram, because what was pressed has been done."""
    try:
        yield
    except TelegramError as error:
        log.warning("button not answered", reason=type(error).__name__)
