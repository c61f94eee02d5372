"""The agent loop: decide, act, decide again, until there is an answer."""

from bot.agent.agent import FunctionsBasedAgent
from bot.agent.toolbox import Toolbox
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction


async def run_agent(
    agent: FunctionsBasedAgent, toolbox: Toolbox, context: AgentContext
) -> FinishAction:
    """Return the answer to the context's message; raise `ModelError`, `LeaseLost` or `StoreError`.

    `completed_steps` is emptied first, then gets each step of this run.
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
