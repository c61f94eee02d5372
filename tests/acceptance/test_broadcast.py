"""An announcement is asked first, and workers send it at most once to who wants it."""

from tests.acceptance.buttons import press, press_now, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Chat, FloodWait, Message, Person, SlowAnswer

TEXT = "Tonight the boat is repaired"


async def asked(ada: Person, chat: Chat, chats: int, text: str = TEXT) -> Message:
    """Write the announcement and `/broadcast`; return the question."""
    said = await ada.say(chat, text)
    await chat.wait_for_reply(after=said)
    command = await ada.say(chat, "/broadcast", reply_to=said)
    question = await chat.wait_for_reply(after=command)
    assert question.text == sentence("broadcast.ask", chats=chats, days=90)
    return question


async def test_an_announcement_over_two_workers_one_of_which_is_killed(rig: Rig) -> None:
    ada, adas = await rig.start_with_ada()
    people = [rig.person(1010 + number, f"P{number}") for number in range(6)]
    for person, chat in people:
        await rig.ask(person, chat, "/start")
    (muted, muted_chat), (gone, gone_chat), *others = people
    group = rig.telegram.group("Club", [muted])
    await rig.ask(muted, group, "/help")
    state = await rig.ask(muted, muted_chat, "/mute")
    assert state.text == sentence("mute.is_off")
    await press(rig, muted, state, "🔕 Turn announcements off")
    await shown(rig, state, sentence("mute.is_on"))
    assert [b.text for b in muted_chat.replies[-1].keyboard[0]] == [sentence("buttons.unmute")]
    assert (await rig.ask(muted, muted_chat, "/mute aus")).text == sentence("mute.off")
    assert (await rig.ask(muted, muted_chat, "/mute on")).text == sentence("mute.on")
    assert (await rig.ask(muted, group, "/mute")).text == sentence("mute.only_private")
    await gone.block()

    refused = await asked(ada, adas, 5)
    assert await press(rig, ada, refused, "Don't send") == ""
    await rig.telegram.wait_for(lambda: refused.now.text.startswith(sentence("broadcast.refused")))
    question = await asked(ada, adas, 5)
    # One chat is banned for a moment. For another the worker dies while Telegram has the copy.
    rig.telegram.faults.add(FloodWait(1), method="copyMessage", chat=others[0][1])
    rig.telegram.faults.add(SlowAnswer(30), method="copyMessage", chat=others[1][1])
    assert await press(rig, ada, question, "Send") == ""
    await rig.telegram.wait_for(lambda: others[1][1].texts.count(TEXT) == 1)
    await rig.bot.kill()
    await rig.end_leases()
    heir = rig.another_bot(command="worker")
    await heir.start()
    await heir.wait_for_log("announcement ended")
    counts = {"total": 5, "sent": 3, "muted": 0, "gone": 1, "refused": 0, "unknown": 1, "left": 0}
    done = sentence("broadcast.done", "broadcast.counts", **counts)
    await rig.telegram.wait_for(lambda: question.now.text.startswith(done))
    assert [chat.texts.count(TEXT) for _, chat in people] == [0, 0, 1, 1, 1, 1]
    assert group.texts.count(TEXT) + adas.texts.count(TEXT) == 0

    # The button below a copy mutes; who was gone and writes again is reachable again.
    await rig.bot.start()
    (person, chat) = others[3]
    copy = next(reply for reply in chat.replies if reply.text == TEXT)
    assert await press(rig, person, copy, "🔕 Turn announcements off") == sentence("mute.on")
    assert copy.now.text.startswith(TEXT)
    await gone.unblock()
    await rig.ask(gone, gone_chat, "/start")
    again = await asked(ada, adas, 4)
    rig.telegram.faults.add(FloodWait(30), method="copyMessage")
    await press(rig, ada, again, "Send")
    await rig.telegram.wait_for(lambda: again.now.text.startswith("📣"))
    await press_now(rig, ada, again, "Stop")
    await rig.telegram.wait_for(lambda: again.now.text.startswith(sentence("broadcast.stopped")))
    assert gone_chat.texts.count(TEXT) == 0
