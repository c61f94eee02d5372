"""Moments of a bot's life at which it may be hit, each recognised from outside."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.playground.bot_api import Hang, SlowAnswer
from bot.playground.model_api import Call, ChatRequest, EmbeddingsRequest
from tests.acceptance.scripted_day import Wish
from tests.faults.scene import Scene

_LONGEST_S = 1

Wait = Callable[[Scene], Awaitable[None]]
"""Returns when something happens from now on."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment; `wish` is what somebody must say for it to come at all.

    `fault` strikes the next sending, so that it certainly is hit there. A moment that is `early`
    comes before any turn can begin.
    """

    name: str
    wait: Wait
    wish: Wish | None = None
    fault: Hang | SlowAnswer | None = None
    is_early: bool = False

    async def come(self, scene: Scene) -> None:
        """Wait for it from now on, but not for ever, as when too little is going on."""
        try:
            async with asyncio.timeout(_LONGEST_S):
                await self.wait(scene)
        except TimeoutError:
            return

    async def bring_about(self, scene: Scene) -> None:
        """Have somebody speak so that it comes, and wait for it."""
        if self.fault:
            scene.telegram.faults.add(self.fault, method="sendMessage")
        coming = asyncio.create_task(self.come(scene))
        await scene.talk(1, self.wish)
        await coming


def _called(method: str, *, answered: bool = False) -> Wait:
    async def wait(scene: Scene) -> None:
        before = len(scene.telegram.calls)

        def has_come() -> bool:
            calls = [call for call in scene.telegram.calls[before:] if call.method == method]
            return any(call.answer is not None or not answered for call in calls)

        await scene.telegram.wait_for(has_come)

    return wait


def _requested(fits: Callable[[Call], bool]) -> Wait:
    async def wait(scene: Scene) -> None:
        before = sum(map(fits, scene.model.log.calls))
        await scene.model.wait_for(fits, count=before + 1)

    return wait


def _logged(event: str) -> Wait:
    async def wait(scene: Scene) -> None:
        lines = [bot.wait_for_log(event, after=len(bot.log)) for bot in scene.bots]
        tasks = [asyncio.create_task(line) for line in lines]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return wait


async def _at_once(_scene: Scene) -> None:
    """Need not wait: somebody has just spoken."""


def _is_question(call: Call) -> bool:
    return isinstance(call.request, ChatRequest) and call.request.messages[-1].role == "user"


def _is_tool_result(call: Call) -> bool:
    return isinstance(call.request, ChatRequest) and call.request.messages[-1].role == "tool"


def _is_recall(call: Call) -> bool:
    return isinstance(call.request, EmbeddingsRequest) and not _is_learning(call)


def _is_learning(call: Call) -> bool:
    """Whether texts come with their speakers, as they do once they are history."""
    return isinstance(call.request, EmbeddingsRequest) and ": " in call.request.texts[0]


ASKING = Moment("asking", _requested(_is_question))
USING_A_TOOL = Moment("using a tool", _requested(_is_tool_result), wish="sum")
SENDING = Moment("sending", _called("sendMessage"), wish="long")
BEING_SENT = Moment("being sent", _called("sendMessage"), fault=SlowAnswer(0.6))
BEFORE_IT_IS_KNOWN_AS_SENT = Moment(
    "before it is known as sent", _called("sendMessage"), fault=SlowAnswer(1)
)

MOMENTS = (
    Moment("starting", _called("getMe"), fault=Hang(1), is_early=True),
    Moment("spoken to", _at_once),
    Moment("taking in", _logged("update")),
    Moment("typing", _called("sendChatAction")),
    Moment("recalling", _requested(_is_recall)),
    ASKING,
    USING_A_TOOL,
    Moment("before it is sent", _called("sendMessage"), fault=Hang(1)),
    SENDING,
    BEFORE_IT_IS_KNOWN_AS_SENT,
    Moment("sent", _called("sendMessage", answered=True)),
    Moment("committed", _logged("turn closed")),
    Moment("learning", _requested(_is_learning)),
    Moment("learned", _logged("learned")),
)
