"""The agent loop runs tools until there is an answer, within its limits."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from bot.agent.agent import CUT_OFF, FunctionsBasedAgent, Toolbox, run_agent
from bot.model.call import ModelReply, ModelRequest, PromptMessage
from bot.model.model_errors import ModelUnavailable
from bot.prompt.assemble import Prompt
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction, ToolCall
from memory.behaviors.tool import ToolDefinition
from tests.bot.agent.conftest import echo, tool, toolbox_of

CALL = ToolCall("id-1", "echo", '{"text": "a"}')
MAX_STEPS = 2


@dataclass
class ScriptedModel:
    """Gives its replies in order, then repeats the last; `asked` logs the arguments of calls."""

    replies: deque[ModelReply]
    asked: list[tuple[Sequence[PromptMessage], Sequence[ToolDefinition], str]] = field(
        default_factory=list
    )

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append((request.messages, request.tools, request.tool_choice))
        return self.replies.popleft() if len(self.replies) > 1 else self.replies[0]


def reply(text: str = "", *calls: ToolCall, finish_reason: str = "stop") -> ModelReply:
    return ModelReply(text, calls, finish_reason)


def prompt(context: AgentContext) -> Prompt:
    """Return a message that stands for a whole prompt: the number of steps so far."""
    message = PromptMessage("user", str(len(context.completed_steps)))
    return Prompt((message,), {"message": 5})


def agent_of(toolbox: Toolbox, *replies: ModelReply) -> tuple[FunctionsBasedAgent, ScriptedModel]:
    model = ScriptedModel(deque(replies))
    return FunctionsBasedAgent(model, prompt, toolbox.definitions, MAX_STEPS), model


@pytest.fixture
def toolbox() -> Toolbox:
    return toolbox_of(tool("echo", echo), tool("last", echo, is_final=True))


# One decision


CALL_IN_TEXT = '{"function_call": {"name": "echo"}}'


@pytest.mark.parametrize(
    ("text", "finish_reason", "mark"),
    [
        *(
            (text, "stop", "")
            for text in ("About AI: x", "...", CALL_IN_TEXT, " two \n lines ", "")
        ),
        ("Once upon a", "length", CUT_OFF),
        ("", "length", ""),
    ],
)
async def test_a_text_is_the_answer_without_changes_but_a_mark_at_its_token_limit(
    toolbox: Toolbox, context: AgentContext, text: str, finish_reason: str, mark: str
) -> None:
    agent, _ = agent_of(toolbox, reply(text, finish_reason=finish_reason))
    assert await agent.next_action(context) == FinishAction(text + mark)


async def test_tool_calls_become_an_action(toolbox: Toolbox, context: AgentContext) -> None:
    """This holds also if the server ends such an answer with `stop`."""
    agent, _ = agent_of(toolbox, reply("Let me see.", CALL))
    assert await agent.next_action(context) == Action((CALL,), "Let me see.")
    assert context.sizes == {"message": 5}


# The loop


async def test_after_the_last_step_the_model_must_answer_and_still_gets_the_same_tools(
    toolbox: Toolbox, context: AgentContext
) -> None:
    agent, model = agent_of(toolbox, reply("", CALL), reply("", CALL), reply("Enough."))
    assert await run_agent(agent, toolbox, context) == FinishAction("Enough.")
    assert [step.action.calls for step in context.completed_steps] == [(CALL,)] * MAX_STEPS
    asked = [(messages[0].content, choice) for messages, _, choice in model.asked]
    assert asked == [("0", "auto"), ("1", "auto"), ("2", "none")]
    assert all(tools == toolbox.definitions for _, tools, _ in model.asked)


async def test_the_loop_ends_even_if_a_server_ignores_tool_choice_none(
    toolbox: Toolbox, context: AgentContext
) -> None:
    agent, model = agent_of(toolbox, reply("Once more.", CALL))
    assert await run_agent(agent, toolbox, context) == FinishAction("Once more.")
    assert len(model.asked) == MAX_STEPS + 1


async def test_a_final_tools_output_is_the_answer(toolbox: Toolbox, context: AgentContext) -> None:
    final = ToolCall("id-2", "last", '{"text": "The end"}')
    agent, model = agent_of(toolbox, reply("", CALL, final))
    assert await run_agent(agent, toolbox, context) == FinishAction("The end")
    assert len(model.asked) == 1


async def test_the_model_gets_a_failed_call_back(toolbox: Toolbox, context: AgentContext) -> None:
    agent, _ = agent_of(toolbox, reply("", ToolCall("id-2", "last", "{}")), reply("Sorry."))
    assert await run_agent(agent, toolbox, context) == FinishAction("Sorry.")
    assert context.completed_steps[0].results[0].failed


async def test_a_run_goes_on_after_its_steps(toolbox: Toolbox, context: AgentContext) -> None:
    context.completed_steps.append(await toolbox.run(Action((CALL,)), context))
    agent, model = agent_of(toolbox, reply("It said a."))
    await run_agent(agent, toolbox, context)
    assert [messages[0].content for messages, _, _ in model.asked] == ["1"]


async def test_an_error_of_the_model_ends_the_run(toolbox: Toolbox, context: AgentContext) -> None:
    class Away:
        async def complete(self, *_: object, **__: object) -> ModelReply:
            raise ModelUnavailable

    agent = FunctionsBasedAgent(Away(), prompt, toolbox.definitions, MAX_STEPS)
    with pytest.raises(ModelUnavailable):
        await run_agent(agent, toolbox, context)
