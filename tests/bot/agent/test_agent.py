"""The agent decides, the loop goes on until there is an answer; both keep their limits."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest

from bot.agent.agent import CUT_OFF, FunctionsBasedAgent
from bot.agent.run import run_agent
from bot.agent.toolbox import Toolbox
from bot.model.call import NO_LABELS, CallLabels, ModelReply, PromptMessage
from bot.model.model_errors import ModelUnavailable
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction, ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.text.tokens import TokenCounter
from tests.bot.agent.tools import box, echo, tool

CALL = ToolCall("id-1", "echo", '{"text": "a"}')
MAX_STEPS = 2


@dataclass
class ScriptedModel:
    """Gives its replies in order, the last for ever; `asked` logs what each call was given."""

    replies: deque[ModelReply]
    asked: list[tuple[Sequence[PromptMessage], Sequence[ToolDefinition], str]] = field(
        default_factory=list
    )

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        del labels
        self.asked.append((messages, tools, tool_choice))
        return self.replies.popleft() if len(self.replies) > 1 else self.replies[0]


def reply(text: str = "", *calls: ToolCall, finish_reason: str = "stop") -> ModelReply:
    return ModelReply(text, calls, finish_reason)


def prompt(context: AgentContext) -> list[PromptMessage]:
    """Stand for a whole prompt: how many steps it was built from."""
    return [PromptMessage("user", str(len(context.completed_steps)))]


def agent_of(toolbox: Toolbox, *replies: ModelReply) -> tuple[FunctionsBasedAgent, ScriptedModel]:
    model = ScriptedModel(deque(replies))
    return FunctionsBasedAgent(model, prompt, toolbox.definitions, MAX_STEPS), model


@pytest.fixture
def toolbox(tokens: TokenCounter) -> Toolbox:
    return box(tokens, tool("echo", echo), tool("last", echo, is_final=True))


# One decision


@pytest.mark.parametrize(
    "text", ["About AI: x", "...", '{"function_call": {"name": "echo"}}', " two \n lines ", ""]
)
async def test_a_text_is_the_answer_word_for_word(
    toolbox: Toolbox, context: AgentContext, text: str
) -> None:
    agent, _ = agent_of(toolbox, reply(text))
    assert await agent.next_action(context) == FinishAction(text)


async def test_calls_are_an_action_with_the_text_beside_them(
    toolbox: Toolbox, context: AgentContext
) -> None:
    """Also where a server ends such an answer with `stop`."""
    agent, _ = agent_of(toolbox, reply("Let me see.", CALL))
    assert await agent.next_action(context) == Action((CALL,), "Let me see.")


async def test_an_answer_cut_off_by_its_length_shows_it(
    toolbox: Toolbox, context: AgentContext
) -> None:
    agent, _ = agent_of(toolbox, reply("Once upon a", finish_reason="length"))
    assert await agent.next_action(context) == FinishAction(f"Once upon a{CUT_OFF}")


async def test_an_empty_answer_stays_empty_however_it_ended(
    toolbox: Toolbox, context: AgentContext
) -> None:
    agent, _ = agent_of(toolbox, reply("", finish_reason="length"))
    assert await agent.next_action(context) == FinishAction("")


# The loop


async def test_the_loop_goes_on_until_there_is_an_answer(
    toolbox: Toolbox, context: AgentContext
) -> None:
    agent, model = agent_of(toolbox, reply("", CALL), reply("It said a."))
    assert await run_agent(agent, toolbox, context) == FinishAction("It said a.")
    assert [step.action.calls for step in context.completed_steps] == [(CALL,)]
    assert [messages[0].content for messages, _, _ in model.asked] == ["0", "1"]


async def test_after_the_last_step_the_model_must_answer_with_the_same_tools_in_sight(
    toolbox: Toolbox, context: AgentContext
) -> None:
    agent, model = agent_of(toolbox, reply("", CALL), reply("", CALL), reply("Enough."))
    assert await run_agent(agent, toolbox, context) == FinishAction("Enough.")
    assert len(context.completed_steps) == MAX_STEPS
    assert [choice for _, _, choice in model.asked] == ["auto", "auto", "none"]
    assert all(tools == toolbox.definitions for _, tools, _ in model.asked)


async def test_a_server_that_ignores_none_ends_the_loop_all_the_same(
    toolbox: Toolbox, context: AgentContext
) -> None:
    agent, model = agent_of(toolbox, reply("Once more.", CALL))
    assert await run_agent(agent, toolbox, context) == FinishAction("Once more.")
    assert len(model.asked) == MAX_STEPS + 1


async def test_the_output_of_a_final_tool_is_the_answer(
    toolbox: Toolbox, context: AgentContext
) -> None:
    final = ToolCall("id-2", "last", '{"text": "The end"}')
    agent, model = agent_of(toolbox, reply("", CALL, final))
    assert await run_agent(agent, toolbox, context) == FinishAction("The end")
    assert len(model.asked) == 1


async def test_a_failed_call_goes_back_to_the_model(
    toolbox: Toolbox, context: AgentContext
) -> None:
    bad = ToolCall("id-2", "last", "{}")
    agent, _ = agent_of(toolbox, reply("", bad), reply("Sorry."))
    assert await run_agent(agent, toolbox, context) == FinishAction("Sorry.")
    assert context.completed_steps[0].results[0].failed


async def test_a_run_begins_without_the_steps_of_another(
    toolbox: Toolbox, context: AgentContext
) -> None:
    agent, _ = agent_of(toolbox, reply("", CALL), reply("One."), reply("Two."))
    await run_agent(agent, toolbox, context)
    await run_agent(agent, toolbox, context)
    assert context.completed_steps == []


async def test_trouble_with_the_model_ends_the_run(toolbox: Toolbox, context: AgentContext) -> None:
    class Away:
        async def complete(self, *_: object, **__: object) -> ModelReply:
            raise ModelUnavailable

    agent = FunctionsBasedAgent(Away(), prompt, toolbox.definitions, MAX_STEPS)
    with pytest.raises(ModelUnavailable):
        await run_agent(agent, toolbox, context)
