"""Fetches a page of the web: no cookies, few bytes, little time, public addresses only.

The connection goes to the address that was checked, and every redirect is checked, too. An address
inside the operator's network would open what is closed to everybody else: other services,
routers, or the metadata of a cloud machine, which holds its credentials.
"""

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx2

from bot.http_client import HttpClient, read_within, trusted
from memory.behaviors.tool import ToolError

_TIMEOUT_S = 10
_MAX_BYTES = 2 * 2**20  # of a page, as it is sent and as it is unpacked
_MAX_REDIRECTS = 4
_MAX_ADDRESS_CHARS = 2_000
_LOOKUPS = ThreadPoolExecutor(64)  # more than the pages that one person may read at once
"""A silent name server blocks a thread for half a minute; the loop needs its own for Telegram."""
_PORTS = {"http": 80, "https": 443}
_CHARSET = re.compile(r"(?!utf)[a-z0-9_-]{1,30}", re.IGNORECASE)  # UTF-8 and UTF-16 are recognized
_TYPES = ("application/xhtml+xml", "application/json")  # besides text of any kind
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Ricordo)",
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.8",
    "Accept-Encoding": "gzip, identity",
}
_GZIP_OR_ZLIB = 47

_GLOBAL_IPV6 = ip_network("2000::/3")
"""All that is assigned; so neither IPv4-mapped, NAT64, local nor multicast addresses."""
_NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        "168.63.129.16",  # where Azure has secrets for its own machines
        "192.0.0.0/24",  # protocols; older Pythons know only parts of it
        "192.88.99.0/24",  # relays of 6to4
        "2001::/23",  # Teredo, which carries an IPv4 address, and other protocols
        "2002::/16",  # 6to4, which carries an IPv4 address
        "3fff::/20",  # documentation
    )
)

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[list[Address]]]


class PageRefused(ToolError):
    """Raised if a page is not read."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its last address, its type and its content."""

    address: str
    mime_type: str
    content: bytes


def is_public(address: Address) -> bool:
    """Return whether an address is reachable for everybody on the internet."""
    if address.version == 6 and address not in _GLOBAL_IPV6:
        return False
    if address.is_multicast or any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global


async def resolved(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, IPv4 first; raise `OSError` for an unknown one."""
    loop, kind = asyncio.get_running_loop(), socket.SOCK_STREAM
    found = await loop.run_in_executor(_LOOKUPS, socket.getaddrinfo, host, port, 0, kind)
    addresses = {ip_address(str(where[0]).partition("%")[0]) for *_, where in found}
    return sorted(addresses, key=lambda address: (address.version, int(address)))


@dataclass(frozen=True, slots=True, eq=False)
class PageFetcher:
    """Fetches pages; only tests pass another way to resolve hosts or to allow addresses."""

    resolve: Resolve = resolved
    is_allowed: Callable[[Address], bool] = is_public
    tls: ssl.SSLContext | None = None

    async def fetch(self, address: str) -> Page:
        """Return a page; raise `PageRefused`."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                for _ in range(_MAX_REDIRECTS + 1):
                    found = await self._step(_checked(address))
                    if isinstance(found, Page):
                        return found
                    address = found
        except TimeoutError:
            raise PageRefused("the page took too long") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise PageRefused("the page cannot be reached") from error
        raise PageRefused("the page redirects too often")

    async def _step(self, url: httpx2.URL) -> Page | str:
        host, port = url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]
        allowed = [each for each in await self.resolve(host, port) if self.is_allowed(each)]
        if not allowed:
            raise PageRefused("the address is not public, and only public pages can be read")
        async with (
            HttpClient(verify=self.tls or trusted(), trust_env=False, timeout=_TIMEOUT_S) as client,
            # The host stands in the header and in TLS, where its certificate is checked against it.
            client.stream(
                "GET",
                url.copy_with(host=str(allowed[0])),
                headers={**_HEADERS, "Host": url.netloc.decode("ascii")},
                extensions={"sni_hostname": host},
            ) as response,
        ):
            location = response.headers.get("location", "")
            if response.is_redirect and 0 < len(location) <= _MAX_ADDRESS_CHARS:
                return str(url.join(location))
            if not response.is_success:
                raise PageRefused(f"the server answers with status {response.status_code}")
            mime_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if not mime_type.startswith("text/") and mime_type not in _TYPES:
                raise PageRefused("this is no page of text")
            content, charset = await body_of(response), response.charset_encoding or ""
            has_mark = content.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"))
            if "html" in mime_type and _CHARSET.fullmatch(charset) and not has_mark:
                content = b'<meta charset="%b">%b' % (charset.encode(), content)
            return Page(str(url), mime_type, content)


def _checked(address: str) -> httpx2.URL:
    """Return the address without its fragment; raise `PageRefused` for one of another kind."""
    if len(address) > _MAX_ADDRESS_CHARS:
        raise PageRefused("this is not a web address")
    try:
        url = httpx2.URL(address).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise PageRefused("this is not a web address") from None
    if url.scheme not in _PORTS or not url.host:
        raise PageRefused("this is not a web address; use one with http:// or https://")
    if url.userinfo:
        raise PageRefused("addresses with a login are not read")
    return url


async def body_of(response: httpx2.Response) -> bytes:
    """Return the body of a streamed response, unpacked; raise `PageRefused` if it is too big.

    What the server announces about its size counts for nothing.
    """
    content = await read_within(response.aiter_raw(), _MAX_BYTES)
    if content is None:
        raise PageRefused("the page is too big")
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    if packing == "identity":
        return content
    if packing not in ("gzip", "deflate"):
        raise PageRefused("the page is packed in an unknown way")
    unpacking = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        whole = unpacking.decompress(content, _MAX_BYTES)
    except zlib.error:
        raise PageRefused("the page is damaged") from None
    if unpacking.unconsumed_tail:
        raise PageRefused("the page is too big")
    return whole
