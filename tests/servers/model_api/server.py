"""A local server that speaks the OpenAI dialect over real HTTP.

A `Responder` gives the answers. The server refuses what api.openai.com refuses, with texts of its
own that name the parameter at fault, breaks as `faults` say, and logs every request.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from http import HTTPStatus
from secrets import compare_digest

import orjson
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.servers.dropping import DroppingServer, drop_connection, until_disconnect
from tests.servers.model_api.answers import (
    Usage,
    bill,
    completion,
    embeddings,
    event,
    models,
    stream,
)
from tests.servers.model_api.bodies import read_chat, read_embeddings
from tests.servers.model_api.calls import Call, CallLog
from tests.servers.model_api.errors import ApiError, server_error, wrong_key
from tests.servers.model_api.faults import Break, Fault, Faults, StreamBreak
from tests.servers.model_api.requests import (
    ApiRequest,
    ChatRequest,
    ImageRequest,
    Responder,
    SpeechRequest,
    TranscriptionRequest,
)
from tests.servers.model_api.responses_answers import (
    Answered,
    failed_event,
    response,
    response_stream,
)
from tests.servers.model_api.responses_bodies import read_responses
from tests.servers.model_api.rules import (
    Dialect,
    always_sends_image,
    check_request,
    cut_front,
    prompt_tokens,
)

Endpoint = Callable[[Request], Awaitable[Response]]

_PAGE = "<!doctype html><title>Welcome</title><p>This is not the API that you are looking for."
_NO_CHUNKS = {
    StreamBreak.MALFORMED: b'{"id": "chatcmpl-',
    StreamBreak.GARBLED: b'{"id": "\xff\xfe"}',
    StreamBreak.MISSHAPEN: b'{"choices": [["delta", "stop"]]}',
}
_NO_EVENTS = {
    StreamBreak.MALFORMED: b'{"type": "response.',
    StreamBreak.GARBLED: b'{"type": "\xff\xfe"}',
    StreamBreak.MISSHAPEN: b'{"type": ["response.output_text.delta"], "delta": 3}',
}
OPUS_HEAD = b"OggS" + bytes(24) + b"OpusHead" + bytes(11)
PICTURE = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACAQAAAABazTCJAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC"
)
"""A PNG of two by two pixels."""
_MODELS = frozenset({"local", "local-embedder"})


class ModelApiServer(DroppingServer):
    """Answers on 127.0.0.1 inside the running loop, from `start` to `stop`.

    `dialect` and `responder` may be exchanged while it runs; `faults` is added to at any time.
    """

    def __init__(self, responder: Responder, dialect: Dialect | None = None) -> None:
        self.responder = responder
        self.dialect = dialect or Dialect()
        self.faults = Faults()
        self.log = CallLog()
        routes = [
            self._route("POST", "/v1/chat/completions", partial(self._complete, read_chat)),
            self._route("POST", "/v1/responses", partial(self._complete, read_responses)),
            self._route("POST", "/v1/embeddings", self._embeddings),
            self._route("POST", "/v1/audio/transcriptions", self._transcriptions),
            self._route("POST", "/v1/audio/speech", self._speech),
            self._route("POST", "/v1/images/generations", self._images),
            self._route("GET", "/v1/models", self._models),
        ]
        handlers = {ApiError: self._refused, HTTPException: self._refused, ClientDisconnect: _gone}
        super().__init__(Starlette(routes=routes, exception_handlers=handlers))

    @property
    def base_url(self) -> str:
        """The value for `OPENAI_BASE_URL`."""
        return f"{self.url}/v1"

    async def wait_for(
        self, fits: Callable[[Call], bool], *, count: int = 1, timeout_s: float = 60
    ) -> Call:
        """Return the `count`-th logged call that fits; raise `TimeoutError`."""
        return await self.log.wait_for(fits, count=count, timeout_s=timeout_s)

    def _route(self, method: str, path: str, answer: Endpoint) -> Route:
        async def endpoint(request: Request) -> Response:
            if path in self.dialect.missing_paths:
                raise HTTPException(HTTPStatus.NOT_FOUND)
            self._check_key(request)
            response = await answer(request)
            response.headers.update(self.dialect.headers)
            return response

        return Route(path, endpoint, methods=[method])

    async def _complete(self, read: Callable[[bytes], ChatRequest], request: Request) -> Response:
        asked = read(await request.body())
        _, faults = await self._judge(request, asked)
        if broken := await _broken(request, faults):
            return broken
        seen = cut_front(asked, self.dialect)
        reply = await self.responder.respond(seen)
        if reply.gate:
            await reply.gate.wait()
        await asyncio.sleep(reply.delay_s)
        if await request.is_disconnected():
            return Response()  # the client has disconnected and is not billed
        usage = bill(reply, prompt_tokens(seen, self.dialect), self.dialect.count_tokens)
        answered = Answered(asked, reply, usage, self.dialect.server, faults)
        if not asked.stream:
            await asyncio.sleep(reply.thinking_s)
            self.log.billed.append(usage)
            return JSONResponse(_body(answered))
        parts = _parts(request, answered, self.log)
        return StreamingResponse(parts, media_type="text/event-stream")

    async def _embeddings(self, request: Request) -> Response:
        asked = read_embeddings(await request.body())
        tokens, faults = await self._judge(request, asked)
        if broken := await _broken(request, faults):
            return broken
        dimensions = self.dialect.dimensions
        if self.dialect.honours_dimensions:
            dimensions = asked.dimensions or dimensions
        self.log.billed.append(Usage(tokens, 0))
        return JSONResponse(embeddings(asked, dimensions, tokens))

    async def _transcriptions(self, request: Request) -> Response:
        """Answer with the bytes of the sound as text; it is judged by its name, as at OpenAI."""
        async with request.form() as form:
            model, file = form.get("model"), form.get("file")
            if not isinstance(file, UploadFile):
                raise ApiError(HTTPStatus.BAD_REQUEST, "Missing required parameter: 'file'.")
            sound = await file.read()
        asked = TranscriptionRequest(
            str(model), file.filename or "", file.content_type or "", sound
        )
        _, faults = await self._judge(request, asked)
        if broken := await _broken(request, faults):
            return broken
        usage = {"type": "tokens", "input_tokens": 14, "output_tokens": 3, "total_tokens": 17}
        return JSONResponse({"text": sound.decode(errors="replace"), "usage": usage})

    async def _speech(self, request: Request) -> Response:
        """Answer with the text behind the head of an OGG file with Opus."""
        body = orjson.loads(await request.body())
        model, voice, text = (str(body.get(name, "")) for name in ("model", "voice", "input"))
        asked = SpeechRequest(model, voice, text, str(body.get("response_format", "mp3")), body)
        _, faults = await self._judge(request, asked)
        if broken := await _broken(request, faults):
            return broken
        return Response(OPUS_HEAD + asked.text.encode(), media_type="audio/ogg")

    async def _images(self, request: Request) -> Response:
        """Answer with `PICTURE`, or with an address, which DALL·E sends if it is not asked."""
        body = orjson.loads(await request.body())
        asked = ImageRequest(str(body.get("model", "")), str(body.get("prompt", "")), body)
        _, faults = await self._judge(request, asked)
        if broken := await _broken(request, faults):
            return broken
        data = b64encode(PICTURE).decode()
        if always_sends_image(asked.model):
            usage = {"input_tokens": 20, "output_tokens": 1056, "total_tokens": 1076}
            return JSONResponse({"created": 1, "data": [{"b64_json": data}], "usage": usage})
        is_whole = body.get("response_format") == "b64_json"
        drawn = {"b64_json": data} if is_whole else {"url": f"{self.url}/picture.png"}
        return JSONResponse({"created": 1, "data": [drawn | {"revised_prompt": asked.prompt}]})

    async def _models(self, request: Request) -> Response:
        await self.log.add(Call(request.url.path))
        return JSONResponse(models(self.dialect.models or _MODELS, self.dialect.model_fields))

    def _check_key(self, request: Request) -> None:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.dialect.api_key and not compare_digest(key.encode(), self.dialect.api_key.encode()):
            raise wrong_key(key)

    async def _judge(self, request: Request, asked: ApiRequest) -> tuple[int, tuple[Fault, ...]]:
        """Return the prompt's tokens and the faults that strike; raise `ApiError`."""
        tokens = check_request(asked, self.dialect)
        faults = (*self.dialect.quirks, *self.faults.take(asked))
        await self.log.add(Call(request.url.path, asked, prompt_tokens=tokens, faults=faults))
        return tokens, faults

    async def _refused(self, request: Request, error: Exception) -> Response:
        match error:
            case ApiError():
                refusal = error
            case HTTPException():
                what = f"Invalid URL ({request.method} {request.url.path})"
                refusal = ApiError(error.status_code, what)
            case _:
                raise error
        await self.log.add(Call(request.url.path, refusal=refusal))
        response = refusal.response(self.dialect.refusals)
        response.headers.update(self.dialect.headers)
        return response


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response()  # the client has disconnected


async def _broken(request: Request, faults: Iterable[Fault]) -> Response | None:
    """Return the answer that a fault causes, or `None` without a fault."""
    for fault in faults:
        match fault:
            case ApiError():
                return fault.response()
            case Break.HTML:
                return HTMLResponse(_PAGE)
            case Break.HANG:
                await until_disconnect(request)
                return Response()
            case Break.DROP:
                await drop_connection(request)
                return Response()
    return None


def _body(answered: Answered) -> dict[str, object]:
    if answered.asked.api == "responses":
        return response(answered)
    return completion(answered.asked, answered.reply, answered.usage, answered.faults)


async def _parts(request: Request, answered: Answered, log: CallLog) -> AsyncIterator[bytes]:
    """Send a stream's events, up to the break that a fault makes."""
    asked, reply = answered.asked, answered.reply
    if asked.api == "responses":
        said, ending = response_stream(answered)
        broken_chunks, error = _NO_EVENTS, failed_event(server_error().message)
    else:
        said, ending = stream(asked, reply, answered.usage, answered.faults)
        broken_chunks, error = _NO_CHUNKS, event(orjson.dumps(server_error().as_json()))
    broken = next((fault for fault in answered.faults if isinstance(fault, StreamBreak)), None)
    for number, part in enumerate(said if broken is None else said[: len(said) // 2 + 1]):
        await asyncio.sleep(reply.thinking_s if number == 1 else reply.chunk_delay_s)
        yield part
    match broken:
        case None:
            log.billed.append(answered.usage)
            for part in ending:
                yield part
        case StreamBreak.STALL:
            await until_disconnect(request)
        case StreamBreak.DROP:
            await drop_connection(request)
        case StreamBreak.ERROR:
            yield error
        case StreamBreak.MALFORMED | StreamBreak.GARBLED | StreamBreak.MISSHAPEN:
            yield event(broken_chunks[broken])
        case StreamBreak.CUT:
            return
