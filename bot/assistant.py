"""Builds the agent from the model, the prompt, the tools and the behaviors."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from bot.agent.agent import FunctionsBasedAgent, RunAgent, run_agent
from bot.agent.toolbox import Toolbox, ToolLimits
from bot.agent.tools.calculate import CALCULATE
from bot.agent.tools.current_time import current_time_tool
from bot.agent.tools.search_memory import search_memory_tool
from bot.feature import Feature
from bot.model.call import CallLabels, ChatModel, PromptMessage
from bot.model.models import secret_of
from bot.operator_classes import agents_of, replaced_by, selector_of
from bot.prompt.assemble import Prompt, PromptAssembler, PromptBudget, load_system_prompt
from bot.turn.tool_questions import RunTools
from config.settings import Settings
from memory.behaviors.behavior import AIContextBehavior, AIContextBehaviorManager
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction
from memory.behaviors.tool import Tool
from memory.scopes.selectors import MessageSelector
from memory.search.message_search import SearchResult
from memory.text.tokens import TokenCounter

_OUTPUT_SHARE = 4
"""One tool output takes at most a quarter of the prompt."""


@dataclass(frozen=True, slots=True)
class Assistant:
    """What answers messages. The system message and the tools include those of the `behaviors`.

    `use_system_prompt` reads the operator's file again, or ours for None, and returns whether it
    differs; it raises `UnusableSystemPrompt` and changes nothing if the file cannot be used.
    """

    run: RunAgent  # answers the message of a context
    run_tools: RunTools  # runs the tools of one action
    prompt: Callable[[AgentContext], Prompt]
    shown: Callable[[AgentContext], tuple[SearchResult, ...]]  # what a prompt may show
    selector: MessageSelector  # chooses the messages of the window
    behaviors: AIContextBehaviorManager
    use_system_prompt: Callable[[Path | None], bool]


def assistant_of(
    settings: Settings,
    tokens: TokenCounter,
    models: Sequence[ChatModel],
    behaviors: AIContextBehaviorManager,
    features: Sequence[Feature] = (),
) -> Assistant:
    """Return the assistant, with what `features` put in the place of ours.

    The first of `models` answers.
    If some behaviors do not run everywhere, each set of behaviors gets its own prompt and tools.
    Raise `UnusableSystemPrompt` if the system prompt cannot be used, `ToolNameClash` if a tool of a
    behavior has the name of another tool, and `UnusableClass` if a class of the operator cannot be
    used.
    """
    whole = _assistant_with(settings, tokens, models, behaviors, features)
    if not behaviors.is_limited:
        return whole
    made = {behaviors.behaviors: whole}

    def within(context: AgentContext) -> Assistant:
        here = behaviors.within(context.conversation)
        if here.behaviors not in made:
            made[here.behaviors] = _assistant_with(settings, tokens, models, here, features)
        return made[here.behaviors]

    def use_system_prompt(path: Path | None) -> bool:
        is_other = whole.use_system_prompt(path)  # the largest one, so the others take it, too
        for each in made.values():
            each.use_system_prompt(path)
        return is_other

    return Assistant(
        lambda context: within(context).run(context),
        lambda action, context: within(context).run_tools(action, context),
        lambda context: within(context).prompt(context),
        lambda context: within(context).shown(context),
        whole.selector,
        behaviors,
        use_system_prompt,
    )


def _assistant_with(
    settings: Settings,
    tokens: TokenCounter,
    models: Sequence[ChatModel],
    behaviors: AIContextBehaviorManager,
    features: Sequence[Feature],
) -> Assistant:
    replaced = replaced_by(features)
    more = [tool for feature in features for tool in feature.tools]
    toolbox = _toolbox(settings, tokens, behaviors, more)

    def system_from(path: Path | None) -> str:
        return "\n\n".join(filter(None, (load_system_prompt(path), behaviors.instructions)))

    system = system_from(settings.system_prompt_file)
    budget = PromptBudget(settings.prompt_tokens, settings.reply_tokens, behaviors.leading)
    assembler = PromptAssembler(tokens, system, toolbox.definitions, budget, settings.timezone)

    def assemble(context: AgentContext) -> Sequence[PromptMessage]:
        prompt = assembler.assemble(context)
        context.used, context.sizes = prompt.used, asdict(prompt.tokens)
        return prompt.messages

    agent = FunctionsBasedAgent(
        models[0], assemble, toolbox.definitions, settings.max_steps, partial(_labels, settings)
    )
    turns_agent = agents_of(settings, agent, replaced.agent)

    def answer(context: AgentContext) -> Awaitable[FinishAction]:
        return run_agent(turns_agent(), toolbox, context)

    run: RunAgent = answer
    for feature in features:
        for put_around in feature.around:
            run = put_around(run)

    def use_system_prompt(path: Path | None) -> bool:
        nonlocal system
        new = system_from(path)
        assembler.use_system(new)
        is_other, system = new != system, new
        return is_other

    return Assistant(
        run,
        toolbox.run,
        assembler.assemble,
        assembler.shown,
        selector_of(settings, replaced.selector),
        behaviors,
        use_system_prompt,
    )


def _toolbox(
    settings: Settings,
    tokens: TokenCounter,
    behaviors: AIContextBehaviorManager,
    tools: Sequence[Tool[Any]],
) -> Toolbox:
    """Return all tools in the order of the prompt; raise `ToolNameClash`."""
    zone = settings.timezone
    limits = ToolLimits(
        settings.max_calls_per_tool,
        settings.tool_timeout_s,
        settings.prompt_tokens // _OUTPUT_SHARE,
    )
    finds_nothing = AIContextBehavior.on_search
    searching = [each for each in behaviors.behaviors if type(each).on_search is not finds_nothing]
    search = search_memory_tool(zone, tokens, searching)
    own = (current_time_tool(zone), CALCULATE, search)
    return Toolbox((*own, *tools, *behaviors.functions), limits, tokens)


def bot_id_of(settings: Settings) -> int:
    """Return the id of the bot's account, which its token begins with; 0 without a token."""
    return int((secret_of(settings.telegram_bot_token) or "0").partition(":")[0])


def _labels(settings: Settings, context: AgentContext) -> CallLabels:
    """Return labels with hashes of the conversation and the person, different for each bot."""

    def hashed(name: str) -> str:
        return sha256(f"{bot_id_of(settings)} {name}".encode()).hexdigest()[:32]

    person = context.user_message.sender_id if settings.openai_safety_identifier == "on" else 0
    return CallLabels(
        conversation=hashed(context.conversation.tag),
        person=hashed(f"person {person}") if person else "",
    )
