"""After a refusal the agent goes on without the pictures, then with the message alone."""

from collections import deque

import pytest

from bot.agent.agent import MessageRefused, PartDeclined, run_agent
from bot.model.model_errors import ContentRefused, ModelRefused, ModelUnavailable
from memory.behaviors.context import AgentContext, Background
from memory.behaviors.steps import Action, FinishAction
from memory.message import Picture
from tests.bot.agent.conftest import calls, toolbox_of

BOAT = Picture(7, b"a boat", "image/jpeg", 1, 1)
ECHO = calls('{"text": "a"}')
REFUSED = ContentRefused(status=400)
ANSWER = FinishAction("A fine name.")


class Deciding:
    """Decides in order; `saw` logs whether it saw pictures, and after how many steps."""

    def __init__(self, *decisions: Action | FinishAction | Exception) -> None:
        self._decisions = deque(decisions)
        self.saw: list[tuple[bool, int]] = []

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        self.saw.append((bool(context.pictures), len(context.completed_steps)))
        decision = self._decisions.popleft()
        if isinstance(decision, Exception):
            raise decision
        return decision


@pytest.fixture
def context(context: AgentContext) -> AgentContext:
    context.pictures, context.background = (BOAT,), Background(memory_context="Facts: none")
    return context


async def test_an_answer_without_the_pictures_goes_on_after_the_tools_that_ran(
    context: AgentContext,
) -> None:
    agent = Deciding(ECHO, REFUSED, ECHO, ANSWER)
    assert await run_agent(agent, toolbox_of(), context) == ANSWER
    assert agent.saw == [(True, 0), (True, 1), (False, 1), (False, 2)]
    assert context.are_pictures_refused


@pytest.mark.parametrize("decisions", [(ModelUnavailable(),), (ECHO, REFUSED)], ids=len)
async def test_pictures_are_declined_if_the_answer_without_them_fails(
    context: AgentContext, decisions: tuple[Action | FinishAction | Exception, ...]
) -> None:
    agent = Deciding(REFUSED, *decisions)
    with pytest.raises(PartDeclined):
        await run_agent(agent, toolbox_of(), context)
    assert len(agent.saw) == 1 + len(decisions)


async def test_a_prompt_that_is_refused_without_its_pictures_is_tried_alone_with_them(
    context: AgentContext,
) -> None:
    agent = Deciding(ECHO, REFUSED, REFUSED, ANSWER)
    assert await run_agent(agent, toolbox_of(), context) == ANSWER
    assert agent.saw == [(True, 0), (True, 1), (False, 1), (True, 0)]
    assert (context.background.memory_context, context.are_pictures_refused) == ("", False)


@pytest.mark.parametrize("refused", [REFUSED, ModelRefused("Too large", 413)])
async def test_a_message_is_refused_if_only_a_harmless_one_is_taken_instead(
    context: AgentContext, refused: ModelRefused
) -> None:
    agent = Deciding(refused, refused, refused, ANSWER)
    with pytest.raises(MessageRefused):
        await run_agent(agent, toolbox_of(), context)
    assert [pictures for pictures, _ in agent.saw] == [True, False, True, False]


@pytest.mark.parametrize(("status", "tries"), [(400, 4), (401, 1), (404, 1)])
async def test_an_error_of_the_operator_refuses_no_message(
    context: AgentContext, status: int, tries: int
) -> None:
    error = ModelRefused("Unsupported parameter: tools", status)
    agent = Deciding(*[error] * tries)
    with pytest.raises(ModelRefused) as raised:
        await run_agent(agent, toolbox_of(), context)
    assert (raised.value, len(agent.saw)) == (error, tries)
