"""People are told once what they have not found yet, at most once a week."""

from tests.acceptance.asking import ask_to_the_end
from tests.acceptance.buttons import press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Chat, Person

VOICE = sentence("hints.voice")


async def answers(rig: Rig, person: Person, chat: Chat, *texts: str) -> list[str]:
    return [(await rig.ask(person, chat, text)).text for text in texts]


async def test_the_third_answer_says_once_over_restarts_that_the_bot_listens(
    webhook_rig: Rig,
) -> None:
    rig = webhook_rig
    await rig.start(hints="on", lease_s=4)
    anna, chat = rig.anna()
    assert await answers(rig, anna, chat, "One", "Two") == ["All right."] * 2
    assert (await ask_to_the_end(rig, anna, chat, "Three")).text == f"All right.\n\n{VOICE}"
    # The model reads the answer without it.
    await rig.restart()
    assert await answers(rig, anna, chat, "Four") == ["All right."]
    assert VOICE not in str([message.content for message in rig.requests[-1].messages])


async def test_nobody_gets_a_hint_in_a_group_or_after_mute(webhook_rig: Rig) -> None:
    rig = webhook_rig
    await rig.start(hints="on")
    anna, chat = rig.anna()
    group = rig.telegram.group("Club", [anna])
    asked = ("@ricordo_bot One", "@ricordo_bot Two", "@ricordo_bot Three", "@ricordo_bot Four")
    assert await answers(rig, anna, group, *asked) == ["All right."] * 4
    state = await rig.ask(anna, chat, "/mute")
    assert "/mute" in (await rig.ask(anna, chat, "/help")).text
    await press(rig, anna, state, "🔕 No announcements")
    await shown(rig, state, sentence("mute.is_on"))
    assert await answers(rig, anna, chat, "One", "Two", "Three", "Four") == ["All right."] * 4
    await rig.ask(anna, chat, "/mute off")
    assert await answers(rig, anna, chat, "Five") == [f"All right.\n\n{VOICE}"]
