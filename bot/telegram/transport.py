"""python-telegram-bot's connection to the Bot API, over httpx2.

PTB's own transport, over httpx 0.28, sometimes keeps the connection of a cancelled call; after a
few thousand turns none is left. No answer is logged: it may hold text of people, or a proxy's echo
of the URL with the token.
"""

import json
from typing import Any

import httpx2
from telegram import error as ptb
from telegram.request import BaseRequest, RequestData

from bot.http_client import HttpClient, trusted
from bot.telegram.errors import Refused

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
