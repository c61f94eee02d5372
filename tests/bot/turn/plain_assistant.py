"""An assistant for tests of a turn: without tools, and the same in every conversation."""

from bot.agent.agent import RunAgent
from bot.prompt.assemble import Prompt
from bot.turn.load import Assistant
from memory.behaviors.behavior import AIContextBehaviorManager
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, CompletedStep, FinishAction
from memory.scopes.selectors import MessageSelector
from memory.search.message_search import SearchResult


async def says_nothing(context: AgentContext) -> FinishAction:
    del context
    return FinishAction("")


def plain_assistant(
    behaviors: AIContextBehaviorManager, selector: MessageSelector, run: RunAgent = says_nothing
) -> Assistant:
    """Return an assistant that answers by `run`; a prompt may show all that is found."""

    async def run_tools(action: Action, context: AgentContext) -> CompletedStep:
        raise AssertionError(action, context)

    def prompt(context: AgentContext) -> Prompt:
        raise AssertionError(context)

    def found(context: AgentContext) -> tuple[SearchResult, ...]:
        return context.background.recalled

    assistant = Assistant(run, run_tools, prompt, found, selector, behaviors, lambda _: assistant)
    return assistant
