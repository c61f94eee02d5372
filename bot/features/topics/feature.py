"""What topics add to the bot, beyond that each has a memory of its own.

A topic is named after the synopsis of its first session, once. A name that a person gave is never
changed, and an error changes nothing.
"""

from collections.abc import Mapping

import structlog

from bot.commands.bot_command import MemoryWords
from bot.feature import Feature, Services
from bot.features.topics.other_topics import OtherTopics, recalls_topics, set_recall_topics
from bot.telegram.chat import Chat
from bot.telegram.errors import FloodWait, OutcomeUnknown, TelegramError, Unreachable
from bot.telegram.updates import clean_name
from memory.memory import Memory
from memory.scopes.entries import Synopsis
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope
from memory.text.untrusted_text import cut

_ON, _OFF = "topics", "topics off"


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory = services.memory

    async def change(conversation: Scope, word: str) -> str:
        await set_recall_topics(memory.scopes, conversation, is_on=word == _ON)
        return _said(conversation, is_on=word == _ON)

    async def exported(_: Scope, facts: ScopeMemory) -> Mapping[str, object]:
        name = "private_topics_recall_each_other" if facts.scope.is_person else "recalls_topics"
        return {name: recalls_topics(facts)}

    return Feature(
        name="topics",
        switches=[MemoryWords((_ON, _OFF), change, _shown)],
        behaviors=[OtherTopics(memory.histories)],
        learned=[TopicTitles(memory, services.chat).give],
        exports=[exported],
    )


def _shown(conversation: Scope, facts: ScopeMemory) -> str:
    is_on = recalls_topics(facts)
    if not is_on and not conversation.topic_id:
        return ""
    return _said(conversation, is_on=is_on)


def _said(conversation: Scope, *, is_on: bool) -> str:
    where = "" if conversation.is_private else "group_"
    return f"topics.{where}{'on' if is_on else 'off'}"


log = structlog.get_logger(__name__)

_MAX_BYTES = 96
"""Telegram takes 128 characters and shows some thirty in the list of topics."""


class TopicTitles:
    """Gives topics their titles, in the process that learns from them."""

    def __init__(self, memory: Memory, chat: Chat) -> None:
        self._names = memory.mailbox.topic_names
        self._scopes = memory.scopes
        self._chat = chat

    async def give(self, conversation: Scope) -> bool:
        """Name a conversation's topic if it needs a name and has a synopsis; raise `StoreError`.

        Return false if Telegram cannot be asked now. If the process dies in between, the next one
        gives the same name again.
        """
        is_topic = conversation.is_private and conversation.topic_id
        if not is_topic or not await self._names.needs_name(conversation):
            return True
        synopses = (await self._scopes.read(conversation)).synopses
        title = title_of(synopses[0]) if synopses else ""
        if not title or not await self._names.needs_name(conversation):
            return True
        try:
            await self._chat.name_topic(conversation.chat_id, conversation.topic_id, title)
        except (FloodWait, OutcomeUnknown, Unreachable):
            return False
        except TelegramError as error:
            log.info("topic not named", reason=type(error).__name__)
        await self._names.note_given(conversation)
        return True


def title_of(synopsis: Synopsis) -> str:
    """Return a few words on what a session was about."""
    said = synopsis.likely_request or synopsis.result or synopsis.actions or synopsis.preferences
    return cut(clean_name(said, max_chars=2 * _MAX_BYTES), _MAX_BYTES).rstrip(".,;:!")
