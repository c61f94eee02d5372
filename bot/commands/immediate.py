"""What acts at once, without a turn: buttons, `/stop`, and what features do at intake."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from bot.commands.access import asker_of
from bot.commands.bot_command import ANYTHING, Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.telegram.chat import Chat
from bot.telegram.updates import ButtonPress, ImmediateUpdate, IncomingMessage, StoppedDraft
from memory.queue.signals import Stop, Stopping
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

Act = Callable[[Any], Awaitable[IncomingMessage | None]]
"""Acts on an update at intake; a repeated call changes nothing.

Returns a message that still has to be answered in its turn. Raises `StoreError` or `TelegramError`.
"""

_NOT_YOURS = "not_yours"


@dataclass(frozen=True, slots=True)
class ImmediateActions:
    """`press` acts on a button; `acts` on the other updates, by their type: see `Feature.arrivals`.

    `reword` takes a message that may be the reply to our question for other words; it returns it if
    it is not. The person who asked can stop an answer, and so can a group's admins.
    """

    press: Callable[[ButtonPress], Awaitable[None]]
    reword: Callable[[IncomingMessage], Awaitable[IncomingMessage]]
    stopping: Stopping
    chat: Chat
    acts: Mapping[type[Any], Act]

    async def act(self, update: ImmediateUpdate) -> IncomingMessage | None:
        """Act on an update; return a message that still has to be answered.

        Raise `StoreError` or `TelegramError` so that Telegram sends the update again.
        """
        match update:
            case ButtonPress():
                await self.press(update)
            case StoppedDraft():
                here = Scope.of_chat(update.chat_id, update.topic_id)
                stop = Stop(update.update_id, update.chat_id, update.draft_id)
                outcome = await self.stopping.stop(here, stop)
                log.info("stop", conversation=here.tag, outcome=outcome)
            case IncomingMessage(is_rewording=True):
                return await self.reword(update)
            case IncomingMessage():
                return await self._stop(update)
            case _ if act := self.acts.get(type(update)):
                return await act(update)
        return None

    async def _stop(self, asked: IncomingMessage) -> IncomingMessage | None:
        here = Scope.of_chat(asked.chat_id, asked.topic_id)
        stop = Stop(asked.update_id, asked.sender.id)
        outcome = await self.stopping.stop(here, stop, as_admin=asked.is_anonymous_admin)
        if outcome == _NOT_YOURS and await asker_of(asked, self.chat).is_admin():
            outcome = await self.stopping.stop(here, stop, as_admin=True)
        log.info("stop", conversation=here.tag, outcome=outcome)
        if outcome in ("stopped", "answered"):
            return None
        return replace(asked, text=outcome)


def stop_command(sentences: Sentences) -> BotCommand:
    """Return the command that says why `/stop` stopped nothing."""

    async def answer(asked: IncomingMessage, _: Scope) -> Answer:
        # `ImmediateActions` left the reason in the text.
        key = "stop.not_yours" if asked.text == _NOT_YOURS else "stop.nothing"
        return Answer(sentences.say(asked.sender.language, key))

    return BotCommand("stop", answer, takes=ANYTHING)
