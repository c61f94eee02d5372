"""A person who writes much delays nobody else and is told once; limits also stop model calls."""

import pytest

from bot.telegram.intake import MAX_PENDING
from memory.queue.ready_queue import GROUP
from tests.acceptance.asking import ask_fully
from tests.acceptance.buttons import CANCEL, press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence, sentence_in
from tests.servers.bot_api import Chat, Person

ADMIN_ID = 1009
FILL_UP = """
for _ = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'c', '9:0') end
redis.call('XREADGROUP', 'GROUP', ARGV[2], 'another', 'COUNT', ARGV[1], 'STREAMS', KEYS[1], '>')
"""  # as many wake-ups as may wait, all in the hands of another worker
SEND = "sendMessage"


async def say_unanswered(rig: Rig, person: Person, chat: Chat, text: str) -> None:
    """Say something and wait until its turn is closed without a reply."""
    await person.say(chat, text)
    turn = str(rig.telegram.updates.history[-1].id)
    assert (await rig.bot.wait_for_log("turn closed", turn=turn))["parts"] == 0


async def test_a_flood_from_one_chat_does_not_delay_another(rig: Rig) -> None:
    await rig.start(sends_per_second=30, coalesce_s=0)
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    gate = rig.script.hold("slow", "Slowly.")
    await rig.say_until_asked(anna, annas, "Be slow")
    for number in range(36):
        await anna.say(annas, f"And {number}")
    assert (await rig.ask(ben, bens, "Hello")).text == "All right."
    assert annas.replies == []
    await rig.telegram.wait_for(lambda: rig.telegram.updates.pending_count == 0)
    gate.set()
    await rig.telegram.wait_for(lambda: "And 35" in rig.requests[-1].asked)
    assert [chat.asked.count("And") for chat in rig.requests[2:]] == [32, 4]

    for _ in range(4):
        await anna.say(annas, "/privacy")
    before = len(annas.replies)
    assert (await rig.ask(ben, bens, "Hello again")).text == "All right."
    assert len(annas.replies) - before <= 3
    await rig.telegram.wait_for(lambda: len(annas.replies) >= 7)
    expected = ["Slowly.", *["All right."] * 2, *[sentence("privacy.short", ttl_days=365)] * 4]
    assert [reply.text for reply in annas.replies] == expected
    sends = [call for call in rig.telegram.calls_to(SEND) if call.chat_id == annas.id]
    assert sends[-1].at - sends[0].at >= len(sends) - 4  # three at once, then one a second


async def test_a_person_who_writes_too_fast_is_told_once_and_commands_still_work(rig: Rig) -> None:
    await rig.start(user_turns_per_minute=2, admin_user_ids=ADMIN_ID)
    (anna, annas), (ben, bens) = rig.anna("de"), rig.ben()
    ada, adas = rig.person(ADMIN_ID, "Ada")
    group = rig.telegram.group("Club", [anna, ben])
    await rig.ask(anna, annas, "One")
    await rig.ask(anna, annas, "Two")
    unread = await rig.ask(anna, annas, "Three")
    assert unread.text == sentence_in("de", "quota.turns")
    await say_unanswered(rig, anna, annas, "Four")
    await say_unanswered(rig, anna, group, "@ricordo_bot Five")
    assert (await rig.ask(anna, annas, "/new")).text == sentence_in("de", "new.done")
    assert (await rig.ask(ben, group, "@ricordo_bot Hello")).text == "All right."
    assert (await rig.ask(ben, bens, "Hello")).text == "All right."
    for _ in range(4):
        assert (await rig.ask(ada, adas, "Hello")).text == "All right."
    asked = "\n".join(m.content for request in rig.requests for m in request.messages[1:])
    assert len(rig.requests) == 8
    assert not any(word in asked for word in ("Three", "Four", "Five"))


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
    await rig.bot.wait_for_log("update refused", reason="Overloaded")
    await press(rig, anna, question, CANCEL)
    await shown(rig, question, sentence("clear.cancelled"))
    assert bens.replies == []
    gate.set()
    await rig.telegram.wait_for(lambda: len(annas.replies) == 2)
    await rig.redis("DEL", rig.keys.ready_queue)
    await rig.telegram.wait_for(lambda: len(bens.replies) == 1)
    assert len(rig.requests) == 2
