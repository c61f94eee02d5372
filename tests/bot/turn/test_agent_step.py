"""Observers get every run of the agent, whatever its outcome, and change nothing."""

import asyncio

import pytest

from bot.agent.agent import RunAgent
from bot.turn.agent_step import AgentStep
from bot.turn.answer import TypingIndicator
from bot.turn.load import ContextLoader
from bot.turn.observers import AgentRan, Event
from bot.turn.request import Request
from memory.behaviors.behavior import AIContextBehaviorManager
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, CompletedStep, FinishAction, ToolCall, ToolResult
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.scopes.selectors import BlockWindowMessageSelector
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES
from tests.bot.telegram import raw
from tests.bot.turn.plain_assistant import plain_assistant
from tests.quiet_chat import QuietChat

MESSAGE = Message(0, 0, "user", "How much is 3 times 7?", 1_762_948_800.0, message_ids=(5,))
REQUEST = Request((raw.inbound(raw.message(MESSAGE.text)),), MESSAGE, (MESSAGE,))
STEP = CompletedStep(Action((ToolCall("a", "calculate", "{}"),)), (ToolResult("a", "21"),))


async def answer(context: AgentContext) -> FinishAction:
    context.completed_steps.append(STEP)
    return FinishAction("It is 21.")


async def fail(context: AgentContext) -> FinishAction:
    context.completed_steps.append(STEP)
    raise ConnectionError("a secret")


class Watched:
    """Answers with a given agent and keeps the events that the observer gets."""

    def __init__(self, memory: Memory, history: ChatHistory) -> None:
        self.events: list[Event] = []
        self._memory = memory
        self._history = history

    async def answer(self, run_agent: RunAgent) -> str:
        chat, window = QuietChat(), BlockWindowMessageSelector(4, 100, 2)
        assistant = plain_assistant(AIContextBehaviorManager([], 60), window, run_agent)
        loader = ContextLoader(assistant, chat, recall_k=2)
        at_work = TypingIndicator(chat, timeout_s=60)
        questions, observe = self._memory.questions, self.events.append
        step = AgentStep(loader, SENTENCES, at_work, observe, questions)
        return (await step.answer(REQUEST, self._history)).said

    @property
    def ran(self) -> AgentRan:
        [event] = [event for event in self.events if isinstance(event, AgentRan)]
        return event


@pytest.fixture
async def watched(memory: Memory) -> Watched:
    return Watched(memory, await ChatHistory.read(memory.histories, Scope.of_chat(7)))


async def test_an_observer_gets_a_run_as_it_is_at_its_end(watched: Watched) -> None:
    assert await watched.answer(answer) == "It is 21."
    context = watched.ran.context
    assert (context.user_message, context.completed_steps) == (MESSAGE, [STEP])
    assert (watched.ran.reply, watched.ran.error) == ("It is 21.", None)


async def test_an_observer_gets_an_error_that_is_raised(watched: Watched) -> None:
    with pytest.raises(ConnectionError) as raised:
        await watched.answer(fail)
    assert watched.ran.context.completed_steps == [STEP]
    assert (watched.ran.reply, watched.ran.error) == ("", raised.value)


async def test_an_observer_gets_a_cancelled_run_and_it_stays_cancelled(watched: Watched) -> None:
    began = asyncio.Event()

    async def hang(_: AgentContext) -> FinishAction:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    running = asyncio.ensure_future(watched.answer(hang))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert isinstance(watched.ran.error, asyncio.CancelledError)
