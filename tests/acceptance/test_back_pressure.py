"""Under backpressure no message is lost."""

import pytest

from bot.telegram.intake import MAX_PENDING
from memory.queue.ready_queue import GROUP
from tests.acceptance.buttons import CANCEL, press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully

FILL_UP = """
for _ = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'c', '9:0') end
redis.call('XREADGROUP', 'GROUP', ARGV[2], 'another', 'COUNT', ARGV[1], 'STREAMS', KEYS[1], '>')
"""  # as many wake-ups as may wait, all in the hands of another worker
SEND = "sendMessage"


@pytest.mark.both_ways
async def test_under_backpressure_telegram_keeps_new_messages_and_none_is_lost(rig: Rig) -> None:
    """Buttons still work, even if they are pressed after intake has closed."""
    await rig.start()
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    question = await ask_fully(rig, anna, annas, "/clear")
    gate = rig.script.hold("slow", "Slowly.")
    await rig.say_until_asked(anna, annas, "Be slow")
    await rig.redis("EVAL", FILL_UP, 1, rig.keys.ready_queue, MAX_PENDING, GROUP)
    # Typing is shown every few seconds: at the second time the bot counts again.
    await rig.telegram.wait_for(lambda: len(rig.telegram.calls_to("sendChatAction")) > 1)
    await ben.say(bens, "Hello")
    await rig.bot.wait_for_log("update refused", reason="IntakeClosed")
    await press(rig, anna, question, CANCEL)
    await shown(rig, question, sentence("clear.cancelled"))
    assert bens.replies == []
    gate.set()
    await rig.telegram.wait_for(lambda: len(annas.replies) == 2)
    await rig.redis("DEL", rig.keys.ready_queue)
    await rig.telegram.wait_for(lambda: len(bens.replies) == 1)
    assert len(rig.requests) == 2
