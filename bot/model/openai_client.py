"""The one owner of the OpenAI SDK: connects to a model server and maps the SDK's errors to ours.

The SDK gives us keys, retries and errors. Requests go out as plain JSON: if we passed a prompt of
forty messages as the SDK's own arguments, it would first compare it with its types, which takes
10 ms and finds nothing. The caller reads the body of an answer; the SDK reads that of an error.

Importing the SDK takes as long as everything else of a start, so the first call or `load_sdk` does.

The bodies of answers are bounded: a server may send too much, or little that unpacks to too much.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, cached_property
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any

import httpcore2
import httpx2
import orjson
from httpx2 import ByteStream

from bot.http_client import IDLE_S, Body, HttpClient, read_within, trusted
from bot.model.call import ModelObserver, Post, WhichModel, current_call
from bot.model.model_errors import (
    UNREADABLE,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
    PicturesRefused,
)
from bot.model.request_forms import Api, ServedModel, ServerApi
from bot.model.wire import TOO_LONG, code_of, is_blind, is_filtered

if TYPE_CHECKING:
    import openai


RETRIES = 1
_CONNECT_S = 5
_NO_KEY = "none"  # the SDK insists on a key; a server of one's own may need none
# The same numbers as in the SDK's own client.
_LIMITS = httpx2.Limits(
    max_connections=1000, max_keepalive_connections=100, keepalive_expiry=IDLE_S
)
_WE_GAVE_UP = (httpcore2.ReadTimeout, asyncio.CancelledError)
_CONNECTION_CODES: Mapping[type[BaseException], str] = {
    socket.gaierror: "dns",
    ConnectionRefusedError: "connection_refused",
    ssl.SSLCertVerificationError: "certificate",
}
_NEVER_FILTERED = frozenset(  # a refusal with such a status is not about the content
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.NOT_FOUND}
)


@cache
def _sdk() -> tuple[Any, Any]:
    """Import the SDK, which takes a quarter of a second; also return a class for unread answers."""
    import openai  # noqa: PLC0415 - see above

    class _Unread(openai.AsyncStream[object]):
        """Has only the response.

        The SDK's own class refers to itself. So each request would stay in memory, with a picture
        or a sound of 20 MB, until the garbage collector finds it.
        """

        def __init__(self, *, response: httpx2.Response, **_: object) -> None:
            self.response = response

    return openai, _Unread


async def load_sdk(after_s: float = 0.0) -> None:
    """Import the SDK in a thread after a pause, so that no message waits for it."""
    if not _sdk.cache_info().currsize:
        await asyncio.sleep(after_s)
        await asyncio.to_thread(_sdk)


@dataclass(eq=False, repr=False)
class ModelClient:
    """A client of one server, shared by its models; `observers` are told of each call of them."""

    http: httpx2.AsyncClient
    base_url: str
    key: str | None
    timeout_s: float  # bounds the silence between chunks
    _: KW_ONLY
    retries: int = RETRIES  # of the SDK after a failure, after the pause that a server asks for
    api: Api = "auto"
    which: WhichModel = "first"
    observers: Sequence[ModelObserver] = ()
    _models: dict[str, ServedModel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._api = ServerApi.of(self.base_url, self.api)

    def model(self, name: str) -> ServedModel:
        """Return what is known about a model; the same object for the same name."""
        origin = f"{self.base_url} {name}"
        return self._models.setdefault(name, ServedModel(name, origin, self._api))

    def to(
        self, base_url: str, key: str | None, timeout_s: float, which: WhichModel = "first"
    ) -> "ModelClient":
        """Return a client of another server on the same connections; `open_client` closes them."""
        observers = self.observers
        return ModelClient(self.http, base_url, key, timeout_s, which=which, observers=observers)

    @cached_property
    def _client(self) -> "openai.AsyncOpenAI":
        client: openai.AsyncOpenAI = _sdk()[0].AsyncOpenAI(
            api_key=(self.key or "").strip() or _NO_KEY,
            base_url=self.base_url,
            timeout=timeouts(self.timeout_s),
            max_retries=self.retries,
            http_client=self.http,
        )
        return client

    async def post(self, post: Post) -> httpx2.Response:
        """Return an answer whose body the caller has to read and close; raise `ModelError`."""
        await load_sdk()
        openai, unread = _sdk()
        options: Any = {} if post.silence_s is None else {"timeout": timeouts(post.silence_s)}
        if post.file is None:
            sent: Any = {"content": _json(post.body)}
        else:
            options["headers"] = {"Content-Type": "multipart/form-data"}
            name, content, type_ = post.file
            # A stream is sent in pieces. TLS would encrypt 20 MB of bytes in one step of the loop.
            sent = {"body": post.body, "files": {"file": (name, BytesIO(content), type_)}}
        try:
            url = f"{self.base_url.rstrip('/')}{post.path}"  # the SDK takes longer to join them
            stream = await self._client.post(
                url, cast_to=object, **sent, options=options, stream=True, stream_cls=unread
            )
        except (openai.OpenAIError, *UNREADABLE) as error:
            raise translate(error) from error
        response: httpx2.Response = stream.response
        return response

    async def post_whole(self, post: Post, max_bytes: int) -> bytes:
        """Return the whole body of an answer; ask again if it breaks off.

        Raise `NotAModel` when it is longer than `max_bytes`, or another `ModelError`.
        """
        broken: Exception | None = None
        for _ in range(1 + self.retries):
            response = await self.post(post)
            try:
                async with aclosing(response):
                    whole = await read_within(response.aiter_raw(), max_bytes)
            except httpx2.HTTPError as error:
                broken = error
                continue
            if whole is None:
                raise NotAModel("the answer is too long")
            if call := current_call.get():
                call.answered()
            return whole
        raise ModelUnavailable(type(broken).__name__, code="connection_failed") from broken


@asynccontextmanager
async def open_client(
    base_url: str, key: str | None, timeout_s: float, *, retries: int = RETRIES, api: Api = "auto"
) -> AsyncIterator[ModelClient]:
    """Yield a client to be shared.

    Redirects are not followed, because the prompt would go to any host that the server names.
    """
    async with HttpClient(
        verify=trusted(),
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"request": [_watch], "response": [bound]},
        limits=_LIMITS,
        timeout=timeouts(timeout_s),
    ) as http:
        yield ModelClient(http, base_url, key, timeout_s, retries=retries, api=api)


def _json(body: Mapping[str, Any]) -> bytes:
    """Return the JSON that the SDK would write, in a tenth of its time; NaN becomes null."""
    try:
        return orjson.dumps(body)
    except TypeError:  # a number of more than 64 bits, as the schema of a tool may have
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def timeouts(silence_s: float) -> httpx2.Timeout:
    """Return time limits that allow so much silence, and less for a connection to be made."""
    return httpx2.Timeout(silence_s, connect=_CONNECT_S)


async def _watch(request: httpx2.Request) -> None:
    """Note in the running call that its request is sent, and that it is refused or broken off."""
    call = current_call.get()
    if call is None:
        return
    # A form with a file is another kind of stream, which can be read only once; it has no prompt.
    # `trace` must not refer to the request: both would stay, with files of 20 MB, until the garbage
    # collector runs.
    prompt = request.content if isinstance(request.stream, ByteStream) else b""

    async def trace(event: str, happened: dict[str, Any]) -> None:
        match event.rpartition(".receive_response_headers.")[2]:
            case "started":
                call.unanswered.append(prompt)
            case "complete" if happened["return_value"][1] >= HTTPStatus.MULTIPLE_CHOICES:
                call.answered()
            case "failed" if not isinstance(happened["exception"], _WE_GAVE_UP):
                call.answered()  # the server hung up

    request.extensions["trace"] = trace


def translate(error: BaseException) -> ModelError:
    """Return our error for one of the SDK, or for what it raises if an answer lacks fields."""
    name, (openai, _) = type(error).__name__, _sdk()
    unavailable = (openai.ConflictError, openai.InternalServerError, openai.RateLimitError)
    causes = list(_causes(error))
    is_compressed = any(isinstance(cause, httpx2.DecodingError) for cause in causes)
    if isinstance(error, openai.APIConnectionError) and not is_compressed:
        codes = {openai.APITimeoutError: "timeout", **_CONNECTION_CODES}
        found = (code for kind, code in codes.items() if any(isinstance(e, kind) for e in causes))
        return ModelUnavailable(name, code=next(found, "connection_failed"))
    if not isinstance(error, openai.APIStatusError) or error.response.is_redirect:
        return NotAModel(name)
    status, code = error.status_code, code_of(error.body)
    text = f"{name} {status}"
    objection = f"{error.message} {error.body}"
    may_pass_later = isinstance(error, unavailable) or status == HTTPStatus.REQUEST_TIMEOUT
    # llama.cpp says with status 500 that it is blind.
    if may_pass_later and not is_blind(objection):
        return ModelUnavailable(text, status, code)
    refused = PicturesRefused if is_blind(objection) else ModelRefused
    if TOO_LONG.search(objection):
        refused = ContextTooLong
    elif status not in _NEVER_FILTERED and is_filtered(code, objection):
        return ContentRefused(text, status, code)
    return refused(text, status, code, objection, error.param or "")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _causes(inner)
        error = error.__cause__ or error.__context__


# The SDK reads the whole body of an error; a server needs less to say what it refuses.
_MAX_ERROR_BYTES = 64 * 1024
_UNCOMPRESSED = ("", "identity")


async def bound(response: httpx2.Response) -> None:
    """Refuse a compressed body: a few bytes may unpack to gigabytes. Cut the body of an error."""
    if response.headers.get("content-encoding", "") not in _UNCOMPRESSED:
        raise httpx2.DecodingError("compressed unasked", request=response.request)
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Beginning(response.stream)


class _Beginning(Body):
    """The first bytes of a body; the others are not read."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        bytes_left = _MAX_ERROR_BYTES
        with suppress(httpx2.HTTPError):  # the answer stays an error even if its body breaks off
            async for piece in self.stream:
                yield piece[:bytes_left]
                bytes_left -= len(piece)
                if bytes_left <= 0:
                    return
