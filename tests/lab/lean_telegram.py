"""A Telegram for load tests in the benchmark's own process: it takes answers and gives out updates.

It keeps no chats and checks nothing. The local Telegram of the tests does that, but it wakes every
waiting task at every answer.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Self
from urllib.parse import parse_qs

import orjson

from tests.lab.lean_http import HOST, answer, serve
from tests.lab.plain_model import REPLY

TOKEN = "7000000001:load"
Update = dict[str, object]
_BOT = {"id": 7000000001, "is_bot": True, "first_name": "Ricordo", "username": "ricordo_bot"}
_MAX_UPDATES = 100


class LeanTelegram:
    """Answers the Bot API from `async with` on.

    `sent` counts answers, `odd` has those with another text than the model's. `on_typing` is called
    with the chat whenever the bot shows "typing".
    """

    def __init__(self) -> None:
        self.sent = 0
        self.odd: list[str] = []
        self.on_typing: Callable[[int], None] | None = None
        self._ids = count(1_000_000)
        self._replies: dict[int, asyncio.Future[None]] = {}
        self._pending: list[Update] = []
        self._webhook = ""
        self._poll: asyncio.Transport | None = None
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The address that a bot uses as Telegram."""
        assert self._server
        return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await serve(self._handle)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()

    def said(self, person: int, text: str) -> Update:
        """Return the update of a private message that a person writes."""
        number = next(self._ids)
        name = f"Person {person}"
        return {
            "update_id": number,
            "message": {
                "message_id": number,
                "from": {"id": person, "is_bot": False, "first_name": name, "language_code": "en"},
                "chat": {"id": person, "first_name": name, "type": "private"},
                "date": int(time.time()),
                "text": text,
            },
        }

    def reply_in(self, chat: int) -> "asyncio.Future[None]":
        """Return a future that is done with the next answer in a chat."""
        return self._replies.setdefault(chat, asyncio.get_running_loop().create_future())

    async def offer(self, update: Update) -> None:
        """Give an update to the bot that polls."""
        self._pending.append(update)
        self._hand_out()

    def _handle(self, path: str, body: bytes, transport: asyncio.Transport) -> None:
        given = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        result: object = True
        match path.rpartition("/")[2]:
            case "sendMessage":
                result = self._sent(given)
            case "sendChatAction":
                if self.on_typing:
                    self.on_typing(int(given["chat_id"]))
            case "getUpdates":
                self._poll = transport
                seconds = int(given.get("timeout", 0))
                asyncio.get_running_loop().call_later(seconds, self._end_poll, transport)
                self._hand_out()
                return
            case "getMe":
                result = _BOT
            case "getFile":
                found = given["file_id"]
                result = {"file_id": found, "file_unique_id": found, "file_path": found}
            case "setWebhook":
                self._webhook = given["url"]
            case "getWebhookInfo":
                result = {
                    "url": self._webhook,
                    "has_custom_certificate": False,
                    "pending_update_count": 0,
                }
        _answer(transport, result)

    def _sent(self, given: Mapping[str, str]) -> dict[str, object]:
        chat, text = int(given["chat_id"]), given["text"]
        self.sent += 1
        self.odd += [text] if text != REPLY else []
        reply = self._replies.pop(chat, None)
        if reply and not reply.done():
            reply.set_result(None)
        number = next(self._ids)
        in_chat = {"id": chat, "first_name": f"Person {chat}", "type": "private"}
        message = {"message_id": number, "from": _BOT, "chat": in_chat, "text": text}
        return message | {"date": int(time.time())}

    def _hand_out(self) -> None:
        if self._poll and self._pending:
            _answer(self._poll, self._pending[:_MAX_UPDATES])
            del self._pending[:_MAX_UPDATES]
            self._poll = None

    def _end_poll(self, transport: asyncio.Transport) -> None:
        if self._poll is transport:
            self._poll = None
            _answer(transport, [])


def _answer(transport: asyncio.Transport, result: object) -> None:
    answer(transport, orjson.dumps({"ok": True, "result": result}))
