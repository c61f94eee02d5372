"""What all calls to outside servers share: whom they trust, and one error put right."""

import ssl
from functools import cache
from typing import Any

import httpx2


@cache
def trusted() -> ssl.SSLContext:
    """Return httpx2's own choice of authorities; read once for a process, for it takes 45 ms."""
    return httpx2.create_ssl_context()


class HttpClient(httpx2.AsyncClient):
    """Raises httpx2's `ConnectError` also where a connection breaks in the moment it is opened.

    uvloop has forgotten its socket then, of which anyio 4 asks the other side's name.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request as httpx2 does."""
        try:
            return await super().send(request, **options)
        except AttributeError as error:
            if (error.name, error.obj) != ("getpeername", None):
                raise
            raise httpx2.ConnectError("closed while it was opened", request=request) from error
