"""The client of the Bot API; with `telegram_chat` the only code that calls Telegram.

A method is called by its name, with its parameters as Telegram names them. Here are the calls
about our account and our updates. No call is retried: the caller decides that by the type of the
error. No answer is logged: it may hold text of people, or a proxy's echo of the URL with the token.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Literal, TypeVar

import httpx2

from bot.http_client import IDLE_S, HttpClient, read_json, read_within, trusted
from bot.telegram.errors import OutcomeUnknown, Refused, TelegramError, error_of, lost
from memory.behaviors.tool_output import OutgoingFile

CALL_S, CONNECT_S = 15.0, 5.0
_POOL_SIZE = 64
_POLL_SLACK_S = 10.0  # added to the time for which Telegram itself holds a poll open
_MAX_ANSWER_BYTES, _MAX_UPDATES_BYTES = 4 * 2**20, 64 * 2**20
"""A hundred updates have at most some 40 MB. If we refused them, no update would come any more."""

ALLOWED_UPDATES = (
    *("message", "edited_message", "callback_query", "my_chat_member"),
    *("stopped_message_generation", "message_reaction"),
)
"""Messages and their edits, buttons, being added to a group, stops and reactions. Telegram sends
reactions in private chats, and in groups only to administrators. Named on every call, because
Telegram keeps the previous list if it is left out."""

_BEGINNING = re.compile(rb'(?=\{\s*"update_id"\s*:\s*(\d+))')
"""The beginning of an update. No text looks like it, because quotes in a text are escaped."""

_SCOPES = {"default": "default", "private": "all_private_chats", "groups": "all_group_chats"}
_Result = TypeVar("_Result")
MenuScope = Literal["default", "private", "groups"] | int


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot's own user."""

    id: int
    username: str  # without "@"
    name: str
    can_read_all_group_messages: bool  # else privacy mode hides most of them, even plain mentions


@dataclass(frozen=True, slots=True)
class CommandMenu:
    """What "/" offers in one scope and language."""

    scope: MenuScope  # an integer is one chat
    language: str  # "" is every other one
    commands: tuple[tuple[str, str], ...]  # without slash; descriptions have up to 256 characters


@dataclass(frozen=True, slots=True)
class Description:
    """What an empty chat with us shows, at most 512 characters; language "" is every other one."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class WebhookState:
    """Where Telegram delivers updates, how many wait there, and the last failed delivery."""

    url: str  # "" if no webhook is set
    pending_updates: int
    last_error_at: int  # in Unix seconds, 0 if no delivery failed
    last_error: str


class TelegramClient:
    """The Bot API of one token. All methods raise `TelegramError`."""

    def __init__(self, token: str, api_url: str) -> None:
        base = api_url.rstrip("/")
        self._methods, self._files = f"{base}/bot{token}", f"{base}/file/bot{token}"
        # Redirects are not followed: they would send the token elsewhere. No cookie is
        # stored: a proxy could set one that makes later calls fail.
        self._http = HttpClient(
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            verify=trusted(),
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=CONNECT_S, pool=CONNECT_S),
            limits=httpx2.Limits(max_connections=_POOL_SIZE, keepalive_expiry=IDLE_S),
        )

    async def call(
        self,
        method: str,
        parameters: Mapping[str, object],
        read: Callable[[Any], _Result],
        timeout_s: float = CALL_S,
    ) -> _Result:
        """Call a method and return what `read` makes of its result.

        Parameters that are None are left out, and an `OutgoingFile` is uploaded. Raise
        `OutcomeUnknown` if `read` cannot read the result, and `BadToken` if the server does not
        know the method.
        """
        values, files = dict[str, str](), dict[str, tuple[str, bytes]]()
        url, form = f"{self._methods}/{method}", dict[str, Any](data=values)
        for name, value in parameters.items():
            if isinstance(value, OutgoingFile):
                files[name] = value.name, value.content
                form["files"] = files
            elif value is not None:
                values[name] = value if isinstance(value, str) else json.dumps(value)
        # The time to connect is shorter than that of the whole call. So a request that was never
        # sent fails as `Unreachable`, not as `OutcomeUnknown`.
        connect_s = min(CONNECT_S, timeout_s / 2)
        form["timeout"] = httpx2.Timeout(None, connect=connect_s, pool=connect_s)
        is_poll = method == "getUpdates"
        max_bytes = _MAX_UPDATES_BYTES if is_poll else _MAX_ANSWER_BYTES
        async with _bounded(timeout_s), self._http.stream("POST", url, **form) as response:
            content = await read_within(response.aiter_bytes(), max_bytes)
        if content is None:
            raise OutcomeUnknown("too long")
        try:
            content = content.decode("utf-8", "replace").encode()
            answer = _read_polled(content) if is_poll else read_json(content)
            if response.is_success:
                return read(answer["result"])
        except (ArithmeticError, LookupError, RuntimeError, AttributeError, TypeError, ValueError):
            answer = None
        if response.is_success:
            raise OutcomeUnknown("unreadable answer")
        raise error_of(response.status_code, answer if isinstance(answer, dict) else {})

    async def download(self, file_id: str, max_bytes: int, timeout_s: float) -> bytes:
        """Return the content of a file; raise `Refused` if it cannot be had or is too large."""
        async with _bounded(timeout_s):
            file = await self.call("getFile", {"file_id": file_id}, dict, timeout_s)
            if (file.get("file_size") or 0) > max_bytes:
                raise Refused("too_big")
            url = f"{self._files}/{file.get('file_path')}"
            async with self._http.stream("GET", url) as response:
                if response.status_code != httpx2.codes.OK:
                    is_busy = response.is_server_error or response.status_code == 429
                    raise OutcomeUnknown("no file now") if is_busy else Refused("other")
                content = await read_within(response.aiter_bytes(), max_bytes)
            if content is None:
                raise Refused("too_big")
            return content

    async def identify(self) -> BotIdentity:
        """Return who we are; raise `BadToken` if Telegram does not know the token."""
        return await self.call("getMe", {}, _identity)

    async def get_updates(self, offset: int | None, timeout_s: int) -> list[dict[str, object]]:
        """Wait up to `timeout_s` for at most 100 updates; Telegram forgets those before `offset`.

        Each is a dictionary with an integer `update_id`, otherwise as Telegram sent it.
        """
        parameters = {"offset": offset, "timeout": timeout_s, "allowed_updates": ALLOWED_UPDATES}
        return await self.call("getUpdates", parameters, _updates, timeout_s + _POLL_SLACK_S)

    async def set_webhook(self, url: str, secret: str) -> None:
        """Have updates delivered to `url` with `secret` in a header; waiting updates are kept."""
        parameters = {"url": url, "secret_token": secret, "allowed_updates": ALLOWED_UPDATES}
        await self.call("setWebhook", parameters | {"drop_pending_updates": False}, bool)

    async def delete_webhook(self) -> None:
        """Delete the webhook, so that we may poll; waiting updates stay."""
        await self.call("deleteWebhook", {"drop_pending_updates": False}, bool)

    async def webhook_info(self) -> WebhookState:
        """Return where updates are delivered and whether that works."""
        return await self.call("getWebhookInfo", {}, _webhook_state)

    async def set_commands(self, menu: CommandMenu) -> None:
        """Set what "/" offers in one scope and language."""
        named = [{"command": name, "description": does} for name, does in menu.commands]
        scope: dict[str, object] = {"type": "chat", "chat_id": menu.scope}
        if not isinstance(menu.scope, int):
            scope = {"type": _SCOPES[menu.scope]}
        where = {"scope": scope, "language_code": menu.language or None}
        await self.call("setMyCommands", {"commands": named, **where}, bool)

    async def set_description(self, description: Description) -> None:
        """Set what an empty chat with us shows, in one language."""
        shown, language = description.text, description.language or None
        await self.call("setMyDescription", {"description": shown, "language_code": language}, bool)

    async def close(self) -> None:
        """Close all connections; running calls fail."""
        await self._http.aclose()


@asynccontextmanager
async def _bounded(timeout_s: float) -> AsyncIterator[None]:
    """Bound the time of a request; raise our errors unchained: others may quote the token."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TelegramError:
        raise
    except TimeoutError:
        raise OutcomeUnknown("timeout") from None
    except Exception as error:  # noqa: BLE001 - an odd answer makes the library raise anything
        raise lost(error) from None


def _identity(me: dict[str, Any]) -> BotIdentity:
    return BotIdentity(
        id=me["id"],
        username=me.get("username") or "",
        name=" ".join(filter(None, (me["first_name"], me.get("last_name")))),
        can_read_all_group_messages=bool(me.get("can_read_all_group_messages")),
    )


def _read_polled(answer: bytes) -> Any:
    """Read the answer to a poll; an update that cannot be read is left out, but for its id."""
    try:
        return read_json(answer)
    except (RecursionError, ValueError):
        if not answer.rstrip().endswith(b"]}"):
            raise  # the answer was cut off, so its last update is incomplete
        _, *found = _BEGINNING.split(answer[: answer.rindex(b"]")])
        updates = []
        for id_, update in zip(found[::2], found[1::2], strict=True):
            with suppress(RecursionError, ValueError):
                updates.append({"update_id": int(id_), "message": "unreadable"})
                updates[-1] = read_json(update.rstrip(b", \r\n"))
        return {"result": updates}


def _updates(updates: list[dict[str, object]]) -> list[dict[str, object]]:
    if not isinstance(updates, list) or not all(type(each["update_id"]) is int for each in updates):
        raise TypeError
    return updates


def _webhook_state(state: dict[str, Any]) -> WebhookState:
    error_at, error = state.get("last_error_date") or 0, state.get("last_error_message") or ""
    return WebhookState(state["url"], state["pending_update_count"], error_at, error)
