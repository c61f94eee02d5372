"""`/broadcast`: an operator sends a message to all private chats."""

from collections.abc import Callable
from dataclasses import replace

import structlog

from bot.commands.bot_command import Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.features.broadcast.announcements import (
    ACTIVE_DAYS,
    Announcement,
    AnnouncementProgress,
    Announcements,
)
from bot.reply.parts import Button, Part
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import DECLINED, TelegramError
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.questions import Question, Questions
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_SEND, _DONT_SEND, _STOP, MUTE = "broadcast", "dont_broadcast", "stop_broadcast", "mute"

IsMember = Callable[[int], bool]
"""Returns whether a person may use the bot now, as far as this process knows."""


class BroadcastStatus:
    """The operator's message that shows the question, then the progress, then the receipt."""

    def __init__(self, chat: Chat, sentences: Sentences) -> None:
        self._chat = chat
        self._sentences = sentences

    def mute_button(self, language: str) -> Button:
        """Return the button below each copy; its label is in the operator's language."""
        return Button(self._sentences.text(language, "buttons.mute"), f"{MUTE}:")

    async def show(self, progress: AnnouncementProgress) -> None:
        """Show how many chats are done, with a button that stops the rest."""
        about = progress.announcement
        key = "broadcast.progress" if progress.total else "broadcast.begins"
        counts = {"done": progress.done, "total": progress.total}
        part, *_ = self._sentences.say(about.language, key, **counts)
        label = self._sentences.text(about.language, "buttons.stop_broadcast")
        part = replace(part, buttons=((Button(label, f"{_STOP}:{about.id}"),),))
        try:
            await self._chat.edit(about.chat_id, about.status_id, part)
        except TelegramError as error:
            log.info("progress not shown", reason=type(error).__name__)

    async def report(self, progress: AnnouncementProgress) -> None:
        """Show the receipt, in a new message if the old one is gone; raise `TelegramError`."""
        about, total = progress.announcement, progress.total or 0
        key = f"broadcast.{progress.why_ended or 'done'}"
        counts = {"total": total, "left": total - progress.done, **progress.counts}
        part, *_ = self._sentences.say(about.language, key, "broadcast.counts", **counts)
        try:
            await self._chat.edit(about.chat_id, about.status_id, part)
        except DECLINED:
            try:
                await self._chat.send(Destination(about.chat_id), part)
            except DECLINED as error:
                log.warning("receipt not shown", reason=type(error).__name__)


class BroadcastCommand:
    """Asks first; a worker sends the message when the question is confirmed.

    `is_member` says who may use the bot: nobody else gets announcements.
    """

    def __init__(
        self,
        announcements: Announcements,
        questions: Questions,
        status: BroadcastStatus,
        sentences: Sentences,
        is_member: IsMember,
    ) -> None:
        self._announcements = announcements
        self._audience = announcements.audience
        self._questions = questions
        self._status = status
        self._sentences = sentences
        self._is_member = is_member
        buttons = {_SEND: self.send, _DONT_SEND: self.refuse, _STOP: self.stop}
        self.command = BotCommand("broadcast", self.answer, "operators", buttons)

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say to how many chats the replied message would go, and ask."""
        language = asked.sender.language
        if not asked.replied_to:
            return self._say(language, "usage")
        if await self._announcements.is_open():
            return self._say(language, "busy")
        chats = await self._audience.count(self._is_member, besides=asked.chat_id)
        if not chats:
            return self._say(language, "nobody", days=ACTIVE_DAYS)
        said = self._say(language, "ask", chats=chats, days=ACTIVE_DAYS)
        question = Question("broadcast", asked.sender.id, str(asked.replied_to))
        return Answer(self._sentences.ask(language, said.parts, question, _SEND, _DONT_SEND))

    async def send(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Store the announcement for the workers, who show its progress here."""
        if await self._announcements.knows(nonce):
            return ()
        language = pressed.sender.language
        about = await self._questions.check(here, nonce, "broadcast", pressed.sender.id)
        announcement = Announcement(
            nonce, pressed.chat_id, int(about), pressed.message_id, language
        )
        if await self._announcements.is_open():
            return self._say(language, "busy").parts
        # Shown before it is stored: later it could overwrite what a worker shows.
        await self._status.show(AnnouncementProgress(announcement, None, {}))
        if not await self._announcements.start(announcement):
            return self._say(language, "busy").parts
        await self._questions.withdraw(here, nonce, pressed.sender.id)
        return ()

    async def refuse(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Forget the question."""
        await self._questions.withdraw(here, nonce, pressed.sender.id)
        return self._say(pressed.sender.language, "refused").parts

    async def stop(self, _: ButtonPress, __: Scope, nonce: str) -> tuple[Part, ...]:
        """Send to no further chat; the worker shows the receipt."""
        await self._announcements.stop(nonce)
        return ()

    def _say(self, language: str, key: str, **values: object) -> Answer:
        return Answer(self._sentences.say(language, f"broadcast.{key}", **values))
