"""Builds all models of a bot from its settings, connected while they are in use."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import SecretStr

from bot.model.call import ChatModel
from bot.model.call_report import ModelObserver
from bot.model.chat import OpenAIChatModel, Wishes
from bot.model.embedder import OpenAIEmbedder
from bot.model.fallback import FallbackChatModel, ModelPair
from bot.model.guarded import Guard, GuardedEmbedder, InternalCalls, ModelCondition
from bot.model.openai_client import RETRIES, ModelClient, open_client
from bot.model.resting import Rest
from bot.model.structured import StructuredModel
from config.settings import Settings
from memory.search.embeddings import Embedder
from memory.text.internal_model import InternalModel

_EMBEDDING_TIMEOUT_S = 10.0
_SILENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a bot: `chat` answers people, `internal` makes internal calls.

    `rest` is that of the first model that answers; without a second one it is never on.
    `conditions` tell which models fail.
    """

    chat: ChatModel
    internal: InternalModel
    embedder: Embedder | None
    rest: Rest
    conditions: Sequence[ModelCondition]


OpenModels: TypeAlias = Callable[
    [Settings, Sequence[ModelObserver]], AbstractAsyncContextManager[Models]
]
"""Opens the models of a bot; the playground without a key opens offline ones."""


@asynccontextmanager
async def open_models(
    settings: Settings, observers: Sequence[ModelObserver] = ()
) -> AsyncIterator[Models]:
    """Yield the models; `observers` are told of each call of each model."""
    # A silence ends early enough to ask once more, or to ask the second model.
    silence_s = min(_SILENCE_S, settings.model_timeout_s / 2)
    has_fallback = settings.fallback_model is not None
    client = open_client(
        settings.openai_base_url,
        secret_of(settings.openai_api_key),
        silence_s,
        retries=0 if has_fallback else RETRIES,
        api=settings.openai_api,
    )
    answers = ModelCondition("answers", "OPENAI_MODEL")
    learning = ModelCondition("learning", "OPENAI_MEMORY_MODEL")
    vectors = ModelCondition("vectors", "OPENAI_EMBEDDING_MODEL")
    async with client, AsyncExitStack() as stack:
        rest = Rest()
        if has_fallback:
            other = client.to(
                settings.fallback_base_url,
                secret_of(settings.fallback_api_key),
                silence_s,
                which="second",
            )
            chats = _chat_pair(settings, (client, other), rest, observers)
            internals = _internal_pair(settings, (client, other), observers)
            stack.push_async_callback(chats.close)
            stack.push_async_callback(internals.close)
            chat: ChatModel = FallbackChatModel(chats, [answers.observe])
        else:
            chat = _chat(settings, client, [*observers, answers.observe])
            internals = ModelPair(_internal(settings, client, observers))
        embedder = _embedder(settings, client, observers)
        yield Models(
            chat,
            InternalCalls(internals, Guard(learning)),
            GuardedEmbedder(embedder, Guard(vectors)) if embedder else None,
            rest,
            (answers, learning, vectors),
        )


def wishes_of(settings: Settings) -> Wishes:
    """Return what the operator wants of the model that answers."""
    return Wishes(
        settings.reply_tokens,
        settings.openai_reasoning,
        settings.openai_verbosity,
        settings.openai_service_tier,
    )


def _chat_pair(
    settings: Settings,
    clients: tuple[ModelClient, ModelClient],
    rest: Rest,
    observers: Sequence[ModelObserver],
) -> ModelPair[ChatModel]:
    limit_s = settings.model_timeout_s
    second = OpenAIChatModel(
        clients[1],
        str(settings.fallback_model),
        limit_s,
        Wishes(reply_tokens=settings.reply_tokens),
        observers,
    )
    return ModelPair(_chat(settings, clients[0], observers), second, rest, limit_s)


def _internal_pair(
    settings: Settings,
    clients: tuple[ModelClient, ModelClient],
    observers: Sequence[ModelObserver],
) -> ModelPair[StructuredModel]:
    limit_s = settings.model_timeout_s
    second = StructuredModel(clients[1], str(settings.fallback_model), limit_s, observers=observers)
    return ModelPair(_internal(settings, clients[0], observers), second, Rest(), limit_s)


def _chat(
    settings: Settings, client: ModelClient, observers: Sequence[ModelObserver]
) -> OpenAIChatModel:
    return OpenAIChatModel(
        client, settings.openai_model, _first_limit_s(settings), wishes_of(settings), observers
    )


def _internal(
    settings: Settings, client: ModelClient, observers: Sequence[ModelObserver]
) -> StructuredModel:
    return StructuredModel(
        client,
        settings.openai_memory_model,
        _first_limit_s(settings),
        settings.openai_memory_reasoning,
        observers,
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


def _first_limit_s(settings: Settings) -> float:
    """Return the time of the first model: half of it is the second model's, if there is one."""
    return settings.model_timeout_s / (2 if settings.fallback_model else 1)


def secret_of(value: SecretStr | None) -> str | None:
    """Return the text of a secret setting; None if it is not set."""
    return value.get_secret_value() if value else None
