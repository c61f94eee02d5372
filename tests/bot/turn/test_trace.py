"""Whoever looks on is told of each run, however it ends, and changes nothing of it."""

import asyncio
import time

import pytest

from bot.prompt.assemble import Prompt, PromptTokens
from bot.turn.answer import RunAgent
from bot.turn.trace import TurnTrace, watched
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, CompletedStep, FinishAction, ToolCall, ToolResult
from memory.memory import Memory
from memory.message import Message
from memory.store.client import RedisClient
from tests.bot.playground.bare_memory import bare_memory

WORDS = Message(0, 0, "user", "How much is 3 times 7?", 1_762_948_800.0, message_ids=(5,))
STEP = CompletedStep(Action((ToolCall("a", "calculate", "{}"),)), (ToolResult("a", "21"),))


class Onlooker:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.traces: list[TurnTrace] = []

    def serving(self, memory: Memory) -> None:
        raise AssertionError(f"{memory} serves already")

    def answered(self, trace: TurnTrace) -> None:
        self.traces.append(trace)

    def watch(self, run: RunAgent) -> RunAgent:
        return watched(run, prompt, self)


def prompt(context: AgentContext) -> Prompt:
    return Prompt((), PromptTokens(1, 2, 3, 4, 5, steps=len(context.completed_steps)))


async def answer(context: AgentContext) -> FinishAction:
    context.completed_steps.append(STEP)
    return FinishAction("It is 21.")


async def fail(context: AgentContext) -> FinishAction:
    context.completed_steps.append(STEP)
    raise ConnectionError("a secret")


@pytest.fixture
async def context(store: RedisClient) -> AgentContext:
    memory = await bare_memory(store)
    opened = await AgentContext.get_or_create({"chat_id": 7}, memory.histories, now=time.time())
    opened.user_message = WORDS
    return opened


async def test_a_run_is_told_as_it_stood_at_its_end(context: AgentContext) -> None:
    onlooker = Onlooker()
    assert await onlooker.watch(answer)(context) == FinishAction("It is 21.")
    [trace] = onlooker.traces
    assert (trace.conversation, trace.words) == (context.conversation, WORDS)
    assert (trace.steps, trace.prompt.tokens.steps) == ((STEP,), 1)
    assert (trace.reply, trace.failure) == ("It is 21.", "")


async def test_a_failed_run_is_told_by_its_error_and_fails_all_the_same(
    context: AgentContext,
) -> None:
    onlooker = Onlooker()
    with pytest.raises(ConnectionError):
        await onlooker.watch(fail)(context)
    [trace] = onlooker.traces
    assert (trace.steps, trace.reply, trace.failure) == ((STEP,), "", "ConnectionError")


async def test_a_cancelled_run_is_told_and_stays_cancelled(context: AgentContext) -> None:
    onlooker, began = Onlooker(), asyncio.Event()

    async def hang(_: AgentContext) -> FinishAction:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    running = asyncio.ensure_future(onlooker.watch(hang)(context))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [trace.failure for trace in onlooker.traces] == ["CancelledError"]
