"""The SDK's client is shared and usable without a key, and each error of the SDK is mapped."""

import gc
import socket
from itertools import pairwise

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion

from bot.model.call import ModelRequest, Post
from bot.model.chat_model import OpenAIChatModel
from bot.model.model_errors import (
    AnswerUnreadable,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
    reason_of,
)
from bot.model.openai_client import ModelClient, open_client, translate
from bot.model.wire import EventReader, is_blind
from memory.search.embeddings import EmbeddingsUnavailable
from tests.bot.model.conftest import HELLO
from tests.servers.model_api import Dialect, ModelApiServer

REQUEST = httpx2.Request("POST", "http://test/v1/chat/completions")
COMPLETION = ChatCompletion.construct()


@pytest.mark.parametrize(
    ("needed", "key"), [("", None), ("", ""), ("", " "), ("sk-good", " sk-good\n")]
)
async def test_a_server_may_need_no_key_and_a_newline_after_a_key_is_ignored(
    server: ModelApiServer, needed: str, key: str | None
) -> None:
    server.dialect = Dialect(api_key=needed)
    async with open_client(server.base_url, key, timeout_s=60) as client:
        reply = await OpenAIChatModel(client, "m", timeout_s=60).complete(ModelRequest(HELLO))
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize("file", [None, ("voice.ogg", b"hello", "audio/ogg")])
async def test_a_request_is_let_go_without_the_garbage_collector(
    server: ModelApiServer, file: tuple[str, bytes, str] | None
) -> None:
    """The SDK's answers refer to themselves, and may hold a sound of 20 MB each."""
    async with open_client(server.base_url, None, timeout_s=60) as client:
        gc.collect()
        gc.disable()
        try:
            if file:
                form = {"model": "ears", "response_format": "json"}
                await client.post_whole(Post("/audio/transcriptions", form, file=file), 2**10)
            else:
                await OpenAIChatModel(client, "m", timeout_s=60).complete(ModelRequest(HELLO))
            held = [each for each in gc.get_objects() if isinstance(each, httpx2.Request)]
            assert [each for each in held if each is not REQUEST] == []
        finally:
            gc.enable()


class ReadsRequests(httpx2.AsyncBaseTransport):
    """Notes how long the pieces of a request are, and refuses the first request of all."""

    def __init__(self) -> None:
        self.pieces: list[list[int]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        self.pieces.append([len(piece) async for piece in request.stream])
        status = 503 if len(self.pieces) == 1 else 200
        return httpx2.Response(status, stream=httpx2.ByteStream(b"{}"))


async def test_a_file_is_sent_in_pieces_and_whole_again_after_a_failure() -> None:
    """TLS encrypts a piece in one step of the event loop."""
    sound, transport = bytes(2**20), ReadsRequests()
    async with httpx2.AsyncClient(transport=transport) as http:
        client = ModelClient(http, "http://test/v1", None, 60)
        await client.post_whole(Post("/x", {}, file=("voice.ogg", sound, "audio/ogg")), 100)
    assert max(transport.pieces[0]) == 2**16
    assert sum(transport.pieces[0]) > len(sound)
    assert transport.pieces[0] == transport.pieces[1]


# Errors


def of_status(
    kind: type[openai.APIStatusError], status: int, body: object = None
) -> openai.APIStatusError:
    return kind("secret words", response=httpx2.Response(status, request=REQUEST), body=body)


MEANINGS: list[tuple[openai.OpenAIError, type[ModelError]]] = [
    (openai.APIConnectionError(request=REQUEST), ModelUnavailable),
    (openai.APITimeoutError(REQUEST), ModelUnavailable),
    (of_status(openai.ConflictError, 409), ModelUnavailable),
    (of_status(openai.RateLimitError, 429), ModelUnavailable),
    (of_status(openai.InternalServerError, 500), ModelUnavailable),
    (of_status(openai.APIStatusError, 408), ModelUnavailable),
    (of_status(openai.BadRequestError, 400), ModelRefused),
    (of_status(openai.AuthenticationError, 401), ModelRefused),
    (of_status(openai.PermissionDeniedError, 403), ModelRefused),
    (of_status(openai.NotFoundError, 404), ModelRefused),
    (of_status(openai.UnprocessableEntityError, 422), ModelRefused),
    (openai.OAuthError(response=httpx2.Response(401, request=REQUEST), body=None), ModelRefused),
    (openai.OpenAIError("secret words"), NotAModel),
    (openai.APIError("secret words", REQUEST, body=None), NotAModel),
    (
        openai.APIResponseValidationError(httpx2.Response(200, request=REQUEST), body=None),
        NotAModel,
    ),
    (openai.LengthFinishReasonError(completion=COMPLETION), NotAModel),
    (openai.ContentFilterFinishReasonError(), NotAModel),
    (openai.WebSocketConnectionClosedError("secret words", unsent_messages=[]), NotAModel),
    (openai.WebSocketQueueFullError("secret words"), NotAModel),
]


def test_every_public_error_of_the_sdk_is_mapped() -> None:
    public = [getattr(openai, name) for name in openai.__all__]
    errors = {each for each in public if isinstance(each, type) and issubclass(each, Exception)}
    named = {type(error) for error, _ in MEANINGS}
    assert errors - named == {openai.InvalidWebhookSignatureError}  # no model's answer


@pytest.mark.parametrize(
    ("error", "meaning"), MEANINGS, ids=[type(error).__name__ for error, _ in MEANINGS]
)
def test_a_mapped_error_has_this_class_and_quotes_nothing(
    error: openai.OpenAIError, meaning: type[ModelError]
) -> None:
    ours = translate(error)
    assert type(ours) is meaning
    assert "secret" not in f"{ours} {ours.code}"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (
            {"message": "No", "code": "invalid_api_key", "type": "invalid_request_error"},
            "invalid_api_key",
        ),
        ({"error": {"code": "model_not_found"}}, "model_not_found"),
        ({"code": 400, "type": "insufficient_quota"}, "insufficient_quota"),
        ({"code": "what Ann said"}, ""),
        (["code"], ""),
        (None, ""),
    ],
    ids=str,
)
def test_an_error_carries_status_and_code_but_no_sentence(body: object, code: str) -> None:
    ours = translate(of_status(openai.BadRequestError, 400, body))
    assert (ours.status, ours.code) == (400, code)


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (socket.gaierror(8, "unknown"), "dns"),
        (ExceptionGroup("all tries", [ConnectionRefusedError()]), "connection_refused"),
        (OSError("gone"), "connection_failed"),
    ],
    ids=str,
)
def test_the_code_of_a_failed_connection_says_why(cause: Exception, code: str) -> None:
    error = openai.APIConnectionError(request=REQUEST)
    error.__cause__ = cause
    assert translate(error).code == code


@pytest.mark.parametrize("status", [401, 402, 404])
def test_an_error_that_the_operator_must_fix_is_no_content_filter(status: int) -> None:
    body = {"message": "You asked for content_filter", "code": "content_filter"}
    ours = translate(of_status(openai.APIStatusError, status, body))
    assert isinstance(ours, ModelRefused)
    assert not isinstance(ours, ContentRefused)
    assert not ours.may_concern_messages


def test_a_refusal_knows_which_parameter_the_server_names() -> None:
    body = {"message": "Unsupported parameter", "param": "stream_options"}
    ours = translate(of_status(openai.BadRequestError, 400, body))
    assert isinstance(ours, ModelRefused)
    assert ours.objects_to("stream_options")
    assert not ours.objects_to("tools")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            ModelRefused("x", 401, "invalid_api_key"),
            "ModelRefused 401 invalid_api_key OPENAI_API_KEY",
        ),
        (
            ModelRefused("x", 404, "model_not_found"),
            "ModelRefused 404 model_not_found OPENAI_MODEL",
        ),
        (ModelRefused("x", 404), "ModelRefused 404 OPENAI_BASE_URL, OPENAI_MODEL"),
        (
            ModelUnavailable("x", 429, "insufficient_quota"),
            "ModelUnavailable 429 insufficient_quota OPENAI_API_KEY",
        ),
        (ModelUnavailable("x", 503), "ModelUnavailable 503"),
        (
            ModelUnavailable("x", code="connection_refused"),
            "ModelUnavailable connection_refused OPENAI_BASE_URL",
        ),
        (ModelUnavailable("x", code="dns"), "ModelUnavailable dns OPENAI_BASE_URL"),
        (NotAModel("x"), "NotAModel OPENAI_BASE_URL"),
        (ContentRefused(status=400), "ContentRefused 400 content_filter"),
        (ContextTooLong("x", 400), "ContextTooLong 400 PROMPT_TOKENS"),
        (AnswerUnreadable("x"), "AnswerUnreadable OPENAI_MODEL"),
        (TimeoutError(), "TimeoutError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_log_line_says_what_failed_and_where_to_look(error: Exception, told: str) -> None:
    assert " ".join(map(str, reason_of(error).values())) == told


def test_a_log_line_is_about_the_model_error_behind_an_error() -> None:
    error = EmbeddingsUnavailable("NotFoundError 404")
    error.__cause__ = ModelRefused("x", 404)
    assert reason_of(error)["look_at"] == "OPENAI_BASE_URL, OPENAI_MODEL"
    look_at = "OPENAI_EMBEDDING_BASE_URL, OPENAI_EMBEDDING_MODEL"
    assert reason_of(error, "OPENAI_EMBEDDING_MODEL")["look_at"] == look_at
    look_at = "OPENAI_EMBEDDING_API_KEY, OPENAI_API_KEY"  # the first may not be set
    assert reason_of(ModelRefused("x", 401), "OPENAI_EMBEDDING_MODEL")["look_at"] == look_at


BODY = (
    b': hello\n\ndata: {"a":\ndata: 1}\r\n\r\nevent: ping\n\nid: 7\ndata:two\r\r'
    b"data: [DONE]\n\ndata: no\n\n"
)
EVENTS = [b'{"a":\n1}', b"two"]


def read(*pieces: bytes) -> tuple[list[bytes], bool]:
    reader = EventReader(10_000)
    return [event for piece in pieces for event in reader.feed(piece)], reader.is_done


@given(st.lists(st.integers(0, len(BODY))))
def test_the_events_do_not_depend_on_how_a_body_is_cut_into_pieces(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(BODY)]
    assert read(*[BODY[start:end] for start, end in pairwise(bounds)]) == (EVENTS, True)


@pytest.mark.parametrize("body", [b"", b"data: x", b"data: x\n", b"\n\n", b"retry: 3\n\n"])
def test_an_incomplete_event_is_not_yielded(body: bytes) -> None:
    assert read(body) == ([], False)


def test_text_beyond_ascii_stays_in_one_event() -> None:
    """Unicode has more line ends than a stream of events."""
    said = 'data: {"x": "\u2028\u0085"}\n\n'.encode()
    assert read(said) == ([said[6:-2]], False)


WITHOUT_EYES = [
    "Invalid content type. image_url is only supported by certain models.",
    "No endpoints found that support image input",
    "image input is not supported - hint: if this is unexpected, you may need the mmproj",
    "At most 0 image(s) may be provided in one prompt.",
    "gemma-2 is not a multimodal model",
    "this model is missing data required for image input",
    "messages[1]: unknown variant `image_url`, expected `text`",
    "This model does not support image inputs.",
    "This model doesn't support vision",
]
OTHER_OBJECTIONS = [
    "You uploaded an unsupported image. Please make sure your image has one of these formats",
    "Invalid image data.",
    "Image is too large: at most 20 MB are supported",
    "Failed to download the image",
    "Unsupported parameter: 'verbosity' is not supported with this model.",
    "Does this support group take images?",
]


def test_a_model_without_eyes_is_told_from_one_that_objects_to_one_picture() -> None:
    assert [each for each in WITHOUT_EYES + OTHER_OBJECTIONS if is_blind(each)] == WITHOUT_EYES
