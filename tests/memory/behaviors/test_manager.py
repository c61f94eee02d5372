"""The manager calls only hooks that are overridden, and isolates slow and failing ones."""

import asyncio
from collections.abc import Sequence

from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.call_context import CallContext
from memory.behaviors.manager import AIContextBehaviorManager
from memory.message import Message
from tests.memory.behaviors.batches import call_context, said


class Weather(AIContextBehavior):
    name = "weather"

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        return f"Rain for {call_context.speaker.first_name}, {len(new_messages)} asked."


class Failing(AIContextBehavior):
    name = "failing"

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        raise RuntimeError((call_context, new_messages))


class Slow(AIContextBehavior):
    name = "slow"

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        await asyncio.Event().wait()
        raise AssertionError((call_context, new_messages))


async def test_a_slow_or_failing_behavior_does_not_affect_the_others() -> None:
    manager = AIContextBehaviorManager([Failing(), Slow(), Weather()], time_limit_s=0.05)
    text = await manager.on_model_invoke(call_context(), [said(1, "Rain?")])
    assert text == "Rain for Anna, 1 asked."


async def test_a_hook_that_no_behavior_overrides_starts_no_task() -> None:
    started: list[object] = []

    def task_factory(loop: asyncio.AbstractEventLoop, coroutine: object, **_: object) -> object:
        started.append(coroutine)
        return asyncio.Task(coroutine, loop=loop)  # type: ignore[arg-type]

    manager = AIContextBehaviorManager([Weather(), Failing()], time_limit_s=5)
    loop = asyncio.get_running_loop()
    loop.set_task_factory(task_factory)  # type: ignore[arg-type]
    try:
        await manager.on_resume(call_context())
        await manager.on_new_message(call_context(), said(1, "Hello"))
        await manager.on_suspend(call_context())
        assert started == []
        await manager.on_model_invoke(call_context(), [said(1, "Hello")])
        assert len(started) == 2
    finally:
        loop.set_task_factory(None)
