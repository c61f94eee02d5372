"""Whom we trust to vouch for outside servers: read once for all clients of a process."""

import ssl
from functools import cache

import httpx2


@cache
def trusted() -> ssl.SSLContext:
    """Return httpx2's own choice of authorities; to read them takes 45 ms."""
    return httpx2.create_ssl_context()
