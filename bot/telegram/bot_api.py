"""python-telegram-bot's transport and calls, with the few things changed that we cannot live with.

Everything else uses `client`.
"""

import json
from typing import Any

import telegram
from telegram import error as ptb
from telegram.request import HTTPXRequest

CONNECT_S = 5.0
_POOL_SIZE = 64

# What people say, buttons, and being taken into a group; everything else is nothing for us. Named
# on every call, since Telegram keeps the previous list when it is left out.
ALLOWED_UPDATES = ("message", "callback_query", "my_chat_member")


class _QuietTransport(HTTPXRequest):
    """Logs no answer that is not JSON: it may hold people's words, or a proxy's echo of the URL."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
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


def transport() -> HTTPXRequest:
    """Return a connection pool; the time for a whole call is limited by its caller."""
    return _QuietTransport(
        connection_pool_size=_POOL_SIZE,
        connect_timeout=CONNECT_S,
        read_timeout=None,
        write_timeout=None,
        pool_timeout=CONNECT_S,
    )
