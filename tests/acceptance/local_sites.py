"""Lets a bot that a test has forked read pages of the test's own servers, and no others.

The bot itself has no setting for that. The launcher calls this in the process that becomes the bot,
if its environment has `LOCAL_SITES`; another value than "yes" is the address of Brave's search.
"""

import os
from collections import Counter
from functools import partial
from ipaddress import ip_address

from bot.features.links import feature, search_web
from bot.features.links.page_fetch import Address, PageFetcher, resolved

PUBLIC = ip_address("127.0.0.1")  # stands for a public address; all others are refused
CLOSED = "127.0.0.2"  # stands for an address in a closed network

_asked: Counter[str] = Counter()


def read_local_sites_only() -> None:
    """Give `read_page` other names and another rule of addresses."""
    fetcher = partial(PageFetcher, _resolved, lambda address: address == PUBLIC)
    setattr(feature, "PageFetcher", fetcher)  # noqa: B010 - a class for mypy
    if (brave := os.environ.get("LOCAL_SITES", "yes")) != "yes":
        search_web.BRAVE = brave


async def _resolved(host: str, port: int) -> list[Address]:
    """Resolve `site.test`; `changes.test` is public once and then in a closed network."""
    _asked[host] += 1
    if host == "site.test":
        return [PUBLIC]
    if host == "changes.test":
        return [PUBLIC if _asked[host] == 1 else ip_address(CLOSED)]
    return await resolved(host, port)
