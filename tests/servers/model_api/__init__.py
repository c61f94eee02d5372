"""A model API on this machine: the server, the replies it gives and the faults it is asked for."""

from tests.servers.model_api.calls import Call
from tests.servers.model_api.errors import ApiError, content_filtered, rate_limited, server_error
from tests.servers.model_api.faults import Break, Quirk, StreamBreak
from tests.servers.model_api.requests import (
    ApiRequest,
    ChatRequest,
    EmbeddingsRequest,
    ImageRequest,
    Reply,
    Responder,
    Scripted,
    SpeechRequest,
    TranscriptionRequest,
    is_chat,
    is_embeddings,
    is_image,
    is_responses,
    is_speech,
    is_transcription,
    tool_call,
)
from tests.servers.model_api.rules import Dialect
from tests.servers.model_api.server import OPUS_HEAD, PICTURE, ModelApiServer

__all__ = [
    "OPUS_HEAD",
    "PICTURE",
    "ApiError",
    "ApiRequest",
    "Break",
    "Call",
    "ChatRequest",
    "Dialect",
    "EmbeddingsRequest",
    "ImageRequest",
    "ModelApiServer",
    "Quirk",
    "Reply",
    "Responder",
    "Scripted",
    "SpeechRequest",
    "StreamBreak",
    "TranscriptionRequest",
    "content_filtered",
    "is_chat",
    "is_embeddings",
    "is_image",
    "is_responses",
    "is_speech",
    "is_transcription",
    "rate_limited",
    "server_error",
    "tool_call",
]
