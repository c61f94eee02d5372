"""Calls to the Bot API in our own values; the only place that talks to Telegram.

Each call happens at most once: whether to try again is the caller's decision, by the kind of error.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import telegram
from telegram import error as ptb

from bot.reply.parts import Part
from bot.reply.utf16 import well_formed
from bot.telegram import outgoing
from bot.telegram.bot_api import ALLOWED_UPDATES, CONNECT_S, BotApi, Transport
from bot.telegram.chat import Destination
from bot.telegram.errors import DECLINED, OutcomeUnknown, Refused
from bot.telegram.files import FileServer
from bot.telegram.ptb_errors import translate
from bot.telegram.values import (
    BotIdentity,
    CommandMenu,
    Description,
    MenuScope,
    WebhookState,
)

CALL_S = 15.0
DOWNLOAD_S = 45.0
# Over and above the time that Telegram itself holds a poll open.
_POLL_SLACK_S = 10.0
_MAX_BUTTON_ANSWER = 200

_NO_PREVIEW = telegram.LinkPreviewOptions(is_disabled=True)
_ADMIN_STATUS = frozenset({telegram.ChatMember.OWNER, telegram.ChatMember.ADMINISTRATOR})


class TelegramClient:
    """The Bot API as we use it. All methods raise `TelegramError`; `timeout_s` bounds a whole call.

    `topic_id` 0 is a chat without topics, or its General topic.
    """

    def __init__(self, token: str, api_url: str) -> None:
        # PTB's switch to its next major version: without it, reading a 429's wait warns each time.
        os.environ.setdefault("PTB_TIMEDELTA", "true")
        self._transport = Transport()
        self._bot = BotApi(
            token,
            base_url=f"{api_url.rstrip('/')}/bot",
            base_file_url=f"{api_url.rstrip('/')}/file/bot",
            get_updates_request=self._transport,
            request=self._transport,
        )
        self._files = FileServer()

    async def identify(self) -> BotIdentity:
        """Ask who we are; raise `BadToken` when Telegram does not know."""
        async with _within(CALL_S):
            me = await self._bot.get_me()
            return BotIdentity(
                id=me.id,
                username=me.username or "",
                name=me.full_name,
                can_read_all_group_messages=bool(me.can_read_all_group_messages),
            )

    async def send(self, to: Destination, part: Part, timeout_s: float = CALL_S) -> int:
        """Send one part, with its file if it has one; return the id of the message."""
        # Shorter than the whole, so that what was never sent is told from what perhaps was.
        connect_s = min(CONNECT_S, timeout_s / 2)
        options: dict[str, Any] = {
            "reply_markup": outgoing.keyboard(part.buttons),
            "reply_parameters": outgoing.reply_to(to.reply_to),
            "message_thread_id": to.topic_id or None,
            "connect_timeout": connect_s,
            "pool_timeout": connect_s,
        }
        text, entities = well_formed(part.text), outgoing.message_entities(part.entities)
        async with _within(timeout_s):
            if part.file is None:
                message = await self._bot.send_message(
                    to.chat_id, text, entities=entities, link_preview_options=_NO_PREVIEW, **options
                )
            else:
                message = await self._bot.send_document(
                    to.chat_id,
                    telegram.InputFile(part.file.content, part.file.name),
                    caption=text,
                    caption_entities=entities,
                    disable_content_type_detection=True,
                    **options,
                )
            return message.message_id

    async def edit(self, chat_id: int, message_id: int, part: Part) -> None:
        """Replace a message of ours, buttons included; that it already reads so is no error."""
        async with _unless("unchanged"), _within(CALL_S):
            await self._bot.edit_message_text(
                well_formed(part.text),
                chat_id,
                message_id,
                entities=outgoing.message_entities(part.entities),
                reply_markup=outgoing.keyboard(part.buttons),
                link_preview_options=_NO_PREVIEW,
            )

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message; that it is gone already is no error."""
        async with _unless("message_gone"), _within(CALL_S):
            await self._bot.delete_message(chat_id, message_id)

    async def show_typing(self, to: Destination) -> None:
        """Show "typing" for five seconds, or until our next message arrives."""
        typing = telegram.constants.ChatAction.TYPING
        async with _within(CALL_S):
            await self._bot.send_chat_action(
                to.chat_id, typing, message_thread_id=to.topic_id or None
            )

    async def answer_button(self, callback_id: str, text: str = "") -> None:
        """End the waiting mark on a pressed button, with at most 200 characters shown on top."""
        async with _within(CALL_S):
            await self._bot.answer_callback_query(
                callback_id, well_formed(text)[:_MAX_BUTTON_ANSWER] or None
            )

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        """Tell whether that user owns or administers the group; a refusal is a no."""
        try:
            async with _within(CALL_S):
                member = await self._bot.get_chat_member(chat_id, user_id)
                return member.status in _ADMIN_STATUS
        except DECLINED:
            return False

    async def download(self, file_id: str, max_bytes: int, timeout_s: float = DOWNLOAD_S) -> bytes:
        """Return a file's content; `Refused` as "too_big" beyond `most_bytes`, or by Telegram."""
        async with _within(timeout_s):
            file = await self._bot.get_file(file_id)
            if (file.file_size or 0) > max_bytes:
                raise Refused("too_big")
            return await self._files.fetch(file.file_path or "", max_bytes)

    async def get_updates(self, offset: int | None, timeout_s: int) -> list[dict[str, object]]:
        """Wait up to `timeout_s` for at most 100 updates; those before `offset` are forgotten.

        Every one is a dictionary with an integer `update_id`; the rest is as it came.
        """
        async with _within(timeout_s + _POLL_SLACK_S):
            return await self._bot.get_raw_updates(offset, timeout_s)

    async def set_webhook(self, url: str, secret: str) -> None:
        """Have updates delivered to `url`, with `secret` in a header; what waits is kept."""
        async with _within(CALL_S):
            await self._bot.set_webhook(
                url,
                secret_token=secret,
                allowed_updates=ALLOWED_UPDATES,
                drop_pending_updates=False,
            )

    async def delete_webhook(self) -> None:
        """Have updates kept for polling; what waits is kept."""
        async with _within(CALL_S):
            await self._bot.delete_webhook(drop_pending_updates=False)

    async def webhook_info(self) -> WebhookState:
        """Return where updates are delivered and how that goes."""
        async with _within(CALL_S):
            state = await self._bot.get_webhook_info()
            failed_at = state.last_error_date
            return WebhookState(
                url=state.url,
                pending_updates=state.pending_update_count,
                last_error_at=int(failed_at.timestamp()) if failed_at else 0,
                last_error=state.last_error_message or "",
            )

    async def set_commands(self, menu: CommandMenu) -> None:
        """Set what a "/" offers in one scope and language."""
        async with _within(CALL_S):
            await self._bot.set_my_commands(
                menu.commands, scope=_scope(menu.scope), language_code=menu.language or None
            )

    async def set_description(self, description: Description) -> None:
        """Set what an empty chat with us shows, in one language."""
        async with _within(CALL_S):
            await self._bot.set_my_description(
                description.text, language_code=description.language or None
            )

    async def close(self) -> None:
        """Close all connections; calls under way fail."""
        await self._transport.shutdown()
        await self._files.close()


@asynccontextmanager
async def _within(timeout_s: float) -> AsyncIterator[None]:
    """Bound one call in time and put its failure into our words.

    Their errors are not chained: their texts may quote an answer that quotes the token.
    """
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except ptb.TelegramError as error:
        raise translate(error) from None
    except TimeoutError:
        raise OutcomeUnknown("timeout") from None
    except (AttributeError, KeyError, TypeError) as error:
        # A success whose result is not what the Bot API describes.
        raise OutcomeUnknown("unreadable answer") from error


@asynccontextmanager
async def _unless(reason: str) -> AsyncIterator[None]:
    """Take that refusal for success: what the call wanted is already so."""
    try:
        yield
    except Refused as error:
        if error.reason != reason:
            raise


def _scope(scope: MenuScope) -> telegram.BotCommandScope:
    match scope:
        case "default":
            return telegram.BotCommandScopeDefault()
        case "private":
            return telegram.BotCommandScopeAllPrivateChats()
        case "groups":
            return telegram.BotCommandScopeAllGroupChats()
        case chat_id:
            return telegram.BotCommandScopeChat(chat_id)
