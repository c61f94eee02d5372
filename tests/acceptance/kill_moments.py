"""Moments of a bot's life at which it may be killed, each recognised from outside."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random

from bot.playground.bot_api import Hang, SlowAnswer
from bot.playground.model_api import Call, ChatRequest, EmbeddingsRequest
from tests.acceptance.rig import Rig
from tests.acceptance.scripted_day import Wish

_LONGEST_S = 1

Wait = Callable[[Rig, int], Awaitable[None]]
"""Returns when something has happened so often from now on."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment; `times` is how often it has to come first.

    `wish` is what somebody must say for it to come at all. `fault` strikes the next sending, so
    that it certainly dies there. A moment that is `early` comes before any turn can begin.
    """

    name: str
    wait: Wait
    times: int = 1
    wish: Wish | None = None
    fault: Hang | SlowAnswer | None = None
    is_early: bool = False

    async def come(self, rig: Rig) -> bool:
        """Wait for it from now on, but not for ever: false when too little is going on."""
        try:
            async with asyncio.timeout(_LONGEST_S):
                await self.wait(rig, self.times)
        except TimeoutError:
            return False
        return True


def draw_moments(random: Random, number: int) -> list[Moment]:
    """Return so many moments, all kinds equally often, in any order."""
    kinds = [_KINDS[n % len(_KINDS)] for n in range(number)]
    random.shuffle(kinds)
    return [
        kind if kind.fault or kind.wish else replace(kind, times=random.choice((1, 1, 2)))
        for kind in kinds
    ]


def _called(method: str, *, answered: bool = False) -> Wait:
    async def wait(rig: Rig, times: int) -> None:
        before = len(rig.telegram.calls)

        def has_come() -> bool:
            calls = [call for call in rig.telegram.calls[before:] if call.method == method]
            return sum(call.answer is not None or not answered for call in calls) >= times

        await rig.telegram.wait_for(has_come)

    return wait


def _requested(fits: Callable[[Call], bool]) -> Wait:
    async def wait(rig: Rig, times: int) -> None:
        before = sum(map(fits, rig.model.log.calls))
        await rig.model.wait_for(fits, count=before + times)

    return wait


def _logged(event: str) -> Wait:
    async def wait(rig: Rig, times: int) -> None:
        before = len(rig.bot.log)
        await rig.bot.wait_until(
            lambda: sum(line["event"] == event for line in rig.bot.log[before:]) >= times
        )

    return wait


async def _at_once(_rig: Rig, _times: int) -> None:
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


_KINDS = (
    Moment("starting", _called("getMe"), fault=Hang(1), is_early=True),
    Moment("spoken to", _at_once),
    Moment("taking in", _logged("update")),
    Moment("typing", _called("sendChatAction")),
    Moment("recalling", _requested(_is_recall)),
    Moment("asking", _requested(_is_question)),
    Moment("using a tool", _requested(_is_tool_result), wish="sum"),
    Moment("before it is sent", _called("sendMessage"), fault=Hang(1)),
    Moment("sending", _called("sendMessage"), wish="long"),
    Moment("before it is known as sent", _called("sendMessage"), fault=SlowAnswer(1)),
    Moment("sent", _called("sendMessage", answered=True)),
    Moment("committed", _logged("turn closed")),
    Moment("learning", _requested(_is_learning)),
    Moment("learned", _logged("learned")),
)
