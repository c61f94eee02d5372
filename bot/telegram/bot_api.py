"""The client of the Bot API; with `telegram_chat` the only code that calls Telegram.

Here are the calls about our account and our updates. Each call is made once: the caller decides by
the kind of error whether to try again.

PTB's own transport, over httpx 0.28, sometimes keeps the connection of a cancelled call; after a
few thousand turns none is left. So ours goes over httpx2. No answer is logged: it may hold text of
people, or a proxy's echo of the URL with the token.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import telegram
from telegram import error as ptb
from telegram.request import BaseRequest, RequestData

from bot.http_client import HttpClient, trusted
from bot.telegram.bot_account import (
    BotIdentity,
    CommandMenu,
    Description,
    MenuScope,
    WebhookState,
)
from bot.telegram.errors import DECLINED, OutcomeUnknown, Refused, translate

CALL_S = 15.0
_ADMIN_STATUS = frozenset({telegram.ChatMember.OWNER, telegram.ChatMember.ADMINISTRATOR})
_POLL_SLACK_S = 10.0
"""Added to the time for which Telegram itself holds a poll open."""

ALLOWED_UPDATES = (
    *("message", "edited_message", "callback_query", "my_chat_member"),
    *("stopped_message_generation", "message_reaction"),
)
"""Messages and their edits, buttons, being added to a group, stops and reactions. Telegram sends
reactions in private chats, and in groups only to administrators. Named on every call, because
Telegram keeps the previous list if it is left out."""

_Result = TypeVar("_Result")


class _Bot(telegram.Bot):
    """PTB's bot with its general call made public."""

    async def post(self, method: str, parameters: Mapping[str, object]) -> object:
        return await self._post(method, dict(parameters))


class TelegramClient:
    """The Bot API of one token. All methods raise `TelegramError`."""

    def __init__(self, token: str, api_url: str) -> None:
        self.transport = Transport()
        self.bot = _Bot(
            token,
            base_url=f"{api_url.rstrip('/')}/bot",
            base_file_url=f"{api_url.rstrip('/')}/file/bot",
            get_updates_request=self.transport,
            request=self.transport,
        )

    async def call(
        self,
        method: str,
        parameters: Mapping[str, object],
        expected: type[_Result],
        timeout_s: float = CALL_S,
    ) -> _Result:
        """Call a method by its name, such as one that PTB does not know; return its result.

        Parameters that are None are left out. Raise `OutcomeUnknown` if the result is not of type
        `expected`, and `BadToken` if the server does not know the method.
        """
        async with calling(timeout_s):
            result = await self.bot.post(method, parameters)
            if not isinstance(result, expected):
                raise TypeError(method)
            return result

    async def identify(self) -> BotIdentity:
        """Return who we are; raise `BadToken` if Telegram does not know the token."""
        async with calling():
            me = await self.bot.get_me()
            return BotIdentity(
                id=me.id,
                username=me.username or "",
                name=me.full_name,
                can_read_all_group_messages=bool(me.can_read_all_group_messages),
            )

    async def get_updates(self, offset: int | None, timeout_s: int) -> list[dict[str, object]]:
        """Wait up to `timeout_s` for at most 100 updates; Telegram forgets those before `offset`.

        Each is a dictionary with an integer `update_id`, otherwise as Telegram sent it. PTB's own
        method would read the whole batch or nothing.
        """
        parameters = {"offset": offset, "timeout": timeout_s, "allowed_updates": ALLOWED_UPDATES}
        updates = await self.call("getUpdates", parameters, list, timeout_s + _POLL_SLACK_S)
        if not all(
            isinstance(each, dict) and isinstance(each.get("update_id"), int) for each in updates
        ):
            raise OutcomeUnknown("unreadable answer")
        return updates

    async def set_webhook(self, url: str, secret: str) -> None:
        """Have updates delivered to `url` with `secret` in a header; waiting updates are kept."""
        async with calling():
            await self.bot.set_webhook(
                url,
                secret_token=secret,
                allowed_updates=ALLOWED_UPDATES,
                drop_pending_updates=False,
            )

    async def delete_webhook(self) -> None:
        """Have updates kept for polling; waiting updates are kept."""
        async with calling():
            await self.bot.delete_webhook(drop_pending_updates=False)

    async def webhook_info(self) -> WebhookState:
        """Return where updates are delivered and whether that works."""
        async with calling():
            state = await self.bot.get_webhook_info()
            failed_at = state.last_error_date
            return WebhookState(
                url=state.url,
                pending_updates=state.pending_update_count,
                last_error_at=int(failed_at.timestamp()) if failed_at else 0,
                last_error=state.last_error_message or "",
            )

    async def set_commands(self, menu: CommandMenu) -> None:
        """Set what "/" offers in one scope and language."""
        async with calling():
            await self.bot.set_my_commands(
                menu.commands, scope=_scope(menu.scope), language_code=menu.language or None
            )

    async def set_description(self, description: Description) -> None:
        """Set what an empty chat with us shows, in one language."""
        async with calling():
            await self.bot.set_my_description(
                description.text, language_code=description.language or None
            )

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        """Return whether a person owns or administers the group; a refusal means no."""
        try:
            async with calling():
                member = await self.bot.get_chat_member(chat_id, user_id)
                return member.status in _ADMIN_STATUS
        except DECLINED:
            return False

    async def leave(self, chat_id: int) -> None:
        """Leave a group."""
        async with calling():
            await self.bot.leave_chat(chat_id)

    async def close(self) -> None:
        """Close all connections; running calls fail."""
        await self.transport.shutdown()


@asynccontextmanager
async def calling(timeout_s: float = CALL_S) -> AsyncIterator[None]:
    """Bound the time of one call and translate its errors.

    PTB's errors are not chained, because their texts may quote an answer that quotes the token.
    """
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except ptb.TelegramError as error:
        raise translate(error) from None
    except TimeoutError:
        raise OutcomeUnknown("timeout") from None
    except (AttributeError, KeyError, TypeError) as error:
        # A success whose result is not as the Bot API describes it.
        raise OutcomeUnknown("unreadable answer") from error


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


CONNECT_S = 5.0
_POOL_SIZE = 64


class Transport(BaseRequest):
    """A connection pool. Callers bound the time of a whole call."""

    def __init__(self) -> None:
        # Redirects are not followed: they would send the token elsewhere.
        self._client = HttpClient(
            verify=trusted(),
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=CONNECT_S, pool=CONNECT_S),
            limits=httpx2.Limits(max_connections=_POOL_SIZE),
        )

    @property
    def read_timeout(self) -> float | None:
        """None, because callers bound the whole call."""
        return None

    async def initialize(self) -> None:
        """Do nothing: PTB requires this method."""

    async def shutdown(self) -> None:
        """Close all connections; running calls fail."""
        await self._client.aclose()

    # PTB passes four time limits, always by keyword.
    async def do_request(  # type: ignore[override]
        self, url: str, method: str, request_data: RequestData | None = None, **limits: Any
    ) -> tuple[int, bytes]:
        """Return status and body of the answer; raise PTB's `NetworkError` with httpx2's cause."""
        connect_s, pool_s = (_given(limits[f"{name}_timeout"]) for name in ("connect", "pool"))
        try:
            answer = await self._client.request(
                method,
                url,
                headers={"User-Agent": self.USER_AGENT},
                data=request_data.json_parameters if request_data else None,
                files=request_data.multipart_data if request_data else None,
                timeout=httpx2.Timeout(None, connect=connect_s, pool=pool_s),
            )
        except httpx2.HTTPError as error:
            raise ptb.NetworkError(type(error).__name__) from error
        return answer.status_code, answer.content

    async def fetch(self, url: str, max_bytes: int) -> bytes:
        """Return the content of a file on Telegram's server; `url` holds the token.

        Raise `Refused` if there is no such file, or as "too_big" beyond `max_bytes`, even if the
        file claims to be smaller. Raise PTB's `NetworkError` with httpx2's cause.
        """
        content = bytearray()
        try:
            async with self._client.stream("GET", url) as response:
                if response.status_code != httpx2.codes.OK:
                    raise Refused("other")
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > max_bytes:
                        raise Refused("too_big")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ptb.NetworkError(type(error).__name__) from error
        return bytes(content)

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Read an answer; raise PTB's `TelegramError` if it is not a JSON object."""
        # The standard library's reader, because faster ones refuse a lone surrogate.
        try:
            answer = json.loads(payload.decode("utf-8", "replace"))
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ptb.TelegramError("unreadable answer")
        return answer


def _given(limit_s: object) -> float:
    """Return a time limit of PTB, ours if PTB passes its mark for "not given"."""
    return limit_s if isinstance(limit_s, float) else CONNECT_S
