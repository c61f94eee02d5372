"""Fetches the content of files from Telegram's server.

A file's address holds the token: it goes to that server only, into no error and no log.
"""

import httpx2

from bot.http_client import HttpClient, trusted
from bot.telegram.bot_api import CONNECT_S
from bot.telegram.errors import OutcomeUnknown, Refused, Unreachable


class FileServer:
    """Streams files, so that one that is larger than it claims is not taken in."""

    def __init__(self) -> None:
        # Redirects are not followed: the token would go wherever they lead.
        self._client = HttpClient(
            verify=trusted(),
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
        )

    async def fetch(self, address: str, max_bytes: int) -> bytes:
        """Return the content; its time is limited by the caller.

        Raise `Refused` ("too_big" beyond `most_bytes`), `Unreachable` or `OutcomeUnknown`.
        """
        content = bytearray()
        try:
            async with self._client.stream("GET", address) as response:
                if response.status_code != httpx2.codes.OK:
                    raise Refused("other")
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > max_bytes:
                        raise Refused("too_big")
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise Unreachable(type(error).__name__) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise OutcomeUnknown(type(error).__name__) from None
        return bytes(content)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
