"""What acts at once, without a turn: buttons, a 👎, `/stop`, new wordings of memories."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from bot.commands.access import asker_of
from bot.commands.bot_command import Answer
from bot.commands.disliked import asked_why
from bot.commands.sentences import Sentences
from bot.commands.strangers import Strangers
from bot.telegram.chat import Chat
from bot.telegram.updates import (
    AtOnceUpdate,
    ButtonPress,
    ChatMigration,
    Disliked,
    IncomingMessage,
    StoppedDraft,
    Stranger,
)
from memory.memory import Memory
from memory.queue.stopping import Stop
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_NOT_YOURS = "not_yours"


@dataclass(frozen=True, slots=True)
class AtOnce:
    """`press` acts on a button, `edit` on the new wording of a memory.

    `strangers` decides about messages of people and groups that the bot does not serve.

    The person who asked can stop an answer, and so can a group's admins.
    """

    press: Callable[[ButtonPress], Awaitable[None]]
    memory: Memory
    chat: Chat
    edit: Callable[[IncomingMessage], Awaitable[IncomingMessage]]
    strangers: Strangers

    async def act(self, update: AtOnceUpdate) -> IncomingMessage | None:
        """Act on a button or a message; return a message that still has to be answered.

        Raise `StoreError` or `TelegramError` so that Telegram sends the update again.
        """
        match update:
            case ButtonPress():
                await self.press(update)
            case Stranger():
                return await self.strangers.meet(update)
            case ChatMigration():
                await self.strangers.follow(update)
            case Disliked():
                return await asked_why(update, self.memory)
            case StoppedDraft():
                here = Scope.of_chat(update.chat_id, update.topic_id)
                stop = Stop(update.update_id, update.chat_id, update.draft_id)
                outcome = await self.memory.stopping.stop(here, stop)
                log.info("stop", conversation=here.tag, outcome=outcome)
            case IncomingMessage(may_be_wording=True):
                return await self.edit(update)
            case IncomingMessage():
                return await self._stop(update)
        return None

    async def _stop(self, asked: IncomingMessage) -> IncomingMessage | None:
        here = Scope.of_chat(asked.chat_id, asked.topic_id)
        stop = Stop(asked.update_id, asked.sender.id)
        outcome = await self.memory.stopping.stop(here, stop, as_admin=asked.is_anonymous_admin)
        if outcome == _NOT_YOURS and await asker_of(asked, self.chat).is_admin():
            outcome = await self.memory.stopping.stop(here, stop, as_admin=True)
        log.info("stop", conversation=here.tag, outcome=outcome)
        if outcome in ("stopped", "answered"):
            return None
        return replace(asked, text=outcome)


class StopCommand:
    """Says why `/stop` stopped nothing."""

    def __init__(self, sentences: Sentences) -> None:
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Return the sentence for what `AtOnce` left in the text."""
        key = "stop.not_yours" if asked.text == _NOT_YOURS else "stop.nothing"
        return Answer(self._sentences.say(asked.sender.language, key))
