"""Puts model, prompt, tools and loop together into one thing that answers."""

from hashlib import sha256

from bot.agent.agent import FunctionsBasedAgent
from bot.agent.refused import run_despite_refusals
from bot.agent.toolbox import Toolbox, ToolLimits
from bot.agent.tools.calculate import CALCULATE
from bot.agent.tools.current_time import current_time_tool
from bot.agent.tools.search_memory import search_memory_tool
from bot.model.call import CallLabels, ChatModel, PromptMessage
from bot.prompt.assemble import Prompt, PromptAssembler, PromptBudget, PromptParts
from bot.prompt.system_prompt import load_system_prompt
from config.settings import Settings
from memory.behaviors.context import AgentContext
from memory.behaviors.manager import AIContextBehaviorManager
from memory.behaviors.steps import FinishAction
from memory.text.tokens import TokenCounter

_OUTPUT_SHARE = 4
"""One tool output takes at most a quarter of the prompt."""


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
