"""Builds all models of a bot from its settings, connected while they are in use."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from bot.model.call import ChatModel, ModelObserver, Posts
from bot.model.chat_model import ChatParameters, OpenAIChatModel, ResilientChatModel
from bot.model.embedder import OpenAIEmbedder
from bot.model.openai_client import RETRIES, load_sdk, open_client
from bot.model.resilience import CircuitBreaker, ModelCondition, Resilient
from bot.model.structured import InternalCalls, StructuredModel
from config.settings import Settings
from config.values import secret_of
from memory.search.embeddings import Embedder
from memory.text.internal_model import InternalModel

_EMBEDDING_TIMEOUT_S = 10.0
_SILENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a bot."""

    # The first one answers people. The last one, which may be the memory model, describes pictures.
    chats: Sequence[ChatModel]
    internal: InternalModel  # makes internal calls
    embedder: Embedder | None  # None if it is off
    conditions: Sequence[ModelCondition]  # tell which models fail
    client: Posts  # further models are on its connections
    # Prepares what the first call needs, after so many seconds.
    load: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep
    hears: bool = True  # so that people are told to send voice messages


OpenModels: TypeAlias = Callable[
    [Settings, Sequence[ModelObserver]], AbstractAsyncContextManager[Models]
]
"""Opens the models of a bot; the playground without a key opens offline ones."""


@asynccontextmanager
async def open_models(
    settings: Settings, observers: Sequence[ModelObserver] = ()
) -> AsyncIterator[Models]:
    """Yield the models; `observers` are told of each call of each model."""
    fallback, limit_s = settings.fallback_model, settings.model_timeout_s
    # A silence ends early enough to ask once more, or to ask the second model.
    silence_s = min(_SILENCE_S, limit_s / 2)
    first_limit_s = limit_s if fallback is None else limit_s / 2
    opening = open_client(
        settings.openai_base_url,
        secret_of(settings.openai_api_key),
        silence_s,
        retries=RETRIES if fallback is None else 0,
        api=settings.openai_api,
    )
    answers = ModelCondition("answers", "OPENAI_MODEL", breaker=CircuitBreaker())
    learning = ModelCondition("learning", "OPENAI_MEMORY_MODEL")
    vectors = ModelCondition("vectors", "OPENAI_EMBEDDING_MODEL")
    async with opening as unobserved, AsyncExitStack() as stack:
        client = replace(unobserved, observers=observers)
        parameters = chat_parameters(settings)
        first = OpenAIChatModel(client, settings.openai_model, first_limit_s, parameters)
        name, reasoning = settings.openai_memory_model, settings.openai_memory_reasoning
        internal = StructuredModel(client, name, first_limit_s, reasoning)
        internals = Resilient(internal)
        chat: ChatModel = replace(first, condition=answers)
        if fallback is not None:
            key = secret_of(settings.fallback_api_key)
            other = client.to(settings.fallback_base_url, key, silence_s, "second")
            parameters = ChatParameters(reply_tokens=settings.reply_tokens)
            second = OpenAIChatModel(other, fallback, limit_s, parameters)
            second_internal = StructuredModel(other, fallback, limit_s)
            chats = Resilient[ChatModel](first, second, answers.breaker, limit_s)
            internals = Resilient(internal, second_internal, limit_s=limit_s)
            stack.push_async_callback(chats.close)
            stack.push_async_callback(internals.close)
            chat = ResilientChatModel(chats, answers)
        describing: list[ChatModel] = []
        if name != settings.openai_model:
            parameters = ChatParameters(settings.reply_tokens, reasoning)
            describing = [OpenAIChatModel(client, name, first_limit_s, parameters)]
        embedder = None
        if (model := settings.openai_embedding_model) is not None:
            key, timeout_s = secret_of(settings.openai_embedding_api_key), _EMBEDDING_TIMEOUT_S
            other = client.to(settings.openai_embedding_base_url, key, timeout_s)
            dimensions = settings.openai_embedding_dimensions
            embedder = OpenAIEmbedder(other, model, dimensions, timeout_s, vectors)
        yield Models(
            (chat, *describing),
            InternalCalls(internals, learning),
            embedder,
            (answers, learning, vectors),
            client,
            load_sdk,
        )


def chat_parameters(settings: Settings) -> ChatParameters:
    """Return what the operator wants of the model that answers."""
    return ChatParameters(
        settings.reply_tokens,
        settings.openai_reasoning,
        settings.openai_verbosity,
        settings.openai_service_tier,
    )
