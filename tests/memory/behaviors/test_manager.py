"""The manager calls only hooks that are overridden, and isolates slow and failing ones."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from inspect import getsource

import pytest

from memory.behaviors.behavior import AIContextBehavior, AIContextBehaviorManager, reaches_of
from memory.behaviors.context import CallContext
from memory.message import Message
from memory.store.keys import Scope
from tests.conftest import Documented
from tests.memory.behaviors.batches import DAY, NOW, call_context, said


class Weather(AIContextBehavior):
    name = "weather"

    def __init__(self, sky: str = "Rain") -> None:
        self._sky = sky

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        return f"{self._sky} for {call_context.speaker.first_name}, {len(new_messages)} asked."


class Failing(AIContextBehavior):
    name = "failing"

    async def on_model_invoke(self, *_: object) -> str:
        raise RuntimeError


class Slow(AIContextBehavior):
    name = "slow"

    async def on_model_invoke(self, *_: object) -> str:
        await asyncio.Event().wait()
        raise AssertionError


class Number(AIContextBehavior):
    name = "number"

    async def on_model_invoke(self, *_: object) -> str:
        return 7  # type: ignore[return-value]  # as an operator's class may


async def test_a_slow_failing_or_wrong_behavior_does_not_affect_the_others_or_their_order() -> None:
    wrong = [Failing(), Slow(), Number()]
    manager = AIContextBehaviorManager([Weather(), *wrong, Weather("Snow")], time_limit_s=0.05)
    text = await manager.on_model_invoke(call_context(), [said(1, "Rain?")])
    assert text == "Rain for Anna, 1 asked.\nSnow for Anna, 1 asked."


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


async def test_a_behavior_runs_only_in_the_conversations_that_it_covers() -> None:
    def only_in(*targets: str) -> AIContextBehaviorManager:
        weather = Weather()
        weather.reach = reaches_of(f"x@{target}" for target in targets)["x"]
        return AIContextBehaviorManager([weather], time_limit_s=5)

    async def runs_in(manager: AIContextBehaviorManager) -> list[str]:
        chats = {
            "private": Scope.of_chat(7),
            "topic": Scope.of_chat(7, 3),
            "group": Scope.of_chat(-5),
            "group's topic": Scope.of_chat(-5, 3),
            "another group": Scope.of_chat(-55),
            "elsewhere": Scope.of_keys({"id": "7"}),
        }
        talking = [said(1, "Rain?")]
        found = []
        for name, chat in chats.items():
            text = await manager.on_model_invoke(call_context(chat), talking)
            assert bool(text) == bool(manager.within(chat))
            found += [name] if text else []
        return found

    assert await runs_in(only_in("private")) == ["private", "topic"]
    assert await runs_in(only_in("groups")) == ["group", "group's topic", "another group"]
    assert await runs_in(only_in("-5")) == ["group", "group's topic"]
    assert await runs_in(only_in("-5:3", "7:0")) == ["private", "group's topic"]
    assert len(await runs_in(only_in(""))) == 6


@pytest.fixture
def example(documented: Documented) -> AIContextBehavior:
    module = documented("behaviors.md", "class OpeningHours")
    assert len(getsource(module).splitlines()) <= 30
    made = module.OpeningHours()
    assert isinstance(made, AIContextBehavior)
    return made


# NOW is a Friday.
@pytest.mark.parametrize(("days", "expected"), [(0, ""), (3, "Today is Monday; we are closed.")])
async def test_the_example_shows_what_matters_today(
    example: AIContextBehavior, days: int, expected: str
) -> None:
    today = replace(call_context(), now=NOW + days * DAY)
    behaviors = AIContextBehaviorManager([example], time_limit_s=5)
    assert await behaviors.on_model_invoke(today, [said(0, "A table?")]) == expected


async def test_the_function_of_the_example_answers(example: AIContextBehavior) -> None:
    behaviors = AIContextBehaviorManager([example], time_limit_s=5)
    (function,) = behaviors.functions
    day = function.arguments.model_validate_json('{"date": "2025-11-24"}')
    assert await function.run(day, None) == "closed"  # type: ignore[arg-type]
    assert "`is_open`" in behaviors.instructions
