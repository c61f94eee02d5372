"""Puts model, prompt, tools and loop together into one thing that answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from bot.agent.agent import FunctionsBasedAgent
from bot.agent.run import run_agent
from bot.agent.toolbox import Toolbox, ToolLimits
from bot.agent.tools.calculate import CALCULATE
from bot.agent.tools.current_time import current_time_tool
from bot.agent.tools.search_memory import search_memory_tool
from bot.metering.metered import MeteredChatModel, MeteredEmbedder, MeteredInternalModel
from bot.metering.metrics import Metrics
from bot.model.chat import OpenAIChatModel
from bot.model.client import another_client, open_client
from bot.model.embedder import OpenAIEmbedder
from bot.model.internal import InternalCalls
from bot.model.structured import StructuredModel
from bot.model.values import ChatModel, PromptMessage
from bot.turn.prompt import Prompt, PromptAssembler, PromptBudget, PromptParts
from bot.turn.system_prompt import load_system_prompt
from config.settings import Settings
from memory.behaviors.manager import AIContextBehaviorManager
from memory.context import AgentContext
from memory.embeddings import Embedder
from memory.learning.model import InternalModel
from memory.steps import FinishAction
from memory.tokens import TokenCounter

_EMBEDDING_TIMEOUT_S = 10.0
_SILENCE_S = 30.0
_OUTPUT_SHARE = 4
"""One tool output takes at most a quarter of the prompt."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a bot: `chat` answers, `internal` is never seen, `embedder` finds."""

    chat: ChatModel
    internal: InternalModel
    embedder: Embedder | None


@asynccontextmanager
async def open_models(settings: Settings, metrics: Metrics) -> AsyncIterator[Models]:
    """Give the models, connected while the block lasts."""
    key = settings.openai_api_key
    client = open_client(
        settings.openai_base_url,
        key.get_secret_value() if key else None,
        # A silence ends early enough for the answer to be asked for once more.
        min(_SILENCE_S, settings.model_timeout_s / 2),
    )
    embedding_key = settings.openai_embedding_api_key
    embedding_client = another_client(
        client,
        settings.openai_embedding_base_url,
        embedding_key.get_secret_value() if embedding_key else None,
        _EMBEDDING_TIMEOUT_S,
    )
    async with client:
        timeout_s = settings.model_timeout_s
        embedder = None
        if settings.openai_embedding_model is not None:
            embedder = OpenAIEmbedder(
                embedding_client,
                settings.openai_embedding_model,
                settings.openai_embedding_dimensions,
                _EMBEDDING_TIMEOUT_S,
            )
        structured = StructuredModel(
            client, settings.openai_memory_model, timeout_s, partial(metrics.used, "internal")
        )
        yield Models(
            MeteredChatModel(OpenAIChatModel(client, settings.openai_model, timeout_s), metrics),
            MeteredInternalModel(InternalCalls(structured), metrics),
            MeteredEmbedder(embedder, metrics) if embedder else None,
        )


class Assistant:
    """What answers: model, prompt, tools and behaviors in one loop.

    Raise `UnusableSystemPrompt`; `ToolNameClash` when a behavior's function has a tool's name.
    """

    def __init__(
        self,
        settings: Settings,
        tokens: TokenCounter,
        model: ChatModel,
        behaviors: AIContextBehaviorManager,
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
        self._agent = FunctionsBasedAgent(model, self._messages, definitions, settings.max_steps)

    async def run(self, context: AgentContext) -> FinishAction:
        """Answer what the context holds; raise `ModelError`."""
        return await run_agent(self._agent, self._toolbox, context)

    def prompt(self, context: AgentContext) -> Prompt:
        """Return what the model is sent for the context as it stands."""
        return self._assembler.assemble(_parts(context))

    def _messages(self, context: AgentContext) -> tuple[PromptMessage, ...]:
        return self.prompt(context).messages


def _parts(context: AgentContext) -> PromptParts:
    return PromptParts(
        words=context.words,
        now=context.now,
        window=context.window,
        recalled=context.recalled,
        told=context.told,
        steps=tuple(context.completed_steps),
        speakers=context.speakers,
    )
