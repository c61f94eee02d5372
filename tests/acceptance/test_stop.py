"""A person goes on writing, or stops the reply: the model is asked again, or no more at all."""

from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import dialogue
from tests.servers.bot_api import Chat, Person
from tests.servers.model_api import Reply

WORDS = "The old harbour of Genoa has a lighthouse, and people write of it. " * 30
GROWING = Reply(WORDS, chunk_delay_s=1 / 60)


async def stopped_in_the_middle(rig: Rig, person: Person, chat: Chat) -> str:
    """Ask, press Stop under the growing reply, and return what was shown of it."""
    replies, frames = len(chat.replies), len(rig.telegram.calls_to("sendMessageDraft"))
    asked = await person.say(chat, "Tell me about Genoa")
    await rig.telegram.wait_for(
        lambda: len(rig.telegram.calls_to("sendMessageDraft")) >= frames + 2
    )
    billed, grown = len(rig.model.log.billed), len(rig.telegram.calls_to("sendMessageDraft"))
    await person.stop(chat)
    reply = await chat.wait_for_reply(after=asked)
    drafts = rig.telegram.calls_to("sendMessageDraft")
    assert len(drafts) <= grown + 1  # one may have been on its way
    shown = drafts[-1].text
    assert WORDS.startswith(shown)
    assert reply.text == f"{shown}\n\n{sentence('stop.mark')}"
    assert len(rig.model.log.billed) == billed
    assert (len(chat.replies), chat.draft) == (replies + 1, None)
    return shown


async def test_a_stop_reaches_the_worker_that_answers(rig: Rig) -> None:
    """Updates come in at one process and are answered by another."""
    rig.script.on("Genoa", GROWING)
    [worker] = await rig.start_apart()
    (anna, chat), (ben, _) = rig.anna(), rig.ben()
    shown = await stopped_in_the_middle(rig, anna, chat)
    await worker.wait_for_log("turn closed")
    assert (await rig.ask(anna, chat, "/stop")).text == sentence("stop.nothing")

    # Before the first word.
    rig.script.on("Thank you", "You're welcome.")
    rig.script.hold("How deep", "Ten metres.")
    await rig.say_until_asked(anna, chat, "How deep is it?")
    assert (await rig.ask(anna, chat, "/stop")).text == sentence("stop.before")
    await rig.ask(anna, chat, "Thank you")
    assert dialogue(rig) == ["Tell me about Genoa", shown, "How deep is it?\n\nThank you"]

    # In a group whoever asked can stop, or an administrator.
    friends = rig.telegram.group("Friends", [anna, ben])
    club = rig.telegram.group("Club", [anna, ben], admins=[ben])
    for times, group in enumerate((friends, club), 1):
        question = await anna.say(group, "@ricordo_bot How deep is the sea?")
        await rig.wait_until_asked("How deep is the sea?", times=times)
        await ben.say(group, "/stop")
        if group is friends:
            await anna.say(group, "/stop")
        reply = await group.wait_for_reply(after=question)
        assert reply.text == sentence("stop.before")
    await rig.telegram.wait_for(lambda: len(friends.replies) == 2)
    assert friends.replies[1].text == sentence("stop.not_yours")
