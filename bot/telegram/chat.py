"""The one port for everything that the bot sends to a chat or asks about one.

The turn, the commands and the features know Telegram only by this port, which `telegram_chat`
implements. Every method raises `TelegramError`, and none repeats a call: the caller decides by the
kind of error whether to try again.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from bot.reply.parts import Part

SHORT_WAIT_S = 2.0  # for a permit, if others wait for the caller


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a message goes."""

    chat_id: int
    topic_id: int = 0  # 0 in a chat without topics and in the General topic
    reply_to: int = 0  # the message that is answered, 0 for none; one that is gone does no harm


class Chat(Protocol):
    """Sends, edits and deletes messages, fetches files, knows the administrators of a group."""

    def waits(self, chat_id: int, max_wait_s: float = ...) -> AsyncIterator[float]:
        """Take a permit of the rate limit for one message; yield each wait in seconds.

        The caller waits, because after each wait it has to look whether the message is still
        wanted. Raise `FloodWait` if a wait would be longer than `max_wait_s`, or `StoreError`.
        """

    async def send(self, to: Destination, part: Part, timeout_s: float = ...) -> int:
        """Send one part, with its file if it has one; return the id of the message."""

    def takes_rich(self, chat_id: int) -> bool:
        """Tell whether it is worth sending a rich part to this chat."""

    def takes_voice(self, chat_id: int) -> bool:
        """Tell whether it is worth sending a voice note: people and groups may refuse them."""

    async def edit(self, chat_id: int, message_id: int, part: Part, timeout_s: float = ...) -> None:
        """Replace a message of ours, buttons included; an equal text is no error."""

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message of ours; a message that is already gone is no error."""

    async def show_typing(self, to: Destination) -> None:
        """Show "typing" for five seconds, or until our next message arrives."""

    async def show_draft(self, to: Destination, draft_id: int, part: Part) -> bool:
        """Show what is being written, for 30 seconds or until our next message arrives.

        Return false if this frame was left out. Raise `TelegramError` if the chat takes no drafts
        for now.
        """

    def after_each_send(
        self, to: Destination, sent: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Call `sent` after each message to this chat and topic, until the block ends.

        Only messages of this process count, and only one caller for each chat and topic.
        """

    async def react(self, chat_id: int, message_id: int, emoji: str) -> bool:
        """Replace our reaction to a message, "" for none; return false if it has to wait."""

    async def name_topic(self, chat_id: int, topic_id: int, name: str) -> None:
        """Give a topic a name of 1 to 128 characters; the name that it has is no error."""

    async def answer_button(self, callback_id: str, text: str = "") -> None:
        """End the waiting mark on a pressed button; `text` is shown on top of the chat."""

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        """Tell whether this person owns or administers the group."""

    async def leave(self, chat_id: int) -> None:
        """Leave a group."""

    async def download(self, file_id: str, max_bytes: int) -> bytes:
        """Return the content of a file that somebody sent; `Refused` as "too_big" beyond that."""


class SendListeners:
    """Implements `after_each_send` for a `Chat` that calls `note_sent` after each message."""

    def __init__(self) -> None:
        self._listeners: dict[tuple[int, int], Callable[[], None]] = {}

    @contextmanager
    def after_each_send(self, to: Destination, sent: Callable[[], None]) -> Iterator[None]:
        """Call `sent` after each message to this chat and topic, until the block ends."""
        where = to.chat_id, to.topic_id
        self._listeners[where] = sent
        try:
            yield
        finally:
            del self._listeners[where]

    def note_sent(self, to: Destination) -> None:
        """Tell the listener that a message was sent."""
        if sent := self._listeners.get((to.chat_id, to.topic_id)):
            sent()
