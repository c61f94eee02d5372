"""/memory shows what is known first, finds a word in it, and offers its settings as buttons."""

from dataclasses import replace

from bot.command_set import CommandSet
from bot.telegram.updates import ButtonPress
from memory.memory import Memory
from memory.scopes.changes import Write
from memory.scopes.entries import Fact
from memory.scopes.sources import Source
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.bot.commands.test_arguments import ANNA, ASKED, HERE, said
from tests.bot.commands.test_help import commands as commands  # noqa: PLC0414 - a fixture
from tests.memory.conftest import OPTIONS


async def press(commands: CommandSet, data: str) -> str:
    verb, _, rest = data.partition(":")
    pressed = ButtonPress(
        *(5, "c", HERE.chat_id, 0), is_group=False, message_id=9, sender=ANNA, callback_data=data
    )
    parts = await commands.buttons[verb](pressed, HERE, rest)
    return parts[0].text


async def test_a_word_is_searched_for_and_a_near_setting_named(
    commands: CommandSet, store: RedisClient, tokens: TokenCounter
) -> None:
    memory = Memory(store, 42, tokens, None, OPTIONS)
    facts = [
        Fact(number, text, (Source(HERE.tag, number),), 1_774_000_000 + number)
        for number, text in ((1, "has a boat"), (2, "likes tea"), (3, "sails the Boat to Oslo"))
    ]

    async def learn(_: object) -> Write:
        return Write(entries=facts)

    await memory.scopes.update(HERE.facts_scope, learn)
    shown = await said(commands, "memory")
    assert [line for line in shown.splitlines() if line.startswith("• 1 ")] == [
        "• 1 sails the Boat to Oslo (20 March 2026, #3)"
    ]
    found = await said(commands, "memory BOAT")
    assert "Found (2)" in found
    assert "tea" not in found
    assert "I know nothing with “submarine”" in await said(commands, "memory submarine")
    assert (await said(commands, "memory of")).startswith("Did you mean /memory off?")


async def test_its_buttons_change_the_settings_in_private_only(commands: CommandSet) -> None:
    async def buttons(*, is_group: bool = False) -> dict[str, str]:
        asked = replace(ASKED, command="memory", is_group=is_group, chat_id=-5 if is_group else 7)
        here = HERE if not is_group else HERE.of_chat(-5)
        part, *_ = (await commands.answer(asked, here)).parts
        return {each.text: each.callback_data for row in part.buttons for each in row}

    shown = await buttons()
    assert [*shown] == ["Pause memory", "Ask me first", "Only on request", "Hide ✍"]
    for button, other in (("Hide ✍", "Show ✍"), ("Show ✍", "Hide ✍")):
        data = (await buttons())[button]
        for _ in range(2):  # a button says what it does, so twice is once
            await press(commands, data)
        assert other in await buttons()
    assert "Memory is off here:" in await press(commands, shown["Pause memory"])
    assert [*await buttons()] == ["Turn memory on"]
    assert "Memory is on here again" in await press(commands, (await buttons())["Turn memory on"])
    assert "I ask you with a button" in await press(commands, shown["Ask me first"])
    assert [*await buttons()] == [
        *("Pause memory", "Learn by yourself", "Only on request", "Hide ✍")
    ]
    assert await buttons(is_group=True) == {}
