"""Faults between the bot and Telegram, of the bot's calls and of Telegram's updates."""

import asyncio
from collections.abc import Mapping
from functools import partial

from tests.lab.faults.fault import Fault
from tests.lab.faults.scene import MANY, Scene, Stage
from tests.lab.faults.verdict import Closing
from tests.servers.bot_api import (
    DropConnection,
    FloodWait,
    Hang,
    Refuse,
    SentThenDrop,
    ServerError,
    SlowAnswer,
)

AnyFault = FloodWait | Refuse | ServerError | Hang | SlowAnswer | DropConnection | SentThenDrop

_TOGETHER = 4  # texts whose deliveries go wrong together

_SOON_S = 1
_PARKED_S = 21  # a turn does not wait so long with its lease; it is parked

_AWAY_S = 9
"""A turn tries Telegram again for less than this, then it is parked for `_PARKED_AWAY_S`."""

_PARKED_AWAY_S = 30
_LATER_PART = ", 2: "  # a text in the second part of a long answer

_HARMLESS: Mapping[str, AnyFault] = {
    f"429, wait {_SOON_S} s": FloodWait(_SOON_S),
    "sent, answered too late": SlowAnswer(3),
    "sent, then reset": SentThenDrop(),
}
_COSTLY: Mapping[str, AnyFault] = {
    "500": ServerError(),
    "reset, not sent": DropConnection(),
    "silence, not sent": Hang(3),
    "400, no such chat": Refuse(400, "Bad Request: chat not found"),
}
"""After these the reply counts as unknown or undeliverable and is not sent again."""

_POLLED: Mapping[str, AnyFault] = {
    "batch lost": SentThenDrop(),
    "500": ServerError(),
    f"429, wait {_SOON_S} s": FloodWait(_SOON_S),
    "409": Refuse(409, "Conflict: terminated by other getUpdates request"),
    "silence": Hang(1),
}
_BOLD = "Heard"  # a text in answers that have entities

_CANNOT_PARSE = Refuse(400, "Bad Request: can't parse entities: Unsupported start tag")
_UNDELIVERED: frozenset[Closing] = frozenset({"undelivered"})
_POLLING = Stage(intake="polling")
_COALESCING = {"coalesce_s": 2}
"""Updates that arrive within this time are sorted; busy machines need more than the default."""


async def _meets(scene: Scene, method: str, fault: AnyFault, text: str = "") -> None:
    """Strike the next call of a method, or the next one with this text."""
    rule = scene.telegram.faults.add(fault, method=method, text=text)
    await scene.talk(1, "short")
    await scene.telegram.wait_for(lambda: rule.left == 0)


async def _polling(scene: Scene, fault: AnyFault) -> None:
    """Strike the next poll; it is over when a later poll has been answered."""
    before = len(scene.telegram.calls_to("getUpdates"))
    await _meets(scene, "getUpdates", fault)
    await scene.talk(1)

    def is_over() -> bool:
        polls = scene.telegram.calls_to("getUpdates")[before:]
        return any(poll.answer and poll.answer.ok for poll in polls)

    await scene.telegram.wait_for(is_over)


async def _sending(scene: Scene, fault: AnyFault) -> None:
    """Strike the second part of a long answer, in odd rounds any answer."""
    is_later = not scene.round % 2
    text = _LATER_PART if is_later else ""
    rule = scene.telegram.faults.add(fault, method="sendMessage", text=text)
    await scene.talk(1, "long" if is_later else None)
    await scene.telegram.wait_for(lambda: rule.left == 0)


async def _away(scene: Scene, *, is_long: bool = False) -> None:
    """Stop Telegram's server while people wait for an answer, perhaps until turns are parked."""
    scene.note_unanswered()
    await scene.telegram.stop()
    await (asyncio.sleep(_AWAY_S) if is_long else scene.talk(_TOGETHER))
    await scene.telegram.start()


async def _out_of_order(scene: Scene) -> None:
    """Deliver the newest texts in reverse order."""
    scene.telegram.updates.hold()
    await scene.talk(_TOGETHER)
    await scene.telegram.updates.release(reversed)


async def _scattered(scene: Scene) -> None:
    """Deliver the newest texts at the same time, each over its own connection."""
    scene.telegram.updates.scatter()
    await _out_of_order(scene)


async def _repeated(scene: Scene) -> None:
    """Deliver the newest texts again, and once more when they have been accepted."""
    latest = scene.telegram.updates.history[-_TOGETHER:]
    for _ in range(2):
        for update in latest:
            await scene.telegram.updates.redeliver(update)
        await scene.telegram.wait_for(lambda: not scene.telegram.updates.pending_count)


FAULTS = (
    *(
        Fault(f"sendMessage: {name}", partial(_sending, fault=fault))
        for name, fault in _HARMLESS.items()
    ),
    *(
        Fault(f"sendMessage: {name}", partial(_sending, fault=fault), closings=_UNDELIVERED)
        for name, fault in _COSTLY.items()
    ),
    Fault(
        f"sendMessage: 429, wait {_PARKED_S} s",
        partial(_sending, fault=FloodWait(_PARKED_S)),
        rounds=2,
        patience_s=5 * _PARKED_S,
    ),
    Fault(
        "sendMessage: 400, entities",
        partial(_meets, method="sendMessage", fault=_CANNOT_PARSE, text=_BOLD),
    ),
    Fault(
        "sendChatAction: 429", partial(_meets, method="sendChatAction", fault=FloodWait(_SOON_S))
    ),
    Fault("Telegram away", _away, closings=_UNDELIVERED, turns=0),
    Fault("Telegram away, polling", _away, _POLLING, closings=_UNDELIVERED, turns=0),
    Fault(
        f"Telegram away for {_AWAY_S} s",
        partial(_away, is_long=True),
        rounds=1,
        sample=0,
        closings=_UNDELIVERED,
        turns=0,
        patience_s=4 * _PARKED_AWAY_S,
    ),
    Fault("webhook: out of order", _out_of_order, Stage(roles=MANY, settings=_COALESCING)),
    # In the suite a machine with many test workers may deliver one text seconds after the others,
    # when they have been answered already.
    Fault("webhook: scattered", _scattered, Stage(roles=MANY, settings=_COALESCING), sample=0),
    Fault("webhook: repeated", _repeated, Stage(roles=MANY)),
    *(
        Fault(f"getUpdates: {name}", partial(_polling, fault=fault), _POLLING)
        for name, fault in _POLLED.items()
    ),
    Fault("getUpdates: out of order", _out_of_order, Stage("polling", settings=_COALESCING)),
    Fault("getUpdates: repeated", _repeated, _POLLING),
)
