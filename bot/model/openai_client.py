"""Connects to one model server through the SDK and bounds what it may answer.

The SDK gives us keys, retries and errors. Requests go out as plain JSON: given as the SDK's own
arguments, a prompt of forty messages is first compared with its types, which takes 10 ms and finds
nothing. Reading an answer is the caller's business, errors excepted.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Self

import httpx2
from openai import AsyncOpenAI, AsyncStream, DefaultAsyncHttpxClient

from bot.http_client import trusted
from bot.model.model_errors import SDK_ERRORS, ModelUnavailable, NotAModel, translate
from bot.model.served import Api, ServedModel, ServerApi

_CONNECT_S = 5
RETRIES = 1
_NO_KEY = "none"
"""Servers of one's own want no key, and the SDK insists on one."""
_MAX_ERROR_BYTES = 64 * 1024
"""The SDK reads the body of an error whole; no server needs more to say what it refuses."""
_UNCOMPRESSED = ("", "identity")


class ModelClient:
    """A client of one server, shared by all of its models."""

    def __init__(self, client: AsyncOpenAI, api: Api = "auto") -> None:
        self._client = client
        self._base_url = str(client.base_url)
        self._api = ServerApi.of(self._base_url, api)
        self._models: dict[str, ServedModel] = {}

    def model(self, name: str) -> ServedModel:
        """Return what is known of a model; it is the same object for the same name."""
        return self._models.setdefault(name, ServedModel(name, self._base_url, self._api))

    def to(self, base_url: str, key: str | None, timeout_s: float) -> "ModelClient":
        """Return a client of another server on the same connections; this one closes it."""
        return ModelClient(
            self._client.with_options(
                api_key=_named(key),
                base_url=base_url,
                timeout=patience(timeout_s),
                max_retries=RETRIES,
            )
        )

    async def post(
        self, path: str, body: dict[str, Any], silence_s: float | None = None
    ) -> httpx2.Response:
        """Return an answer whose body is still to be read and closed; raise `ModelError`."""
        try:
            stream = await self._client.post(
                path,
                cast_to=object,
                body=body,
                options={} if silence_s is None else {"timeout": patience(silence_s)},
                stream=True,
                stream_cls=AsyncStream[object],
            )
        except SDK_ERRORS as error:
            raise translate(error) from error
        return stream.response

    async def post_whole(
        self, path: str, body: dict[str, Any], max_bytes: int, silence_s: float | None = None
    ) -> bytes:
        """Return the whole body of an answer; one that breaks off is asked for again.

        Raise `NotAModel` when it is longer than `max_bytes`, else `ModelError`.
        """
        broken: Exception | None = None
        for _ in range(1 + self._client.max_retries):
            response = await self.post(path, body, silence_s)
            try:
                return await _read_whole(response, max_bytes)
            except httpx2.HTTPError as error:
                broken = error
        raise ModelUnavailable(type(broken).__name__, code="connection_failed") from broken

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


def open_client(
    base_url: str,
    key: str | None,
    timeout_s: float,
    *,
    retries: int = RETRIES,
    api: Api = "auto",
) -> ModelClient:
    """Return a client to be shared and closed; `timeout_s` bounds the silence between chunks.

    `retries` is how often the SDK asks again after a failure, after the pause that a server names.
    A redirect is not followed: the prompt would go to any host that the server names.
    """
    http = DefaultAsyncHttpxClient(
        verify=trusted(),
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [_bound]},
    )
    return ModelClient(
        AsyncOpenAI(
            api_key=_named(key),
            base_url=base_url,
            timeout=patience(timeout_s),
            max_retries=retries,
            http_client=http,
        ),
        api,
    )


def patience(silence_s: float) -> httpx2.Timeout:
    """Return time limits that wait for so long while nothing comes, but not for a connection."""
    return httpx2.Timeout(silence_s, connect=_CONNECT_S)


def _named(key: str | None) -> str:
    return (key or "").strip() or _NO_KEY


async def _read_whole(response: httpx2.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async with aclosing(response):
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > max_bytes:
                raise NotAModel("the answer is too long")
    return bytes(body)


async def _bound(response: httpx2.Response) -> None:
    """Refuse a compressed body, because a few bytes may unpack to gigabytes; shorten an error's."""
    if response.headers.get("content-encoding", "") not in _UNCOMPRESSED:
        raise httpx2.DecodingError("compressed unasked", request=response.request)
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Beginning(response.stream)


class _Beginning(httpx2.AsyncByteStream):
    """The first bytes of a body; the rest is not read."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = _MAX_ERROR_BYTES
        async for piece in self._body:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._body.aclose()
