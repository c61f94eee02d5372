"""A model API on this machine: the server, the replies it gives and the faults it is asked for."""

from bot.playground.model_api.calls import Call
from bot.playground.model_api.errors import ApiError, content_filtered, rate_limited, server_error
from bot.playground.model_api.faults import Break, Quirk, StreamBreak
from bot.playground.model_api.replies import Reply, Responder, Scripted, tool_call
from bot.playground.model_api.requests import (
    ApiRequest,
    ChatRequest,
    EmbeddingsRequest,
    is_chat,
    is_embeddings,
    is_responses,
)
from bot.playground.model_api.rules import Dialect
from bot.playground.model_api.server import ModelApiServer

__all__ = [
    "ApiError",
    "ApiRequest",
    "Break",
    "Call",
    "ChatRequest",
    "Dialect",
    "EmbeddingsRequest",
    "ModelApiServer",
    "Quirk",
    "Reply",
    "Responder",
    "Scripted",
    "StreamBreak",
    "content_filtered",
    "is_chat",
    "is_embeddings",
    "is_responses",
    "rate_limited",
    "server_error",
    "tool_call",
]
