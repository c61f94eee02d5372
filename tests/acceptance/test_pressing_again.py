"""A confirmed erasure is finished by either button, and shown when Telegram allows it."""

from memory.store.client import RedisClient
from memory.store.keys import Scope
from tests.acceptance.buttons import CANCEL, ERASE, ask_first, erase, press, shown
from tests.acceptance.planting import fact, plant, stored_memory
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Chat, FloodWait, Message, Person

EDIT = "editMessageText"


async def told_of_a_cat(rig: Rig) -> tuple[Person, Chat, Message]:
    """Start the bot and let it learn something; return the rig's person, chat and message."""
    await rig.start()
    anna, chat = rig.anna()
    said = await anna.say(chat, "My cat is called Mephisto")
    await chat.wait_for_reply(after=said)
    await rig.wait_until_learned(2)
    return anna, chat, said


async def test_cancel_finishes_a_confirmed_erasure_that_was_interrupted(
    webhook_rig: Rig, store: RedisClient
) -> None:
    rig = webhook_rig
    anna, chat, said = await told_of_a_cat(rig)
    hers = Scope.of_person(anna.id)
    await plant(rig, hers, fact("has a cat", 1, Scope.of_chat(chat.id), anna.id))
    question = await ask_first(rig, anna, chat, "/forget", reply_to=said)
    receipts = rig.keys.scope(hers).confirm
    await store.call("SET", receipts, "no hash, so that writing a receipt here fails")
    await anna.press(question, ERASE)
    await rig.bot.wait_for_log("update dropped")
    assert len((await stored_memory(rig, hers)).facts) == 1

    await store.call("DEL", receipts)
    receipt = sentence("forget.message_done", messages=2, vectors=2, learned=1)
    assert await press(rig, anna, question, CANCEL) == ""
    await shown(rig, question, receipt)
    assert (await stored_memory(rig, hers)).facts == []


async def test_cancel_after_an_erasure_says_what_was_erased(webhook_rig: Rig) -> None:
    rig = webhook_rig
    anna, chat, said = await told_of_a_cat(rig)
    two = {"messages": 2, "vectors": 2, "learned": 0}
    for command, reply_to, key, counts in (
        ("/forget", said, "forget.message_done", two),
        ("/clear", None, "clear.done", {"messages": 0, "vectors": 0, "waiting": 0, "learned": 0}),
        ("/forget", None, "forget.done", {"conversations": 1, "messages": 0, "vectors": 0}),
    ):
        question = await ask_first(rig, anna, chat, command, reply_to=reply_to)
        await erase(rig, anna, question, key, **counts)
        await press_and_see(rig, anna, question, CANCEL)
        await shown(rig, question, sentence(key, **{"learned": 0, **counts}))


async def test_a_receipt_is_shown_after_the_ban_of_its_chat(rig: Rig) -> None:
    anna, chat, _ = await told_of_a_cat(rig)
    question = await ask_first(rig, anna, chat, "/clear")
    rig.telegram.faults.add(FloodWait(1), method=EDIT, times=2)
    await erase(rig, anna, question, "clear.done", messages=2, vectors=2, waiting=0)
    first, second, third = rig.telegram.calls_to(EDIT)
    assert min(second.at - first.at, third.at - second.at) >= 1


async def press_and_see(rig: Rig, person: Person, message: Message, button: str) -> None:
    """Press a button and wait until the bot shows a result."""
    edits = len(rig.telegram.calls_to(EDIT))
    assert await press(rig, person, message, button) == ""
    await rig.telegram.wait_for(lambda: len(rig.telegram.calls_to(EDIT)) > edits)
