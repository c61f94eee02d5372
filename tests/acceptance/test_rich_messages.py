"""`RICH_MESSAGES=auto`: tables are sent as rich messages, and arrive as plain ones if refused."""

import orjson

from tests.acceptance.rig import Rig
from tests.servers.bot_api import Hang, Refuse

RICH, SEND = "sendRichMessage", "sendMessage"
TABLE = "| boat | *metres* |\n|---|---|\n| Aurora | 12 |"
PLAIN = "boat   | metres\n-------+-------\nAurora | 12"


async def test_a_table_is_sent_rich_and_at_once_plain_if_that_is_refused(webhook_rig: Rig) -> None:
    rig = webhook_rig
    rig.script.on("boats", TABLE)
    await rig.start(rich_messages="auto")
    faults = rig.telegram.faults
    anna, annas = rig.anna()
    ben, bens = rig.ben()

    reply = await rig.ask(anna, annas, "Show me my boats")
    (call,) = rig.telegram.calls_to(RICH)
    assert orjson.loads(call.given.text("rich_message")) == {"markdown": TABLE}
    assert reply.text == ""

    faults.add(Refuse(400, "Bad Request: RICH_MESSAGE_INVALID"), method=RICH)
    for _ in range(2):
        assert (await rig.ask(anna, annas, "Show me my boats again")).text == PLAIN
    assert len(rig.telegram.calls_to(RICH)) == 2

    faults.add(Hang(30), method=RICH)
    await ben.say(bens, "Show me my boats")
    await rig.bot.wait_for_log("delivery unknown")
    assert (await rig.ask(ben, bens, "Hello")).text == "All right."
    assert len(bens.replies) == 1
    assert len(rig.telegram.calls_to(RICH)) == 3

    faults.add(Refuse(404, "Not Found: method not found"), method=RICH)
    assert (await rig.ask(ben, bens, "Show me my boats again")).text == PLAIN
    carol, carols = rig.person(1003, "Carol")
    assert (await rig.ask(carol, carols, "Show me her boats")).text == PLAIN
    assert len(rig.telegram.calls_to(RICH)) == 4
    assert len(rig.requests) == 7

    await rig.ask(anna, annas, "What did you show?")
    assert [m.content for m in rig.requests[-1].messages].count(TABLE) == 3
