"""A modified client can send any callback data; none of it blocks what comes after it."""

from dataclasses import replace

from tests.acceptance.buttons import press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Button, Chat, Message, Person

ADMIN_ID = 1009
NEVER_OURS = (
    "mem:xk-1.0.0",
    "mem:xk0.0.0",
    "mem:xk99999999999999999999.0.0",
    "mem:xk1,-1.0.0",
    "mem:xs-1.0.0",
    "mem:xf1,2.0.0",
    "mem:xf-.0.0",
    "mem:xf.0.0",
    "mem:rf1.0.0",
    "mem:x.0.0",
    "doc:r1.0.0",
    "mem:xs99999999999999999999.0.0",
    "mem:.0.0",
    "mem:",
    "yes:",
    "no:",
    "yes:nothing",
    "clear:",
    "misheard:",
    "misheard:1.1001",
    "misheard:x.1001.1",
    "misheard:99999999999999999999.1001.1",
    "run_tool:",
    "import:",
    "look:",
    "look:x",
    "why:1:xk-1.0.0",
    "nonsense",
)
NEVER_A_LETTER = ("dead:", "dead:r", "dead:r:nowhere", "dead:r:c:x:0|1", "dead:x:c:1:0|1")


async def press_forged(rig: Rig, person: Person, chat: Chat, forged: str) -> Message:
    """Press a button that the bot never showed below its message; return the message."""
    message = await rig.ask(person, chat, "/privacy")
    keyboard = ((Button("forged", forged),),)
    assert await press(rig, person, replace(message, keyboard=keyboard), "forged") == ""
    return message


async def test_forged_callback_data_is_refused_at_once(rig: Rig) -> None:
    await rig.start(admin_user_ids=ADMIN_ID)
    anna, annas = rig.anna()
    ada, adas = rig.person(ADMIN_ID, "Ada")
    pressed = [(anna, annas, forged) for forged in NEVER_OURS]
    pressed += [(ada, adas, forged) for forged in NEVER_A_LETTER]
    for person, chat, forged in pressed:
        message = await press_forged(rig, person, chat, forged)
        await shown(rig, message, sentence("clear.expired"))
    warned = [line["event"] for line in rig.bot.log if line.get("level") in ("warning", "error")]
    assert set(warned) <= {"event loop blocked"}  # as on any busy machine
    assert (await rig.ask(anna, annas, "Are you there?")).text == "All right."
