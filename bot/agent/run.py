"""The agent loop: decide, act, decide again, until there is an answer."""

from bot.agent.agent import Agent
from bot.agent.toolbox import Toolbox
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction


async def run_agent(agent: Agent, toolbox: Toolbox, context: AgentContext) -> FinishAction:
    """Return the answer to the context's message; raise `ModelError`, `LeaseLost` or `StoreError`.

    Each step of this run is added to `completed_steps`. A tool that asks the person first ends the
    run with an empty answer.
    """
    action = await agent.next_action(context)
    while isinstance(action, Action):
        step = await toolbox.run(action, context)
        context.completed_steps.append(step)
        if context.tool_question:
            return FinishAction("")
        final = toolbox.final_output(step)
        if final is not None:
            return FinishAction(final)
        action = await agent.next_action(context)
    return action
