"""Builds all models of a bot from its settings, connected while they are in use."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import SecretStr

from bot.model.answering import ChatParameters, OpenAIChatModel
from bot.model.call import ChatModel
from bot.model.call_report import ModelObserver
from bot.model.circuit_breaker import CircuitBreaker
from bot.model.embedder import OpenAIEmbedder
from bot.model.fallback import FallbackChatModel, ModelPair
from bot.model.guarded import Guard, GuardedEmbedder, InternalCalls, ModelCondition
from bot.model.openai_client import RETRIES, ModelClient, open_client
from bot.model.speaker import NO_VOICES, SPEECH_TIMEOUT_S, Speaker, Voices
from bot.model.structured import StructuredModel
from bot.model.transcriber import OpenAITranscriber
from config.settings import Settings
from memory.search.embeddings import Embedder
from memory.text.internal_model import InternalModel

_EMBEDDING_TIMEOUT_S = 10.0
_SILENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a bot: `chat` answers people, `internal` makes internal calls.

    `breaker` is that of the first model that answers; without a second one it is never open.
    `conditions` tell which models fail.
    """

    chat: ChatModel
    internal: InternalModel
    embedder: Embedder | None
    breaker: CircuitBreaker
    conditions: Sequence[ModelCondition]
    voices: Voices = NO_VOICES


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
    client = open_client(
        settings.openai_base_url,
        secret_of(settings.openai_api_key),
        silence_s,
        retries=RETRIES if fallback is None else 0,
        api=settings.openai_api,
    )
    answers = ModelCondition("answers", "OPENAI_MODEL")
    learning = ModelCondition("learning", "OPENAI_MEMORY_MODEL")
    vectors = ModelCondition("vectors", "OPENAI_EMBEDDING_MODEL")
    breaker = answers.breaker = CircuitBreaker()
    async with client, AsyncExitStack() as stack:
        watching = [*observers, answers.observe] if fallback is None else observers
        chat: ChatModel = OpenAIChatModel(
            client, settings.openai_model, first_limit_s, chat_parameters(settings), watching
        )
        name, reasoning = settings.openai_memory_model, settings.openai_memory_reasoning
        internal = StructuredModel(client, name, first_limit_s, reasoning, observers)
        internals = ModelPair(internal)
        if fallback is not None:
            key = secret_of(settings.fallback_api_key)
            other = client.to(settings.fallback_base_url, key, silence_s, "second")
            parameters = ChatParameters(reply_tokens=settings.reply_tokens)
            second = OpenAIChatModel(other, fallback, limit_s, parameters, observers)
            second_internal = StructuredModel(other, fallback, limit_s, observers=observers)
            chats = ModelPair[ChatModel](chat, second, breaker, limit_s)
            internals = ModelPair(internal, second_internal, CircuitBreaker(), limit_s)
            stack.push_async_callback(chats.close)
            stack.push_async_callback(internals.close)
            chat = FallbackChatModel(chats, [answers.observe])
        embedder = _embedder(settings, client, observers)
        yield Models(
            chat,
            InternalCalls(internals, Guard(learning)),
            GuardedEmbedder(embedder, Guard(vectors)) if embedder else None,
            breaker,
            (answers, learning, vectors),
            Voices(
                _transcriber(settings, client, observers), _speaker(settings, client, observers)
            ),
        )


def _embedder(
    settings: Settings, client: ModelClient, observers: Sequence[ModelObserver]
) -> OpenAIEmbedder | None:
    """Return the embedder, on its own server; None if it is off."""
    model = settings.openai_embedding_model
    if model is None:
        return None
    key = secret_of(settings.openai_embedding_api_key)
    other = client.to(settings.openai_embedding_base_url, key, _EMBEDDING_TIMEOUT_S)
    dimensions = settings.openai_embedding_dimensions
    return OpenAIEmbedder(other, model, dimensions, _EMBEDDING_TIMEOUT_S, observers)


def _transcriber(
    settings: Settings, client: ModelClient, observers: Sequence[ModelObserver]
) -> OpenAITranscriber | None:
    """Return what writes down voice messages, on its own server; None if it is off."""
    model, limit_s = settings.transcription_model, settings.model_timeout_s
    if model is None:
        return None
    key = secret_of(settings.transcription_api_key)
    other = client.to(settings.transcription_base_url, key, limit_s)
    return OpenAITranscriber(other, model, limit_s, observers)


def _speaker(
    settings: Settings, client: ModelClient, observers: Sequence[ModelObserver]
) -> Speaker | None:
    """Return what speaks answers, on its own server; None if it is off."""
    model = settings.speech_model
    if model is None:
        return None
    key = secret_of(settings.speech_api_key)
    other = client.to(settings.speech_base_url, key, SPEECH_TIMEOUT_S)
    return Speaker(other, model, settings.speech_voice, observers)


def chat_parameters(settings: Settings) -> ChatParameters:
    """Return what the operator wants of the model that answers."""
    return ChatParameters(
        settings.reply_tokens,
        settings.openai_reasoning,
        settings.openai_verbosity,
        settings.openai_service_tier,
    )


def secret_of(value: SecretStr | None) -> str | None:
    """Return the text of a secret setting; None if it is not set."""
    return value.get_secret_value() if value else None
