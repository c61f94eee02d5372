"""Puts model, prompt, tools and loop together into one thing that answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.agent.agent import FunctionsBasedAgent
from bot.agent.run import run_agent
from bot.agent.toolbox import Toolbox, ToolLimits
from bot.agent.tools.calculate import CALCULATE
from bot.agent.tools.current_time import current_time_tool
from bot.agent.tools.search_memory import search_memory_tool
from bot.model.chat import OpenAIChatModel
from bot.model.client import open_client
from bot.model.embedder import OpenAIEmbedder
from bot.model.values import PromptMessage
from bot.turn.prompt import PromptAssembler, PromptBudget, PromptParts
from bot.turn.system_prompt import load_system_prompt
from config.settings import Settings
from memory.context import AgentContext
from memory.steps import FinishAction
from memory.tokens import TokenCounter

_EMBEDDING_TIMEOUT_S = 10.0
_SILENCE_S = 30.0
_OUTPUT_SHARE = 4
"""One tool output takes at most a quarter of the prompt."""


@dataclass(frozen=True, slots=True)
class Assistant:
    """What answers (`agent`, `toolbox`), and what finds (`embedder`)."""

    agent: FunctionsBasedAgent
    toolbox: Toolbox
    embedder: OpenAIEmbedder | None

    async def run(self, context: AgentContext) -> FinishAction:
        """Answer what the context holds; raise `ModelError`."""
        return await run_agent(self.agent, self.toolbox, context)


@asynccontextmanager
async def open_assistant(settings: Settings, tokens: TokenCounter) -> AsyncIterator[Assistant]:
    """Give an assistant, connected while the block lasts; raise `UnusableSystemPrompt`."""
    key = settings.openai_api_key
    client = open_client(
        settings.openai_base_url,
        key.get_secret_value() if key else None,
        # A silence ends early enough for the answer to be asked for once more.
        min(_SILENCE_S, settings.model_timeout_s / 2),
    )
    embedding_key = settings.openai_embedding_api_key
    embedding_client = open_client(
        settings.openai_embedding_base_url,
        embedding_key.get_secret_value() if embedding_key else None,
        _EMBEDDING_TIMEOUT_S,
    )
    async with client, embedding_client:
        limits = ToolLimits(
            settings.max_calls_per_tool,
            settings.tool_timeout_s,
            settings.prompt_tokens // _OUTPUT_SHARE,
        )
        zone = settings.timezone
        tools = (current_time_tool(zone), CALCULATE, search_memory_tool(zone))
        toolbox = Toolbox(tools, limits, tokens)
        assembler = PromptAssembler(
            tokens,
            load_system_prompt(settings.system_prompt_file),
            toolbox.definitions,
            PromptBudget(settings.prompt_tokens, settings.reply_tokens),
            zone,
        )
        model = OpenAIChatModel(client, settings.openai_model, settings.model_timeout_s)

        def assemble(context: AgentContext) -> tuple[PromptMessage, ...]:
            return assembler.assemble(_parts(context)).messages

        agent = FunctionsBasedAgent(model, assemble, toolbox.definitions, settings.max_steps)
        embedder = None
        if settings.openai_embedding_model is not None:
            embedder = OpenAIEmbedder(
                embedding_client,
                settings.openai_embedding_model,
                settings.openai_embedding_dimensions,
                _EMBEDDING_TIMEOUT_S,
            )
        yield Assistant(agent, toolbox, embedder)


def _parts(context: AgentContext) -> PromptParts:
    return PromptParts(
        words=context.words,
        now=context.now,
        window=context.window,
        recalled=context.recalled,
        steps=tuple(context.completed_steps),
        named=context.is_group,
    )
