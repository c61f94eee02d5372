"""The `Chat` port on Telegram: our parts in Telegram's types, each call within the rate limit.

Each call is made once. A 429 closes the chat for all processes until the ban is over.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from bot.reply.parts import Button, Entity, Part, Quote, utf16_length, well_formed, with_passage
from bot.reply.split import MAX_UTF16
from bot.telegram.bot_api import CALL_S, TelegramClient
from bot.telegram.chat import Destination, SendListeners
from bot.telegram.errors import (
    DECLINED,
    BadToken,
    ChatMigrated,
    FloodWait,
    Refused,
    TelegramError,
    unless,
)
from bot.telegram.rate_limit import DraftLimits, SendRateLimiter
from memory.behaviors.tool_output import FileKind

DOWNLOAD_S = 45.0
_ADMIN_STATUS = ("creator", "administrator")
_DRAFT_S = 2.0
_MAX_BUTTON_ANSWER_CHARS = 200
_NO_PREVIEW = {"is_disabled": True}
# `selective`: in a group only people who are mentioned or replied to are asked, not all members.
_FORCE_REPLY = {"force_reply": True, "selective": True}
_UPLOADS: Mapping[FileKind, tuple[str, str]] = {
    "photo": ("sendPhoto", "photo"),
    "voice": ("sendVoice", "voice"),
    "text": ("sendDocument", "document"),
    "document": ("sendDocument", "document"),
}
"""The method that sends a file of a kind, and the parameter that holds it."""
_Result = TypeVar("_Result")

# The entities that a reply may have. Other types need fields that `Entity` lacks, or Telegram finds
# them in the text itself. An unknown type is dropped, because the text matters more than its looks.
_ENTITY_TYPES = frozenset(
    ("bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link")
) | {"blockquote", "expandable_blockquote", "date_time"}
_MOMENT_FORMAT = "wDt"
"""Weekday, long date and short time, in the language and the time zone of whoever reads it."""


class TelegramChat(SendListeners):
    """Implements `Chat`. Typing is left out if permits are scarce; edits and deletes never wait.

    An edit answers a button press, and Telegram repeats a press that has to wait for its answer.
    """

    def __init__(self, client: TelegramClient, limiter: SendRateLimiter) -> None:
        super().__init__()
        self.client = client
        self.limiter = limiter
        self.waits = limiter.waits
        self._limits = DraftLimits()

    async def send(self, to: Destination, part: Part, timeout_s: float = CALL_S) -> int:
        """Send one part, with its file if it has one; return the id of the message.

        The caller has taken the permit before, through `waits`.
        """
        try:
            message_id = await self._send(to, part, timeout_s)
        except (BadToken, Refused) as error:
            if part.is_rich:
                self._limits.failed("sendRichMessage", to.chat_id, error)
            elif isinstance(error, Refused) and error.reason == "no_voice":
                self._limits.failed("sendVoice", to.chat_id, error)
            quote = part.quote
            if isinstance(error, BadToken) or quote is None or not quote.text:
                raise
            # Nothing was sent: the quoted message is gone, or has not exactly this passage. It is
            # replied to without a quote, and the passage stands at the end of the text.
            said = with_passage(part, quote.text)
            said = said if utf16_length(well_formed(said.text)) <= MAX_UTF16 else part
            plain = replace(said, quote=Quote(quote.message_id))
            message_id = await self._send(to, plain, timeout_s)
        self.note_sent(to)
        return message_id

    async def _send(self, to: Destination, part: Part, timeout_s: float) -> int:
        text, entities = well_formed(part.text), entities_of(part.entities)
        quote = part.quote or Quote(to.reply_to)
        replied: dict[str, Any] = {"message_id": quote.message_id}
        # If the message is gone by then, a reply with a passage is refused; one without is sent.
        replied["allow_sending_without_reply"] = not quote.text
        if quote.text:
            replied["quote"] = well_formed(quote.text)
        parameters: dict[str, Any] = {
            "message_thread_id": to.topic_id or None,
            "reply_parameters": replied if quote.message_id else None,
            "reply_markup": _FORCE_REPLY if part.force_reply else keyboard_of(part.buttons),
            "disable_notification": part.is_silent or None,
        }
        if part.copy_of:
            method = "copyMessage"
            parameters["from_chat_id"], parameters["message_id"] = part.copy_of
        elif part.is_rich:
            method = "sendRichMessage"
            parameters |= {"rich_message": {"markdown": text}}
        elif part.file is None:
            method = "sendMessage"
            parameters |= {"text": text, "entities": entities, "link_preview_options": _NO_PREVIEW}
        else:
            method, name = _UPLOADS[part.file.kind]
            parameters |= {"caption": text or None, "caption_entities": entities}
            parameters[name] = part.file.file_id or part.file
            if name == "document":
                parameters["disable_content_type_detection"] = True
        return await self._call(
            method, to.chat_id, parameters, lambda sent: int(sent["message_id"]), timeout_s
        )

    def takes_rich(self, chat_id: int) -> bool:
        """Return whether rich messages were not refused within the last hour."""
        return self._limits.accepts("sendRichMessage", chat_id)

    def takes_voice(self, chat_id: int) -> bool:
        """Return whether voice notes were not refused within the last hour."""
        return self._limits.accepts("sendVoice", chat_id)

    async def edit(
        self, chat_id: int, message_id: int, part: Part, timeout_s: float = CALL_S
    ) -> None:
        """Replace a message of ours at once, buttons included; an equal text is no error.

        Raise `FloodWait` without a call while the chat is closed.
        """
        await self.limiter.take_unless_closed(chat_id)
        parameters = {
            "message_id": message_id,
            "text": well_formed(part.text),
            "entities": entities_of(part.entities),
            "reply_markup": keyboard_of(part.buttons),
            "link_preview_options": _NO_PREVIEW,
        }
        async with unless("unchanged"):
            await self._call("editMessageText", chat_id, parameters, bool, timeout_s)

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message at once; a message that is already gone is no error."""
        with suppress(FloodWait):  # it is counted, and made even while the chat is closed
            await self.limiter.take_unless_closed(chat_id)
        async with unless("message_gone"):
            await self._call("deleteMessage", chat_id, {"message_id": message_id}, bool)

    async def show_typing(self, to: Destination) -> None:
        """Show "typing" if the rate limit has a permit to spare."""
        if self._limits.take(to.chat_id) and await self.limiter.take_spare(to.chat_id):
            parameters = {"action": "typing", "message_thread_id": to.topic_id or None}
            await self._call("sendChatAction", to.chat_id, parameters, bool)

    async def show_draft(self, to: Destination, draft_id: int, part: Part) -> bool:
        """Show a frame of a draft if neither the chat nor an answer could need the permit.

        A 429 pauses drafts only: it does not close the chat for answers.
        """
        limits, chat_id = self._limits, to.chat_id
        if not limits.accepts("sendMessageDraft", chat_id):
            raise Refused("other")
        if not await self.limiter.take_spare(None) or not limits.take(chat_id):
            return False
        parameters = {
            "chat_id": chat_id,
            "draft_id": draft_id,
            "text": well_formed(part.text),
            "message_thread_id": to.topic_id or None,
            "entities": entities_of(part.entities),
            # So a stopped draft stays until we send the message that keeps its text.
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

    async def react(self, chat_id: int, message_id: int, emoji: str) -> bool:
        """React, unless the chat refused lately; return false if there is no permit to spare."""
        takes = self._limits.accepts("setMessageReaction", chat_id)
        if not takes or not await self.limiter.take_spare(chat_id):
            return not takes
        try:
            reaction = [{"type": "emoji", "emoji": emoji}] if emoji else None
            parameters = {"message_id": message_id, "reaction": reaction}
            await self._call("setMessageReaction", chat_id, parameters, bool)
        except TelegramError as error:
            self._limits.failed("setMessageReaction", chat_id, error)
            raise
        return True

    async def name_topic(self, chat_id: int, topic_id: int, name: str) -> None:
        """Give a topic a name; the name that it has is no error."""
        await self.limiter.take_unless_closed(chat_id)
        async with unless("unchanged"):
            parameters = {"message_thread_id": topic_id, "name": name}
            await self._call("editForumTopic", chat_id, parameters, bool)

    async def answer_button(self, callback_id: str, text: str = "") -> None:
        """End the waiting mark on a pressed button; show at most 200 characters of `text`."""
        shown = well_formed(text)[:_MAX_BUTTON_ANSWER_CHARS] or None
        parameters = {"callback_query_id": callback_id, "text": shown}
        await self.client.call("answerCallbackQuery", parameters, bool)

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        """Return whether a person owns or administers the group; a refusal means no."""
        with suppress(*DECLINED):
            try:
                return await self._is_admin(chat_id, user_id)
            except ChatMigrated as moved:
                return await self._is_admin(moved.new_chat_id, user_id)
        return False

    async def _is_admin(self, chat_id: int, user_id: int) -> bool:
        asked = {"chat_id": chat_id, "user_id": user_id}
        status = await self.client.call("getChatMember", asked, lambda member: member["status"])
        return status in _ADMIN_STATUS

    async def leave(self, chat_id: int) -> None:
        """Leave a group."""
        await self.client.call("leaveChat", {"chat_id": chat_id}, bool)

    async def download(self, file_id: str, max_bytes: int, timeout_s: float = DOWNLOAD_S) -> bytes:
        """Return a file's content; raise `Refused` as "too_big" beyond `max_bytes`."""
        return await self.client.download(file_id, max_bytes, timeout_s)

    async def _call(
        self,
        method: str,
        chat_id: int,
        parameters: dict[str, Any],
        read: Callable[[Any], _Result],
        timeout_s: float = CALL_S,
    ) -> _Result:
        """Make one call to a chat; if it is banned, close the chat for as long."""
        asked = {"chat_id": chat_id, **parameters}
        try:
            return await self.client.call(method, asked, read, timeout_s)
        except FloodWait as ban:
            await self.limiter.close(chat_id, ban.retry_after_s)
            raise


def entities_of(entities: Iterable[Entity]) -> list[dict[str, Any]] | None:
    """Return the entities that Telegram can show, None if there are none."""
    shown = []
    for each in entities:
        if each.type not in _ENTITY_TYPES or (each.type == "text_link" and not each.url):
            continue
        fields: dict[str, Any] = {"type": each.type, "offset": each.offset, "length": each.length}
        if each.type == "date_time":
            fields["unix_time"] = int(each.url.rpartition("=")[2])
            fields["date_time_format"] = _MOMENT_FORMAT
        elif each.url:
            fields["url"] = well_formed(each.url)
        if each.language:
            fields["language"] = well_formed(each.language)
        shown.append(fields)
    return shown or None


def keyboard_of(buttons: Iterable[Iterable[Button]]) -> dict[str, Any] | None:
    """Return the rows of buttons, None if there are none."""
    rows = [[_button_of(button) for button in row] for row in buttons]
    return {"inline_keyboard": rows} if rows else None


def _button_of(button: Button) -> dict[str, Any]:
    text = well_formed(button.text)
    if button.copies:
        return {"text": text, "copy_text": {"text": button.copies}}
    return {"text": text, "callback_data": button.callback_data}
