"""python-telegram-bot's transport and calls, with the few things changed that we cannot live with.

Everything else uses `client`.
"""

import json
from typing import Any

import httpx2
import telegram
from telegram import error as ptb
from telegram.request import BaseRequest, RequestData

from bot.http_client import HttpClient, trusted

CONNECT_S = 5.0
_POOL_SIZE = 64

# What people say, buttons, and being taken into a group; everything else is nothing for us. Named
# on every call, since Telegram keeps the previous list when it is left out.
ALLOWED_UPDATES = ("message", "callback_query", "my_chat_member")


class Transport(BaseRequest):
    """A connection pool; the time for a whole call is limited by its caller.

    Over httpx2, since PTB's own, over httpx 0.28, now and then keeps the place of a call that was
    cancelled: after a few thousand turns none is left. Logs no answer that is not JSON: it may hold
    people's words, or a proxy's echo of the URL.
    """

    def __init__(self) -> None:
        self._client = HttpClient(
            verify=trusted(),
            timeout=httpx2.Timeout(None, connect=CONNECT_S, pool=CONNECT_S),
            limits=httpx2.Limits(max_connections=_POOL_SIZE),
        )

    @property
    def read_timeout(self) -> float | None:
        """None: an answer is waited for as long as the caller waits."""
        return None

    async def initialize(self) -> None:
        """Needs nothing."""

    async def shutdown(self) -> None:
        """Close all connections; calls under way fail."""
        await self._client.aclose()

    # PTB names its four time limits, always by keyword.
    async def do_request(  # type: ignore[override]
        self, url: str, method: str, request_data: RequestData | None = None, **limits: Any
    ) -> tuple[int, bytes]:
        """Return an answer's status and body; raise PTB's `NetworkError`, httpx2's behind it."""
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

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Read an answer; raise PTB's `TelegramError` when it is no JSON object."""
        # The standard library's reader, since a lone surrogate is an error to faster ones.
        try:
            answer = json.loads(payload.decode("utf-8", "replace"))
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ptb.TelegramError("unreadable answer")
        return answer


class BotApi(telegram.Bot):
    """Adds raw polling to PTB's bot; its own reads a whole batch or nothing."""

    async def get_raw_updates(self, offset: int | None, timeout_s: int) -> list[dict[str, object]]:
        """Return at most 100 updates as they came, from `offset` on; earlier ones are forgotten."""
        parameters = {
            "offset": offset,
            "timeout": timeout_s,
            "allowed_updates": ALLOWED_UPDATES,
        }
        updates = await self._post("getUpdates", parameters)
        if not all(isinstance(update["update_id"], int) for update in updates):
            raise TypeError("update_id")
        return list(updates)


def _given(limit_s: object) -> float:
    """Return a time limit of PTB's; ours where there is only its mark for none."""
    return limit_s if isinstance(limit_s, float) else CONNECT_S
