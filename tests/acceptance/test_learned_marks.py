"""A message from which something was learned gets the reaction ✍."""

from tests.acceptance.buttons import ask_for_wording, delete_now, erase_now, press_now
from tests.acceptance.memory_model import remember_with
from tests.acceptance.rig import US, Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_and_learn, ask_fully
from tests.servers.bot_api import Chat, Message, Person

LEARNED = ("✍",)
CHANGE = sentence("buttons.change_entry")


def said(chat: Chat, text: str) -> Message:
    """Return the newest message with this text."""
    return next(m for m in reversed(chat.messages) if m.text.endswith(text))


def reaction(rig: Rig, chat: Chat, text: str) -> tuple[str, ...]:
    """Return how the bot reacted to a message."""
    return chat.reaction(said(chat, text), rig.telegram.bot)


async def marked(rig: Rig, chat: Chat, text: str, mark: tuple[str, ...] = LEARNED) -> None:
    await rig.telegram.wait_for(lambda: reaction(rig, chat, text) == mark)


async def teach(rig: Rig, anna: Person, chat: Chat, text: str) -> None:
    await ask_and_learn(rig, anna, chat, text)
    await marked(rig, chat, text)


async def test_neither_a_retry_nor_an_edit_brings_a_deleted_fact_back(rig: Rig) -> None:
    remember_with(rig)
    anna, chat = await rig.start_with_anna(learn="facts", learn_every_turns=1)
    await ask_and_learn(rig, anna, chat, "My dog is called Rex")
    await delete_now(rig, anna, await ask_fully(rig, anna, chat, "/memory"), f"{CHANGE} 1")
    assert (await rig.ask(anna, chat, "/retry")).text == sentence("retry.nothing")
    await anna.edit(said(chat, "Rex"), "Well, my dog is called Rex")
    await ask_and_learn(rig, anna, chat, "Is it late?")
    assert "Rex" not in (await ask_fully(rig, anna, chat, "/memory")).text


async def test_a_message_is_marked_once_its_fact_is_written_unless_it_is_quiet(rig: Rig) -> None:
    remember_with(rig)
    anna, chat = await rig.start_with_anna(learn="facts", learn_every_turns=1)
    await teach(rig, anna, chat, "My sister is called Ida")
    await rig.restart()
    await ask_and_learn(rig, anna, chat, "Is it raining?")
    await teach(rig, anna, chat, "My dog is called Rex")
    assert reaction(rig, chat, "raining?") == ()
    # Killed right after a reaction, the bot may set it once more.
    calls = rig.telegram.calls_to("setMessageReaction")
    assert len({call.given.integer("message_id") for call in calls}) == 2

    shows = await ask_fully(rig, anna, chat, "/memory")
    await delete_now(rig, anna, shows, f"{CHANGE} 1")
    await marked(rig, chat, "Rex", ())
    assert reaction(rig, chat, "Ida") == LEARNED

    await teach(rig, anna, chat, "My boat is called Aurora")
    shows = await ask_fully(rig, anna, chat, "/memory")
    question = await ask_for_wording(rig, anna, shows, f"{CHANGE} 1")
    await rig.ask(anna, chat, "Their boat is Borealis.", reply_to=question)
    await marked(rig, chat, "Aurora", ())
    shows = await ask_fully(rig, anna, chat, "/memory")
    await press_now(rig, anna, shows, f"{CHANGE} 1")
    await rig.telegram.wait_for(lambda: "“Their boat is Aurora.”" in shows.now.text)

    await teach(rig, anna, chat, "My goat is called Meck")
    await erase_now(rig, anna, chat, "/forget", reply_to=said(chat, "Meck"))
    await marked(rig, chat, "Meck", ())
    assert reaction(rig, chat, "Ida") == LEARNED

    quiet = await ask_fully(rig, anna, chat, "/memory quiet")
    assert quiet.text == sentence("memory.marks_off")
    await ask_and_learn(rig, anna, chat, "My cat is called Tom")
    loud = await ask_fully(rig, anna, chat, "/memory quiet")
    assert loud.text == sentence("memory.marks_on")
    await teach(rig, anna, chat, "My bird is called Kiki")
    assert reaction(rig, chat, "Tom") == ()

    await erase_now(rig, anna, chat, "/clear")
    await marked(rig, chat, "Kiki", ())
    assert reaction(rig, chat, "Ida") == ()

    # A refused mark is not tried again, and keeps no question from its answer.
    group = rig.telegram.group("Club", [], admins=[anna])
    group.available_reactions = ["👍"]
    before = len(rig.telegram.calls_to("setMessageReaction"))
    for pet in ("frog is called Quak", "goat is called Meck"):
        await ask_and_learn(rig, anna, group, f"{US} My {pet}")
    assert len(rig.telegram.calls_to("setMessageReaction")) == before + 1
    assert len(group.replies) == 2


async def test_a_claim_to_have_saved_what_learning_did_not_keep_is_corrected_once(rig: Rig) -> None:
    remember_with(rig)
    for words in ("My dog", "Once more", "It rained"):
        rig.script.on(words, "I've saved that.")
    anna, chat = await rig.start_with_anna(learn="facts", learn_every_turns=1)
    await teach(rig, anna, chat, "My dog is called Rex")
    await ask_and_learn(rig, anna, chat, "Once more: my dog is called Rex")
    claim = await ask_and_learn(rig, anna, chat, "It rained")
    told = await chat.wait_for_reply(after=claim)
    assert told.text == sentence("claims.nothing_kept")
    assert told.reply_to is not None
    assert told.reply_to.id == claim.id

    await rig.restart()
    await ask_and_learn(rig, anna, chat, "Hello")
    await teach(rig, anna, chat, "My cat is called Tom")
    said_by_bot = chat.texts
    assert said_by_bot.count("I've saved that.") == 3
    assert said_by_bot.count(told.text) == 1
    shown = await ask_fully(rig, anna, chat, "/recall rained")
    assert "It rained" in (shown.quote.text if shown.quote else "")
