"""Puts model, prompt, tools and loop together into one thing that answers."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256

from pydantic import SecretStr

from bot.agent.agent import FunctionsBasedAgent
from bot.agent.refused import run_despite_refusals
from bot.agent.toolbox import Toolbox, ToolLimits
from bot.agent.tools.calculate import CALCULATE
from bot.agent.tools.current_time import current_time_tool
from bot.agent.tools.search_memory import search_memory_tool
from bot.metrics.metrics import Metrics, Which
from bot.metrics.observers import MeteredChatModel, MeteredEmbedder, MeteredInternalModel
from bot.metrics.usage_counter import ModelMeter, UsageRecorder
from bot.model.call import CallLabels, ChatModel, PromptMessage
from bot.model.chat import OpenAIChatModel, Wishes
from bot.model.condition import ModelCondition, WatchedChatModel
from bot.model.dialects import Effort
from bot.model.embedder import OpenAIEmbedder
from bot.model.fallback import FallbackChatModel, FallbackInternalModel, ModelPair
from bot.model.guarded import Guard, GuardedEmbedder, GuardedInternalModel
from bot.model.internal import InternalCalls
from bot.model.openai_client import RETRIES, ModelClient, open_client
from bot.model.resting import Rest
from bot.model.structured import StructuredModel
from bot.prompt.assemble import Prompt, PromptAssembler, PromptBudget, PromptParts
from bot.prompt.system_prompt import load_system_prompt
from config.settings import Settings
from memory.behaviors.context import AgentContext
from memory.behaviors.manager import AIContextBehaviorManager
from memory.behaviors.steps import FinishAction
from memory.search.embeddings import Embedder
from memory.text.internal_model import InternalModel
from memory.text.tokens import TokenCounter

_EMBEDDING_TIMEOUT_S = 10.0
_SILENCE_S = 30.0
_OUTPUT_SHARE = 4
"""One tool output takes at most a quarter of the prompt."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a bot: `chat` answers, `internal` is never seen, `embedder` finds.

    `rest` is that of the first model that answers; it is never on where there is no second one.
    `conditions` tell which of them fail.
    """

    chat: ChatModel
    internal: InternalModel
    embedder: Embedder | None
    rest: Rest
    conditions: Sequence[ModelCondition]


OpenModels = Callable[[Settings, Metrics, UsageRecorder], AbstractAsyncContextManager[Models]]
"""Opens the models of a bot; the playground without a key opens offline ones."""


@asynccontextmanager
async def open_models(
    settings: Settings, metrics: Metrics, recorder: UsageRecorder
) -> AsyncIterator[Models]:
    """Give the models, connected while the block lasts; `recorder` hears what servers bill."""
    # A silence ends early enough for the answer to be asked for once more, or for the second model.
    silence_s = min(_SILENCE_S, settings.model_timeout_s / 2)
    has_fallback = settings.fallback_model is not None
    client = open_client(
        settings.openai_base_url,
        _secret(settings.openai_api_key),
        silence_s,
        retries=0 if has_fallback else RETRIES,
        api=settings.openai_api,
    )
    limit_s = settings.model_timeout_s
    build = _Builder(
        metrics,
        recorder,
        limit_s / 2 if has_fallback else limit_s,
        wishes_of(settings),
        settings.openai_memory_reasoning,
    )
    async with client, AsyncExitStack() as stack:
        chat = build.chat(client, settings.openai_model)
        internal = build.internal(client, settings.openai_memory_model)
        rest = Rest()
        if settings.fallback_model is not None:
            key = _secret(settings.fallback_api_key)
            other = client.to(settings.fallback_base_url, key, silence_s)
            wishes = Wishes(reply_tokens=settings.reply_tokens)
            second = _Builder(metrics, recorder, limit_s, wishes, None, "second")
            spare = second.chat(other, settings.fallback_model)
            pair = ModelPair(chat, spare, rest, limit_s)
            spare_internal = second.internal(other, settings.fallback_model)
            internal_pair = ModelPair(internal, spare_internal, Rest(), limit_s)
            stack.push_async_callback(pair.close)
            stack.push_async_callback(internal_pair.close)
            chat, internal = FallbackChatModel(pair), FallbackInternalModel(internal_pair)
        yield _watched(chat, internal, build.embedder(client, settings), rest)


def _watched(
    chat: ChatModel, internal: InternalModel, embedder: Embedder | None, rest: Rest
) -> Models:
    """Keep the condition of each model, and calls from those that fail for everybody."""
    answers = ModelCondition("answers", "OPENAI_MODEL")
    learning = ModelCondition("learning", "OPENAI_MEMORY_MODEL")
    vectors = ModelCondition("vectors", "OPENAI_EMBEDDING_MODEL")
    return Models(
        WatchedChatModel(chat, answers),
        GuardedInternalModel(internal, Guard(learning)),
        GuardedEmbedder(embedder, Guard(vectors)) if embedder else None,
        rest,
        (answers, learning, vectors),
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    """Builds the metered models of one server."""

    metrics: Metrics
    recorder: UsageRecorder
    timeout_s: float
    wishes: Wishes
    memory_reasoning: Effort | None
    which: Which = "first"

    def chat(self, client: ModelClient, model: str) -> ChatModel:
        """Return the model that answers."""
        answering = OpenAIChatModel(client, model, self.timeout_s, self.wishes)
        return MeteredChatModel(answering, self._meter("answer", model))

    def internal(self, client: ModelClient, model: str) -> InternalModel:
        """Return the model of internal calls."""
        meter = self._meter("internal", model)
        structured = StructuredModel(
            client, model, self.timeout_s, meter.used, self.memory_reasoning
        )
        return MeteredInternalModel(InternalCalls(structured), meter)

    def embedder(self, client: ModelClient, settings: Settings) -> Embedder | None:
        """Return the model of vectors, from its own server; None when it is off."""
        model = settings.openai_embedding_model
        if model is None:
            return None
        key = _secret(settings.openai_embedding_api_key)
        address = settings.openai_embedding_base_url
        other = client.to(address, key, _EMBEDDING_TIMEOUT_S)
        meter = self._meter("embedding", model)
        dimensions = settings.openai_embedding_dimensions
        embedder = OpenAIEmbedder(other, model, dimensions, _EMBEDDING_TIMEOUT_S, meter.used)
        return MeteredEmbedder(embedder, meter)

    def _meter(self, kind: str, model: str) -> ModelMeter:
        return ModelMeter(self.metrics, self.recorder, kind, model, self.which)


def wishes_of(settings: Settings) -> Wishes:
    """Return what is wanted of the model that answers."""
    return Wishes(
        settings.reply_tokens,
        settings.openai_reasoning,
        settings.openai_verbosity,
        settings.openai_service_tier,
    )


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value else None


class Assistant:
    """What answers: model, prompt, tools and behaviors in one loop.

    `bot_id` salts the hashes by which a model's server knows conversations and people.
    Raise `UnusableSystemPrompt`; `ToolNameClash` when a behavior's function has a tool's name.
    """

    def __init__(
        self,
        settings: Settings,
        tokens: TokenCounter,
        model: ChatModel,
        behaviors: AIContextBehaviorManager,
        bot_id: int = 0,
    ) -> None:
        zone = settings.timezone
        limits = ToolLimits(
            settings.max_calls_per_tool,
            settings.tool_timeout_s,
            settings.prompt_tokens // _OUTPUT_SHARE,
        )
        own = (current_time_tool(zone), CALCULATE, search_memory_tool(zone))
        self._toolbox = Toolbox((*own, *behaviors.functions), limits, tokens)
        system = (load_system_prompt(settings.system_prompt_file), behaviors.instructions)
        self._assembler = PromptAssembler(
            tokens,
            "\n\n".join(filter(None, system)),
            self._toolbox.definitions,
            PromptBudget(settings.prompt_tokens, settings.reply_tokens),
            zone,
        )
        definitions = self._toolbox.definitions
        self._bot_id = bot_id
        self._names_people = settings.openai_safety_identifier == "on"
        self._agent = FunctionsBasedAgent(
            model, self._messages, definitions, settings.max_steps, self._labels
        )

    async def run(self, context: AgentContext) -> FinishAction:
        """Answer what the context holds; raise `ModelError` or `WordsRefused`."""
        return await run_despite_refusals(self._agent, self._toolbox, context)

    def prompt(self, context: AgentContext) -> Prompt:
        """Return what the model is sent for the context as it stands."""
        return self._assembler.assemble(_parts(context))

    def _labels(self, context: AgentContext) -> CallLabels:
        """Name conversation and person by hashes, which differ from bot to bot."""
        person = context.user_message.sender_id if self._names_people else 0
        return CallLabels(
            conversation=self._hash(context.conversation.tag),
            person=self._hash(f"person {person}") if person else "",
        )

    def _hash(self, name: str) -> str:
        return sha256(f"{self._bot_id} {name}".encode()).hexdigest()[:32]

    def _messages(self, context: AgentContext) -> tuple[PromptMessage, ...]:
        return self.prompt(context).messages


def _parts(context: AgentContext) -> PromptParts:
    return PromptParts(
        words=context.user_message,
        now=context.now,
        window=context.window,
        recalled=context.recalled,
        told=context.memory_context,
        steps=tuple(context.completed_steps),
        speakers=context.speakers,
    )
