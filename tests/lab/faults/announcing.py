"""Processes that die before any step of an announcement, from its start to its receipt.

A step is a request to Redis about the announcement. Each strike sends one to three people, and
judges it: nobody gets two copies, nobody is left out, and the receipt is true. Only the chat whose
request was under way may be unknown.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from memory.store.client import RedisClient
from memory.store.keys import Keys
from tests.acceptance.rig import BotProcess
from tests.acceptance.sentences import sentence
from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import MomentMissed
from tests.lab.faults.scene import MANY, Scene, Stage
from tests.lab.wire_tap import RoundTrip
from tests.servers.bot_api import Chat, Message, Person

_ADMIN = 7_000
_PEOPLE = 3
_QUIET_S = 120
_POLLS = {"HEXISTS", "HGET"}
_STEPS: dict[str, int] = {}
"""How many steps each fault has tried; after the last step it begins again."""


class _Steps:
    """Counts the steps of an announcement, beginning with a script's, over all processes."""

    def __init__(self, begins_with: str, number: int) -> None:
        self._begins_with = begins_with
        self._left = number
        self._has_begun = False
        self.newest: list[str] = []

    def is_last(self, trip: RoundTrip) -> bool:
        """Whether a process must stop before this request."""
        if b"{announcement}" not in trip.sent or _POLLS.issuperset(trip.names):
            return False
        self._has_begun |= self._begins_with in trip.names
        if self._has_begun:
            self.newest = trip.names
            self._left -= 1
        return self._has_begun and self._left == 0


async def _asked(ada: Person, chat: Chat, text: str) -> Message:
    """Write an announcement; return the question whether to send it."""
    said = await ada.say(chat, text)
    await chat.wait_for_reply(after=said)
    command = await ada.say(chat, "/broadcast", reply_to=said)
    return await chat.wait_for_reply(after=command)


async def _killed_at(
    scene: Scene, steps: _Steps, acts: Awaitable[object], is_over: Callable[[], bool]
) -> list[BotProcess]:
    """Let somebody act; return the killed process that came to the last step, none without one."""
    for tap in scene.taps:
        tap.stop(steps.is_last)
    await acts
    waiting = [asyncio.create_task(tap.reached.wait()) for tap in scene.taps]
    ending = asyncio.create_task(scene.telegram.wait_for(is_over, _QUIET_S))
    done, _ = await asyncio.wait([*waiting, ending], return_when=asyncio.FIRST_COMPLETED)
    for task in (*waiting, ending):
        task.cancel()
    await asyncio.gather(*waiting, ending, return_exceptions=True)
    struck = [bot for bot, at in zip(scene.bots, waiting, strict=True) if at in done]
    for bot in struck:
        await bot.kill()
    for tap in scene.taps:
        tap.let_go()
    return struck


async def _killed_while_announcing(scene: Scene, *, fault: str, begins_with: str) -> None:
    rig, number = scene.rig, _STEPS.get(fault, 0) + 1
    ada, adas = rig.person(_ADMIN, "Ada")
    people = [rig.person(_ADMIN + each, f"P{each}") for each in range(1, _PEOPLE + 1)]
    if not scene.round:
        for person, chat in people:
            await chat.wait_for_reply(after=await person.say(chat, "/start"))
    text = f"The boat is repaired, {scene.round}"
    question = await _asked(ada, adas, text)
    none = dict.fromkeys(("muted", "gone", "refused", "left"), 0)
    known, in_doubt = (
        sentence(
            *("broadcast.done", "broadcast.counts"),
            **none,
            total=_PEOPLE,
            sent=_PEOPLE - unknown,
            unknown=unknown,
        )
        for unknown in (0, 1)
    )

    def receipt() -> str:
        now = adas.message(question.id)
        return now.text if now and now.text in (known, in_doubt) else ""

    steps = _Steps(begins_with, number)
    struck = await _killed_at(scene, steps, ada.press(question, "Send"), lambda: bool(receipt()))
    _STEPS[fault] = number if struck else 0
    if struck:
        scene.met.add(fault)
        store = await RedisClient.open(scene.redis.url)
        await store.call("DEL", Keys(scene.telegram.bot.id).of_feature("announcement", "lease"))
        await store.close()
        await struck[0].start()
    await rig.telegram.wait_for(lambda: bool(receipt()), _QUIET_S)
    copies = [sum(each.text == text for each in chat.replies) for _, chat in people]
    where = f"step {number} ({'+'.join(steps.newest)}): {copies}"
    assert max(copies) <= 1, where
    assert copies.count(0) <= (receipt() == in_doubt), where
    if "open_announcement" in steps.newest or not struck:
        assert receipt() == known, where
    if not struck:
        raise MomentMissed(fault)


_SETTINGS = {"admin_user_ids": str(_ADMIN)}

FAULTS = tuple(
    Fault(
        f"kill -9 before any step of {what}{where}",
        partial(
            _killed_while_announcing,
            fault=f"kill -9 before any step of {what}{where}",
            begins_with=begins_with,
        ),
        Stage(roles=roles, settings=_SETTINGS, is_tapped=True),
        rounds,
        sample,
        texts=0,
    )
    for where, roles in (("", Stage().roles), (", web and workers", MANY))
    for what, begins_with, rounds, sample in (
        ("an announcement", "start_announcement", 24, 0),
        ("sending an announcement", "open_announcement", 9, 3),
    )
)
