"""Processes that die while an answer is shown as it grows."""

import asyncio

from bot.turn.outbox import Outbox
from tests.acceptance.scripted_day import markers
from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import BEING_SENT, STREAMING
from tests.lab.faults.scene import MANY, Scene, Stage
from tests.servers.bot_api import SlowAnswer
from tests.valkey import opened

_GROWING_S = 1.6
"""So long after the first frame of a slow answer at most, it is written."""


async def _killed(scene: Scene) -> None:
    """Kill a process some time after the first frame of a draft, or while it sends the answer.

    The model must not be asked again for an answer that stands in an outbox.
    """
    bot = await STREAMING.provoke(scene)
    if scene.round % 2:
        scene.telegram.faults.add(SlowAnswer(0.6), method="sendMessage")
        bot = await BEING_SENT.come(scene)
    else:
        await asyncio.sleep(scene.random.uniform(0, _GROWING_S))
    await bot.kill()
    scene.heal()
    answered = await _answered(scene)
    asked = _asked_about(scene, answered)
    async with scene.resuming():
        await bot.start()
    assert _asked_about(scene, answered) == asked, "the model was asked again"


async def _answered(scene: Scene) -> frozenset[str]:
    """Return the markers of the answers that stand in an outbox."""
    async with opened(scene.redis.url) as store:
        keys = [scene.keys_of(chat).turn for chat in scene.day.chats]
        outboxes = await store.pipeline([("HGET", key, "outbox") for key in keys])
    said = [Outbox.from_bytes(outbox).said for outbox in outboxes if outbox]
    return frozenset(marker for text in said for marker in markers(text))


def _asked_about(scene: Scene, wanted: frozenset[str]) -> int:
    """Return how many answers the model was asked for that name one of these markers."""
    asked = [request.asked.rpartition("\n\n")[2] for request in scene.model.log.chats]
    return sum(not wanted.isdisjoint(markers(text)) for text in asked)


FAULTS = tuple(
    Fault(f"kill -9 while an answer grows{where}", _killed, stage, 20, sample, 4)
    for where, stage, sample in (("", Stage(), 1), (", web and workers", Stage(roles=MANY), 0))
)
