"""Moments at which a fault may hit a bot; each is recognised from outside."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tests.acceptance.bot_process import BotProcess
from tests.acceptance.scripted_day import Wish
from tests.lab.faults.scene import Scene
from tests.lab.wire_tap import RoundTrip
from tests.servers import bot_api
from tests.servers.bot_api import Hang, SlowAnswer
from tests.servers.model_api import ApiRequest, Break, Call, ChatRequest, EmbeddingsRequest

_MAX_WAIT_S = 60
"""Longer than the 15 s for which a conversation is not learned after its learner died."""

_AGAIN_S = 3
_STEP_S = 120

Wait = Callable[[Scene], Awaitable[BotProcess | None]]
"""Returns when something happens, with the process in which it happens if that can be seen.

Raises `TimeoutError` if it does not happen within `_MAX_WAIT_S`.
"""


class MomentMissed(Exception):
    """Raised when a moment does not come in time; its text is the name of the moment."""


@dataclass(slots=True)
class Steps:
    """The requests to Redis that contain one of `names`; a process is killed before one of them.

    The steps of all processes count together, from the script `begins_with` on; `polls` do not
    count. In each round of a fault it is one step later, and after the last step the first again.
    """

    fault: str
    names: Sequence[bytes]
    begins_with: str = ""
    polls: Collection[str] = ()
    newest: str = ""
    """The number and the names of the newest request."""

    _tried: ClassVar[dict[str, int]] = {}
    _number: int = 0
    _left: int = 0
    _has_begun: bool = False

    async def killed(self, scene: Scene, acts: Coroutine[None, None, None]) -> BotProcess | None:
        """Let somebody act; return the process that was killed, None if there is no such step."""
        self._number = self._left = self._tried.get(self.fault, 0) + 1
        self._has_begun = not self.begins_with
        for tap in scene.taps:
            tap.stop(self._is_last)
        waiting = [asyncio.create_task(tap.reached.wait()) for tap in scene.taps]
        acting = asyncio.create_task(acts)
        done, _ = await asyncio.wait(
            [*waiting, acting], timeout=_STEP_S, return_when=asyncio.FIRST_COMPLETED
        )
        for task in (*waiting, acting):
            task.cancel()
        await asyncio.gather(*waiting, acting, return_exceptions=True)
        struck = [bot for bot, at in zip(scene.bots, waiting, strict=True) if at in done]
        for bot in struck:
            await bot.kill()
        for tap in scene.taps:
            tap.let_go()
        self._tried[self.fault] = self._number if struck else 0
        if not struck:
            acting.result()
            return None
        scene.met.add(self.fault)
        [bot] = struck
        return bot

    def _is_last(self, trip: RoundTrip) -> bool:
        """Whether a process must stop before this request."""
        if not any(map(trip.is_about, self.names)) or set(trip.names) <= set(self.polls):
            return False
        self._has_begun |= self.begins_with in trip.names
        if self._has_begun:
            self._left -= 1
            self.newest = f"step {self._number - self._left} ({'+'.join(trip.names)})"
        return self._has_begun and self._left == 0


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment. If a person must ask for something special to provoke it, `wish` says what.

    `fault` slows the next call of `sendMessage` down, so that the moment is long enough to hit.
    """

    name: str
    wait: Wait
    wish: Wish | None = None
    fault: Hang | SlowAnswer | None = None

    async def come(self, scene: Scene) -> BotProcess:
        """Wait for it; return the process that is at this moment, or a worker if that is unknown.

        Raise `MomentMissed` if it does not come in time.
        """
        try:
            bot = await self.wait(scene)
        except TimeoutError:
            raise MomentMissed(self.name) from None
        scene.met.add(self.name)
        return bot or scene.bots[-1]

    async def provoke(self, scene: Scene) -> BotProcess:
        """Let people write until it comes, and return as `come` does.

        One text may not be enough: before anything is learned, nothing is recalled.
        """
        if self.fault:
            scene.telegram.faults.add(self.fault, method="sendMessage")
        coming = asyncio.create_task(self.come(scene))
        while not coming.done():
            await scene.talk(1, self.wish)
            await asyncio.wait([coming], timeout=_AGAIN_S)
        return await coming


def _called(method: str, *, answered: bool = False) -> Wait:
    async def wait(scene: Scene) -> BotProcess | None:
        before = len(scene.telegram.calls)

        def fitting() -> list[bot_api.Call]:
            calls = [call for call in scene.telegram.calls[before:] if call.method == method]
            return [call for call in calls if call.answer is not None or not answered]

        await scene.telegram.wait_for(lambda: bool(fitting()), _MAX_WAIT_S)
        return scene.worker_on(fitting()[0].text)

    return wait


def _requested(fits: Callable[[Call], bool]) -> Wait:
    async def wait(scene: Scene) -> BotProcess | None:
        before = sum(map(fits, scene.model.log.calls))
        call = await scene.model.wait_for(fits, count=before + 1, timeout_s=_MAX_WAIT_S)
        match call.request:
            case ChatRequest(asked=asked):
                return scene.worker_on(asked)
            case EmbeddingsRequest(texts=texts):
                return scene.worker_on(" ".join(texts))
        return None

    return wait


def _logged(event: str) -> Wait:
    async def wait(scene: Scene) -> BotProcess:
        def saying(bot: BotProcess) -> asyncio.Task[object]:
            line = bot.wait_for_log(event, after=len(bot.log), timeout_s=_MAX_WAIT_S)
            return asyncio.create_task(line)

        waiting = {saying(bot): bot for bot in scene.bots}
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            first = done.pop()
            await first
            return waiting[first]
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    return wait


async def _at_once(scene: Scene) -> BotProcess:
    """Return the process with intake; it need not wait, because a person has just written."""
    return scene.bots[0]


def _asked_by(role: str) -> Wait:
    def fits(call: Call) -> bool:
        return isinstance(call.request, ChatRequest) and call.request.messages[-1].role == role

    return _requested(fits)


def _is_recall(call: Call) -> bool:
    return isinstance(call.request, EmbeddingsRequest) and not is_for_learning(call.request)


def _is_learning(call: Call) -> bool:
    return call.request is not None and is_for_learning(call.request)


def is_for_learning(request: ApiRequest) -> bool:
    """Whether texts begin with the names of their speakers, as messages of a history do."""
    return isinstance(request, EmbeddingsRequest) and ": " in request.texts[0]


ACCEPTING = Moment("accepting", _logged("update"))
ASKING = Moment("asking", _asked_by("user"))
USING_A_TOOL = Moment("using a tool", _asked_by("tool"), wish="sum")
SENDING = Moment("sending", _called("sendMessage"), wish="long")
BEING_SENT = Moment("being sent", _called("sendMessage"), fault=SlowAnswer(0.6))
BEFORE_IT_IS_MARKED_AS_SENT = Moment(
    "before it is marked as sent", _called("sendMessage"), fault=SlowAnswer(1)
)
STREAMING = Moment("streaming", _called("sendMessageDraft"), wish="slow")
LEARNING = Moment("learning", _requested(_is_learning))
STUCK_LEARNING = Moment(
    "stuck learning", _requested(lambda call: _is_learning(call) and Break.HANG in call.faults)
)

IN_A_TURN = (
    Moment("spoken to", _at_once),
    ACCEPTING,
    Moment("typing", _called("sendChatAction")),
    Moment("recalling", _requested(_is_recall)),
    ASKING,
    USING_A_TOOL,
    Moment("before it is sent", _called("sendMessage"), fault=Hang(1)),
    SENDING,
    BEFORE_IT_IS_MARKED_AS_SENT,
    Moment("sent", _called("sendMessage", answered=True)),
    Moment("committed", _logged("turn closed")),
)
MOMENTS = (*IN_A_TURN, LEARNING, Moment("learned", _logged("learned")))
