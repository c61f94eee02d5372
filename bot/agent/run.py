"""The loop of a run: decide, act, decide again, until there is an answer."""

from bot.agent.agent import FunctionsBasedAgent
from bot.agent.toolbox import Toolbox
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction


async def run_agent(
    agent: FunctionsBasedAgent, toolbox: Toolbox, context: AgentContext
) -> FinishAction:
    """Return the answer to what the context holds; raise `ModelError`.

    Each step is kept in `completed_steps`, which begins empty and ends with the run.
    """
    context.completed_steps.clear()
    action = await agent.next_action(context)
    while isinstance(action, Action):
        step = await toolbox.run(action, context)
        context.completed_steps.append(step)
        final = toolbox.final_output(step)
        if final is not None:
            return FinishAction(final)
        action = await agent.next_action(context)
    return action
