"""Names the topics of private chats that Telegram named by itself.

A topic is named after the synopsis of its first session, once. A name that a person gave is never
changed, and an error changes nothing.
"""

import structlog

from bot.telegram.chat import Chat
from bot.telegram.errors import FloodWait, OutcomeUnknown, TelegramError, Unreachable
from bot.telegram.senders import clean_name
from memory.memory import Memory
from memory.scopes.entries import Synopsis
from memory.store.keys import Scope
from memory.text.untrusted_text import cut

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
