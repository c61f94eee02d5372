"""A message from which something was learned gets the reaction ✍."""

from tests.acceptance.asking import ask_and_learn, ask_to_the_end
from tests.acceptance.buttons import ERASE, ask_first, delete_now, press
from tests.acceptance.memory_model import remember_with
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Chat, Message

US = "@ricordo_bot"
LEARNED = ("✍",)


def said(chat: Chat, text: str) -> Message:
    """Return the newest message with this text."""
    return next(m for m in reversed(chat.messages) if m.text.endswith(text))


def reaction(rig: Rig, chat: Chat, text: str) -> tuple[str, ...]:
    """Return how the bot reacted to a message."""
    return chat.reaction(said(chat, text), rig.telegram.bot)


async def marked(rig: Rig, chat: Chat, text: str, mark: tuple[str, ...] = LEARNED) -> None:
    """Wait until a message is marked."""
    await rig.telegram.wait_for(lambda: reaction(rig, chat, text) == mark)


async def test_a_message_is_marked_once_a_fact_of_it_is_written_unless_it_is_quiet(
    webhook_rig: Rig,
) -> None:
    rig = webhook_rig
    remember_with(rig)
    await rig.start(learn="facts", learn_every_turns=1)
    anna, chat = rig.anna()
    await ask_and_learn(rig, anna, chat, "My sister is called Ida")
    await marked(rig, chat, "Ida")
    await rig.restart()
    await ask_and_learn(rig, anna, chat, "Is it raining?")
    await ask_and_learn(rig, anna, chat, "My dog is called Rex")
    await marked(rig, chat, "Rex")
    assert reaction(rig, chat, "raining?") == ()
    # Killed right after a reaction, the bot may set it once more.
    calls = rig.telegram.calls_to("setMessageReaction")
    assert len({call.given.integer("message_id") for call in calls}) == 2

    shows = await ask_to_the_end(rig, anna, chat, "/memory")
    await delete_now(rig, anna, shows, f"{sentence('buttons.change_entry')} 1")
    await marked(rig, chat, "Rex", ())
    assert reaction(rig, chat, "Ida") == LEARNED

    quiet = await ask_to_the_end(rig, anna, chat, "/memory quiet")
    assert quiet.text == sentence("memory.marks_off")
    await ask_and_learn(rig, anna, chat, "My cat is called Tom")
    loud = await ask_to_the_end(rig, anna, chat, "/memory quiet")
    assert loud.text == sentence("memory.marks_on")
    await ask_and_learn(rig, anna, chat, "My bird is called Kiki")
    await marked(rig, chat, "Kiki")
    assert reaction(rig, chat, "Tom") == ()

    question = await ask_first(rig, anna, chat, "/clear")
    await press(rig, anna, question, ERASE)
    await marked(rig, chat, "Kiki", ())
    assert reaction(rig, chat, "Ida") == ()

    group = rig.telegram.group("Club", [], admins=[anna])
    group.available_reactions = ["👍"]
    before = len(rig.telegram.calls_to("setMessageReaction"))
    for pet in ("frog is called Quak", "goat is called Meck"):
        await ask_and_learn(rig, anna, group, f"{US} My {pet}")
    assert len(rig.telegram.calls_to("setMessageReaction")) == before + 1
    assert len(group.replies) == 2
