"""Processes that die before any step of an announcement, from its start to its receipt.

A step is a request to Redis about the announcement. Each strike sends one to three people, and
judges it: nobody gets two copies, nobody is left out, and the receipt is true. Only the chat whose
request was under way may be unknown.
"""

from functools import partial

from tests.acceptance.sentences import sentence
from tests.acceptance.test_broadcast import asked
from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import MomentMissed, Steps
from tests.lab.faults.scene import MANY, Scene, Stage
from tests.valkey import opened

_ADMIN = 7_000
_PEOPLE = 3
_QUIET_S = 120
_POLLS = {"HEXISTS", "HGET"}


async def _killed_while_announcing(scene: Scene, *, fault: str, begins_with: str) -> None:
    rig = scene.rig
    ada, adas = rig.person(_ADMIN, "Ada")
    people = [rig.person(_ADMIN + each, f"P{each}") for each in range(1, _PEOPLE + 1)]
    if not scene.round:
        for person, chat in people:
            await chat.wait_for_reply(after=await person.say(chat, "/start"))
    text = f"The boat is repaired, {scene.round}"
    question = await asked(ada, adas, _PEOPLE, text)
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

    async def send() -> None:
        await ada.press(question, "Send")
        await rig.telegram.wait_for(lambda: bool(receipt()), _QUIET_S)

    steps = Steps(fault, (b"{announcement}",), begins_with, _POLLS)
    if bot := await steps.killed(scene, send()):
        async with opened(scene.redis.url) as store:
            await store.call("DEL", rig.keys.of_feature("announcement", "lease"))
        await bot.start()
    await rig.telegram.wait_for(lambda: bool(receipt()), _QUIET_S)
    copies = [sum(each.text == text for each in chat.replies) for _, chat in people]
    where = f"{steps.newest}: {copies}"
    assert max(copies) <= 1, where
    assert copies.count(0) <= (receipt() == in_doubt), where
    if "open_announcement" in steps.newest or not bot:
        assert receipt() == known, where
    if not bot:
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
