"""The `Chat` port on Telegram: our parts in Telegram's types, each call within the rate limit.

Each call is made once. A 429 closes the chat for all processes until the ban is over.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import telegram

from bot.reply.parts import Part, Quote
from bot.reply.utf16 import well_formed
from bot.telegram.bot_api import CALL_S, CONNECT_S, TelegramClient, calling
from bot.telegram.chat import CopiedMessage, Destination
from bot.telegram.errors import (
    BadToken,
    FloodWait,
    Refused,
    TelegramError,
    unless,
)
from bot.telegram.part_types import (
    entities_json,
    entities_of,
    keyboard_of,
    markup_of,
    reply_parameters,
    send_file,
    without_passage,
)
from bot.telegram.rate_limit import DraftLimits, SendRateLimiter

DOWNLOAD_S = 45.0
_DRAFT_S = 2.0
_MAX_BUTTON_ANSWER_CHARS = 200
_NO_PREVIEW = telegram.LinkPreviewOptions(is_disabled=True)


class TelegramChat:
    """Implements `Chat`. Typing is left out if permits are scarce; edits and deletes never wait.

    An edit answers a button press, and Telegram repeats a press that has to wait for its answer.
    """

    def __init__(
        self, client: TelegramClient, limiter: SendRateLimiter, *, sends_rich: bool = False
    ) -> None:
        self.client = client
        self.limiter = limiter
        self._sends_rich = sends_rich
        self._bot = client.bot
        self._limits = DraftLimits()
        self._on_message: dict[tuple[int, int], Callable[[], None]] = {}

    def waits(self, chat_id: int) -> AsyncIterator[float]:
        """Take a permit for one message; see `Chat.waits`."""
        return self.limiter.waits(chat_id)

    async def send(self, to: Destination, part: Part, timeout_s: float = CALL_S) -> int:
        """Send one part, with its file if it has one; return the id of the message.

        The caller has taken the permit before, through `waits`.
        """
        send = self._send_rich if part.is_rich else self._send_part
        try:
            message_id = await send(to, part, timeout_s)
        except Refused as refusal:
            if refusal.reason == "no_voice":
                self._limits.failed("sendVoice", to.chat_id, refusal)
            if part.quote is None or not part.quote.text:
                raise
            # The message is gone, or the passage does not stand there exactly so. Nothing was sent.
            message_id = await send(to, without_passage(part, part.quote), timeout_s)
        if on_message := self._on_message.get((to.chat_id, to.topic_id)):
            on_message()
        return message_id

    async def _send_part(self, to: Destination, part: Part, timeout_s: float) -> int:
        # Shorter than the whole call: so an unsent request is known to be unsent.
        connect_s = min(CONNECT_S, timeout_s / 2)
        quote = part.quote or Quote(to.reply_to)
        options: dict[str, Any] = {
            "reply_markup": markup_of(part),
            "reply_parameters": reply_parameters(quote.message_id, quote.text),
            "message_thread_id": to.topic_id or None,
            "connect_timeout": connect_s,
            "pool_timeout": connect_s,
        }
        if part.is_silent:
            options["disable_notification"] = True
        text, entities = well_formed(part.text), entities_of(part.entities)
        async with self._calling(to.chat_id, timeout_s):
            if part.file is None:
                message = await self._bot.send_message(
                    to.chat_id, text, entities=entities, link_preview_options=_NO_PREVIEW, **options
                )
            else:
                options |= {"caption": text or None, "caption_entities": entities}
                message = await send_file(self._bot, to.chat_id, part.file, options)
            return message.message_id

    async def copy(self, chat_id: int, message: CopiedMessage, timeout_s: float = CALL_S) -> None:
        """Send a copy of a message to a chat, whose permit the caller has taken."""
        connect_s = min(CONNECT_S, timeout_s / 2)
        async with self._calling(chat_id, timeout_s):
            await self._bot.copy_message(
                chat_id,
                message.chat_id,
                message.message_id,
                reply_markup=keyboard_of([[message.button]]),
                connect_timeout=connect_s,
                pool_timeout=connect_s,
            )

    def takes_rich(self, chat_id: int) -> bool:
        """Return whether rich messages are on and were not refused within the last hour."""
        return self._sends_rich and self._limits.takes("sendRichMessage", chat_id)

    def takes_voice(self, chat_id: int) -> bool:
        """Return whether voice notes were not refused within the last hour."""
        return self._limits.takes("sendVoice", chat_id)

    async def _send_rich(self, to: Destination, part: Part, timeout_s: float) -> int:
        parameters = {
            "chat_id": to.chat_id,
            "message_thread_id": to.topic_id or None,
            "reply_parameters": reply_parameters(to.reply_to),
            "rich_message": {"markdown": well_formed(part.text)},
        }
        try:
            async with self._calling(to.chat_id, timeout_s):
                sent = await self.client.call("sendRichMessage", parameters, dict, timeout_s)
                return int(sent["message_id"])
        except (Refused, BadToken) as error:
            self._limits.failed("sendRichMessage", to.chat_id, error)
            raise

    async def edit(
        self, chat_id: int, message_id: int, part: Part, timeout_s: float = CALL_S
    ) -> None:
        """Replace a message of ours at once, buttons included; an equal text is no error.

        Raise `FloodWait` without a call while the chat is closed.
        """
        await self.limiter.take_unless_closed(chat_id)
        async with unless("unchanged"), self._calling(chat_id, timeout_s):
            await self._bot.edit_message_text(
                well_formed(part.text),
                chat_id,
                message_id,
                entities=entities_of(part.entities),
                reply_markup=keyboard_of(part.buttons),
                link_preview_options=_NO_PREVIEW,
            )

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message at once; a message that is already gone is no error."""
        await self.limiter.take(chat_id)
        async with unless("message_gone"), self._calling(chat_id):
            await self._bot.delete_message(chat_id, message_id)

    async def show_typing(self, to: Destination) -> None:
        """Show "typing" if the rate limit has a permit to spare."""
        if self._limits.take(to.chat_id) and await self.limiter.take_spare(to.chat_id):
            typing = telegram.constants.ChatAction.TYPING
            async with self._calling(to.chat_id):
                await self._bot.send_chat_action(
                    to.chat_id, typing, message_thread_id=to.topic_id or None
                )

    async def show_draft(self, to: Destination, draft_id: int, part: Part) -> bool:
        """Show a frame of a draft if neither the chat nor an answer could need the permit.

        A 429 pauses drafts only: it does not close the chat for answers.
        """
        limits, chat_id = self._limits, to.chat_id
        if not limits.takes("sendMessageDraft", chat_id):
            raise Refused("other")
        if not self.limiter.take_spare_of_bot() or not limits.take(chat_id):
            return False
        parameters = {
            "chat_id": chat_id,
            "draft_id": draft_id,
            "text": well_formed(part.text),
            "message_thread_id": to.topic_id or None,
            "entities": entities_json(part.entities),
            # The draft then stays until the message that keeps what was shown.
            "can_stop": True,
            "keep_on_stop": True,
        }
        try:
            return await self.client.call("sendMessageDraft", parameters, bool, _DRAFT_S)
        except FloodWait as ban:
            limits.pause(chat_id, ban.retry_after_s)
            return False
        except TelegramError as error:
            limits.failed("sendMessageDraft", chat_id, error)
            raise

    @contextmanager
    def on_message(self, to: Destination, sent: Callable[[], None]) -> Iterator[None]:
        """Call `sent` after each message to this chat and topic, until the block ends."""
        place = to.chat_id, to.topic_id
        self._on_message[place] = sent
        try:
            yield
        finally:
            del self._on_message[place]

    async def react(self, chat_id: int, message_id: int, emoji: str) -> bool:
        """React if the rate limit has a permit to spare and the chat did not refuse lately."""
        takes = self._limits.takes("setMessageReaction", chat_id)
        if not takes or not await self.limiter.take_spare(chat_id):
            return not takes
        try:
            async with self._calling(chat_id):
                await self._bot.set_message_reaction(chat_id, message_id, emoji or None)
        except TelegramError as error:
            self._limits.failed("setMessageReaction", chat_id, error)
            raise
        return True

    async def name_topic(self, chat_id: int, topic_id: int, name: str) -> None:
        """Give a topic a name; the name that it has is no error."""
        await self.limiter.take_unless_closed(chat_id)
        async with unless("unchanged"), self._calling(chat_id):
            await self._bot.edit_forum_topic(chat_id, topic_id, name=name)

    async def answer_button(self, callback_id: str, text: str = "") -> None:
        """End the waiting mark on a pressed button; show at most 200 characters of `text`."""
        async with calling():
            await self._bot.answer_callback_query(
                callback_id, well_formed(text)[:_MAX_BUTTON_ANSWER_CHARS] or None
            )

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        """Return whether a person owns or administers the group; a refusal means no."""
        return await self.client.is_group_admin(chat_id, user_id)

    async def leave(self, chat_id: int) -> None:
        """Leave a group."""
        await self.client.leave(chat_id)

    async def download(self, file_id: str, max_bytes: int, timeout_s: float = DOWNLOAD_S) -> bytes:
        """Return a file's content; raise `Refused` as "too_big" beyond `max_bytes`."""
        async with calling(timeout_s):
            file = await self._bot.get_file(file_id)
            if (file.file_size or 0) > max_bytes:
                raise Refused("too_big")
            return await self.client.transport.fetch(file.file_path or "", max_bytes)

    @asynccontextmanager
    async def _calling(self, chat_id: int, timeout_s: float = CALL_S) -> AsyncIterator[None]:
        """Make one call to a chat; if it is banned, close the chat for as long."""
        try:
            async with calling(timeout_s):
                yield
        except FloodWait as ban:
            await self.limiter.close(chat_id, ban.retry_after_s)
            raise
