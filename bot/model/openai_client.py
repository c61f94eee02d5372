"""The one owner of the OpenAI SDK: connects to a model server and maps the SDK's errors to ours.

The SDK gives us keys, retries and errors. Requests go out as plain JSON: if we passed a prompt of
forty messages as the SDK's own arguments, it would first compare it with its types, which takes
10 ms and finds nothing. The caller reads the body of an answer, except that of an error.
"""

import socket
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Self

import httpx2
import openai
from openai import AsyncOpenAI, AsyncStream, DefaultAsyncHttpxClient

from bot.http_client import trusted
from bot.model.bounded import bound, read_whole
from bot.model.call_report import WhichModel
from bot.model.model_errors import (
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
    PicturesRefused,
)
from bot.model.served import Api, ServedModel, ServerApi
from bot.model.wire import code_of, is_blind, is_filtered, is_too_long

RETRIES = 1
_CONNECT_S = 5
_NO_KEY = "none"
"""The SDK insists on a key; a server of one's own may need none."""

SDK_ERRORS = (
    openai.OpenAIError,
    ValueError,
    RecursionError,
    AttributeError,
    IndexError,
    TypeError,
)
"""What a call may raise. The SDK fails with the built-in ones if a server leaves fields out."""
_UNAVAILABLE = (openai.ConflictError, openai.InternalServerError, openai.RateLimitError)
_NEVER_FILTERED = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.NOT_FOUND}
)


class ModelClient:
    """A client of one server, shared by all models of that server."""

    def __init__(self, client: AsyncOpenAI, api: Api = "auto", which: WhichModel = "first") -> None:
        self._client = client
        self._base_url = str(client.base_url)
        self._api = ServerApi.of(self._base_url, api)
        self._models: dict[str, ServedModel] = {}
        self.which: WhichModel = which

    def model(self, name: str) -> ServedModel:
        """Return what is known about a model; the same object for the same name."""
        return self._models.setdefault(name, ServedModel(name, self._base_url, self._api))

    def to(
        self, base_url: str, key: str | None, timeout_s: float, which: WhichModel = "first"
    ) -> "ModelClient":
        """Return a client of another server on the same connections; this one closes them."""
        return ModelClient(
            self._client.with_options(
                api_key=_named(key),
                base_url=base_url,
                timeout=timeouts(timeout_s),
                max_retries=RETRIES,
            ),
            which=which,
        )

    async def post(
        self,
        path: str,
        body: dict[str, Any],
        silence_s: float | None = None,
        file: tuple[str, bytes, str] | None = None,
    ) -> httpx2.Response:
        """Return an answer whose body the caller has to read and close; raise `ModelError`.

        A `file` is its name, content and type; the body is then sent as fields of a form.
        """
        options: Any = {} if silence_s is None else {"timeout": timeouts(silence_s)}
        if file is not None:
            options["headers"] = {"Content-Type": "multipart/form-data"}
        try:
            stream = await self._client.post(
                path,
                cast_to=object,
                body=body,
                files=None if file is None else {"file": file},
                options=options,
                stream=True,
                stream_cls=AsyncStream[object],
            )
        except SDK_ERRORS as error:
            raise translate(error) from error
        return stream.response

    async def post_whole(
        self,
        path: str,
        body: dict[str, Any],
        max_bytes: int,
        silence_s: float | None = None,
        file: tuple[str, bytes, str] | None = None,
    ) -> bytes:
        """Return the whole body of an answer; ask again if it breaks off.

        Raise `NotAModel` when it is longer than `max_bytes`, or another `ModelError`.
        """
        broken: Exception | None = None
        for _ in range(1 + self._client.max_retries):
            response = await self.post(path, body, silence_s, file)
            try:
                return await read_whole(response, max_bytes)
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

    `retries` is how often the SDK asks again after a failure, after the pause that a server asks
    for. Redirects are not followed, because the prompt would go to any host that the server names.
    """
    http = DefaultAsyncHttpxClient(
        verify=trusted(),
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [bound]},
    )
    return ModelClient(
        AsyncOpenAI(
            api_key=_named(key),
            base_url=base_url,
            timeout=timeouts(timeout_s),
            max_retries=retries,
            http_client=http,
        ),
        api,
    )


def timeouts(silence_s: float) -> httpx2.Timeout:
    """Return time limits that allow so much silence, and less for a connection to be made."""
    return httpx2.Timeout(silence_s, connect=_CONNECT_S)


def translate(error: BaseException) -> ModelError:
    """Return our error for one of `SDK_ERRORS`."""
    name = type(error).__name__
    if isinstance(error, openai.APIConnectionError) and not _is_compressed(error):
        return ModelUnavailable(name, code=_connection_code(error))
    if not isinstance(error, openai.APIStatusError) or error.response.is_redirect:
        return NotAModel(name)
    status, code = error.status_code, code_of(error.body)
    text = f"{name} {status}"
    objection = f"{error.message} {error.body}"
    is_later = isinstance(error, _UNAVAILABLE) or status == HTTPStatus.REQUEST_TIMEOUT
    if is_later and not is_blind(objection):  # llama.cpp says with status 500 that it is blind
        return ModelUnavailable(text, status, code)
    refused = ModelRefused
    if is_too_long(objection):
        refused = ContextTooLong
    elif status not in _NEVER_FILTERED and is_filtered(code, objection):
        return ContentRefused(text, status, code)
    elif is_blind(objection):
        refused = PicturesRefused
    return refused(text, status, code, objection=objection, param=error.param or "")


def _connection_code(error: BaseException) -> str:
    """Return why there was no connection: unknown name, refused, or too slow."""
    if isinstance(error, openai.APITimeoutError):
        return "timeout"
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "dns"
        if isinstance(cause, ConnectionRefusedError):
            return "connection_refused"
    return "connection_failed"


def _is_compressed(error: BaseException) -> bool:
    return any(isinstance(cause, httpx2.DecodingError) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, also those inside exception groups."""
    while error is not None:
        yield error
        for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _causes(inner)
        error = error.__cause__ or error.__context__


def _named(key: str | None) -> str:
    return (key or "").strip() or _NO_KEY
