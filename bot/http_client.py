"""What all calls to outside servers share: the trusted authorities, and one corrected error."""

import ssl
from functools import cache
from typing import Any

import httpx2


@cache
def trusted() -> ssl.SSLContext:
    """Return httpx2's default context; made once for a process, because it takes 45 ms."""
    return httpx2.create_ssl_context()


class HttpClient(httpx2.AsyncClient):
    """Raises httpx2's `ConnectError` also if a connection breaks while it is opened.

    uvloop has dropped the socket by then, and anyio 4 asks it for the other side's name.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request as httpx2 does."""
        try:
            return await super().send(request, **options)
        except AttributeError as error:
            if (error.name, error.obj) != ("getpeername", None):
                raise
            raise httpx2.ConnectError("closed while it was opened", request=request) from error
