"""Builds the agent from the model, the prompt, the tools and the behaviors."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from bot.agent.agent import FunctionsBasedAgent
from bot.agent.describe import DescribingAgent, page_text
from bot.agent.refused import run_despite_refusals
from bot.agent.toolbox import Toolbox, ToolLimits
from bot.agent.tools.calculate import CALCULATE
from bot.agent.tools.current_time import current_time_tool
from bot.agent.tools.search_memory import search_memory_tool
from bot.agent.tools.send_photo_again import SEND_PHOTO_AGAIN
from bot.links.page_fetch import PageFetcher
from bot.links.read_page import read_page_tool
from bot.links.search_web import SearchService, search_web_tool
from bot.model.call import CallLabels, ChatModel, PromptMessage
from bot.model.models import secret_of
from bot.own_classes import agents_of, selector_of
from bot.prompt.assemble import Prompt, PromptAssembler, PromptBudget
from bot.prompt.system_prompt import load_system_prompt
from bot.turn.agreed_run import RunTools
from bot.turn.save_claims import RunAgent
from config.settings import Settings
from memory.behaviors.context import AgentContext
from memory.behaviors.manager import AIContextBehaviorManager
from memory.behaviors.other_topics import OtherTopics
from memory.behaviors.steps import FinishAction
from memory.behaviors.tool import Tool
from memory.message import Picture
from memory.scopes.selectors import MessageSelector
from memory.search.message_search import SearchResult
from memory.text.tokens import TokenCounter

_OUTPUT_SHARE = 4
"""One tool output takes at most a quarter of the prompt."""


@dataclass(frozen=True, slots=True)
class Assistant:
    """`run` answers the message of a context; `prompt` returns the prompt for it.

    `run_tools` runs the tools of one action. `read_page` returns the text of a scanned page, None
    if the model cannot see. `shown` returns the recalled results of which a prompt
    may show something. `selector` chooses the messages of the window.

    The system message and the tools include those of the `behaviors`. `use_system_prompt` reads the
    operator's file again, or ours for None, and returns whether it differs; it raises
    `UnusableSystemPrompt` and changes nothing if the file cannot be used.
    """

    run: RunAgent
    run_tools: RunTools
    prompt: Callable[[AgentContext], Prompt]
    shown: Callable[[AgentContext], tuple[SearchResult, ...]]
    selector: MessageSelector
    behaviors: AIContextBehaviorManager
    use_system_prompt: Callable[[Path | None], bool]
    read_page: Callable[[Picture], Awaitable[str | None]]


def assistant_of(
    settings: Settings,
    tokens: TokenCounter,
    model: ChatModel,
    behaviors: AIContextBehaviorManager,
    bot_id: int = 0,
) -> Assistant:
    """Return the assistant; `bot_id` makes its call labels differ from those of other bots.

    If some behaviors do not run everywhere, each set of behaviors gets its own prompt and tools.
    Raise `UnusableSystemPrompt` if the system prompt cannot be used, `ToolNameClash` if a tool of a
    behavior has the name of another tool, and `UnusableClass` if a class of the operator cannot be
    used.
    """
    whole = _assistant_with(settings, tokens, model, behaviors, bot_id)
    if not behaviors.is_limited:
        return whole
    made = {behaviors.behaviors: whole}

    def within(context: AgentContext) -> Assistant:
        here = behaviors.within(context.conversation)
        if here.behaviors not in made:
            made[here.behaviors] = _assistant_with(settings, tokens, model, here, bot_id)
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
        whole.read_page,
    )


def _assistant_with(
    settings: Settings,
    tokens: TokenCounter,
    model: ChatModel,
    behaviors: AIContextBehaviorManager,
    bot_id: int,
) -> Assistant:
    """Return the assistant with the prompt and the tools of these behaviors."""
    toolbox = _toolbox(settings, tokens, behaviors)

    def system_from(path: Path | None) -> str:
        return "\n\n".join(filter(None, (load_system_prompt(path), behaviors.instructions)))

    system = system_from(settings.system_prompt_file)
    budget = PromptBudget(settings.prompt_tokens, settings.reply_tokens)
    assembler = PromptAssembler(tokens, system, toolbox.definitions, budget, settings.timezone)

    def assemble(context: AgentContext) -> Sequence[PromptMessage]:
        prompt = assembler.assemble(context)
        context.used, context.sizes = prompt.used, asdict(prompt.tokens)
        return prompt.messages

    agent = FunctionsBasedAgent(
        model,
        assemble,
        toolbox.definitions,
        settings.max_steps,
        partial(_labels, bot_id, names_people=settings.openai_safety_identifier == "on"),
    )
    turns_agent = agents_of(settings, agent)

    def answer(context: AgentContext) -> Awaitable[FinishAction]:
        return run_despite_refusals(turns_agent(), toolbox, context)

    describing = DescribingAgent(answer, model)

    def run(context: AgentContext) -> Awaitable[FinishAction]:
        return describing.run(context) if context.pictures else answer(context)

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
        selector_of(settings),
        behaviors,
        use_system_prompt,
        _no_page if settings.image_detail == "off" else partial(page_text, model),
    )


async def _no_page(_: Picture) -> None:
    """Stand for the model that reads scanned pages, if it is to see no pictures."""


def _toolbox(
    settings: Settings, tokens: TokenCounter, behaviors: AIContextBehaviorManager
) -> Toolbox:
    """Return all tools in the order of the prompt; raise `ToolNameClash`."""
    zone = settings.timezone
    limits = ToolLimits(
        settings.max_calls_per_tool,
        settings.tool_timeout_s,
        settings.prompt_tokens // _OUTPUT_SHARE,
    )
    topics = next((each for each in behaviors.behaviors if isinstance(each, OtherTopics)), None)
    search = search_memory_tool(zone, tokens, topics)
    own = (current_time_tool(zone), CALCULATE, search)
    photos = () if settings.image_detail == "off" else (SEND_PHOTO_AGAIN,)
    return Toolbox((*own, *photos, *_web_tools(settings), *behaviors.functions), limits, tokens)


def _web_tools(settings: Settings) -> Iterator[Tool[Any]]:
    if settings.web == "read":
        yield read_page_tool(PageFetcher())
        if settings.search_url is not None:
            key = secret_of(settings.search_api_key)
            yield search_web_tool(SearchService(settings.search_url, key))


def _labels(bot_id: int, context: AgentContext, *, names_people: bool) -> CallLabels:
    """Return labels with hashes of the conversation and the person, different for each bot."""

    def hashed(name: str) -> str:
        return sha256(f"{bot_id} {name}".encode()).hexdigest()[:32]

    person = context.user_message.sender_id if names_people else 0
    return CallLabels(
        conversation=hashed(context.conversation.tag),
        person=hashed(f"person {person}") if person else "",
    )
