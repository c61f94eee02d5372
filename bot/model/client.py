"""Makes the SDK's client from plain values."""

from typing import TypeAlias

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from bot.http_client import trusted

ModelClient: TypeAlias = AsyncOpenAI
"""What others pass on without knowing the SDK."""

_CONNECT_S = 5
RETRIES = 1
_NO_KEY = "none"
"""Servers of one's own want no key, and the SDK insists on one."""


def open_client(
    base_url: str, key: str | None, timeout_s: float, *, retries: int = RETRIES
) -> AsyncOpenAI:
    """Return a client to be shared and closed; `timeout_s` bounds the silence between chunks.

    `retries` is how often the SDK asks again after a failure, after the pause that a server names.
    """
    return AsyncOpenAI(
        api_key=_named(key),
        base_url=base_url,
        timeout=patience(timeout_s),
        max_retries=retries,
        http_client=DefaultAsyncHttpxClient(verify=trusted()),
    )


def another_client(
    client: AsyncOpenAI, base_url: str, key: str | None, timeout_s: float
) -> AsyncOpenAI:
    """Return a client of another server on the same connections; it is closed with the first."""
    return client.with_options(
        api_key=_named(key),
        base_url=base_url,
        timeout=patience(timeout_s),
        max_retries=RETRIES,
    )


def _named(key: str | None) -> str:
    return (key or "").strip() or _NO_KEY


def patience(silence_s: float) -> httpx2.Timeout:
    """Return time limits that wait for so long while nothing comes, but not for a connection."""
    return httpx2.Timeout(silence_s, connect=_CONNECT_S)
