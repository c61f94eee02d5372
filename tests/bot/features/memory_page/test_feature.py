"""/memory shows what is known first, finds a word in it, and offers its settings as buttons."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from bot.commands.bot_command import ShownOnTop
from bot.commands.command_set import CommandSet
from bot.features.memory_page import about_people
from bot.features.memory_page.entries import MemoryEntries
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part
from bot.telegram.errors import FloodWait
from bot.telegram.updates import ButtonPress, from_bytes
from memory.documents import Library, Origin, Section
from memory.memory import Memory
from memory.queue.open_turn import OpenTurn
from memory.scopes.changes import Write
from memory.scopes.entries import THE_ONE_BEFORE, Ended, Fact, ScopeEntry, Synopsis
from memory.scopes.sources import Source
from memory.store.client import RedisClient
from memory.store.errors import StoreError
from memory.store.keys import Scope
from tests.bot.commands.test_arguments import ANNA, ASKED, said
from tests.bot.commands.test_help import commands as commands  # noqa: PLC0414 - a fixture
from tests.bot.features.services import services_of
from tests.bot.reply.telegram_rules import faults
from tests.memory.clients import full_redis
from tests.memory.learning.scripted import talk
from tests.memory.turns import HERE, begin, close, put, texts
from tests.quiet_chat import QuietChat
from tests.settings import Settings
from tests.work import longest_stretch, stretch


def fact(text: str, **of: Any) -> Fact:
    return Fact(0, text, (Source(HERE.tag, 1),), 1_774_000_000, **of)


GROUPED = {
    "You and your life": [
        fact("Aime son travail et sa ville"),
        fact("Katze frisst gern Tee"),
        fact("Oslo is where she was born"),
    ],
    "Your people": [
        fact("Ida is nine", kind="daughter"),
        fact("Son père habite Lyon"),
        fact("Jonas sails"),
        fact("Hat einen Freund, Jonas"),
        fact("Her brother is named Pia-Maria"),
        fact("Pia collects stamps"),
    ],
    "Now and soon": [
        fact("Works as a carpenter", changes=True),
        fact("Moves to Oslo", from_day="2999-05"),
    ],
    "Earlier": [
        fact("Lived in Graz", changes=True, from_day="2019", to_day="2021"),
        fact("Bought a bicycle", kind="expense", from_day="2020-03-03"),
        fact("Married a sailor, Jonas", from_day="not a day"),
    ],
    "How to answer, and what always counts": [
        fact("Wants short answers", is_pinned=True, changes=True, kind="friend")
    ],
}
HOSTILE = {
    "emoji only": "😀🇧🇷👩‍👩‍👧",
    "very long": "word " * 40,
    "one long word": "𝕏" * 200,
    "markdown": "**_`[x](tg://user?id=1)`_** <b>| # - 1. ~~",
    "from right to left": "\u202eخواهرش سهراب\u202d در اصفهان",
    "blank": "\u200b",
}


async def learn(memory: Memory, *facts: ScopeEntry, here: Scope = HERE) -> None:
    await memory.scopes.update(here.facts_scope, lambda _: Write(facts))


async def shown(
    commands: CommandSet, language: str = "en", here: Scope = HERE, said: str = ""
) -> Part:
    sender = replace(ANNA, language=language)
    asked = replace(ASKED, command="memory", text=said, sender=sender, is_group=not here.is_private)
    (part,) = (await commands.answer(replace(asked, chat_id=here.chat_id), here)).parts
    return part


def grouped(part: Part) -> dict[str, list[str]]:
    """Return the texts of the entries below each title."""
    blocks = [block.splitlines() for block in part.text.split("\n\n") if "\n• " in block]
    return {
        title: [line.split(" ", 2)[2].rpartition(" (")[0].removeprefix("📌 ") for line in lines]
        for title, *lines in blocks
    }


async def press(commands: CommandSet, data: str) -> Part:
    verb, _, rest = data.partition(":")
    pressed = ButtonPress(
        *(5, "c", HERE.chat_id, 0), is_group=False, message_id=9, sender=ANNA, callback_data=data
    )
    (part,) = await commands.buttons[verb](pressed, HERE, rest)
    return part


async def test_what_was_said_just_now_is_learned_at_once_for_the_next_look(memory: Memory) -> None:
    learned: list[Scope] = []
    await MemoryEntries(replace(services_of(memory), learn=learned.append)).look(HERE, 1)
    assert (learned, memory.learner.asked_for) == ([HERE], {HERE})


async def test_what_was_learned_is_new_at_a_second_look_also_in_a_topic(memory: Memory) -> None:
    entries, topic = MemoryEntries(services_of(memory)), Scope.of_chat(HERE.chat_id, 3)
    await entries.look(topic, 1)
    await memory.scopes.update(topic, lambda _: Write([fact("Owns a boat")]))
    [known] = (await entries.content("en", topic)).entries
    await entries.look(topic, 2)
    [new] = (await entries.content("en", topic)).entries
    assert (known.group, new.code, new.group) == ("memory.you", "f-1", "memory.new")


async def test_a_button_of_a_fact_that_has_ended_pins_nothing(
    commands: CommandSet, memory: Memory
) -> None:
    await learn(memory, fact("Lives in Graz"))
    page = await press(commands, (await shown(commands)).buttons[0][0].callback_data)  # ✎ 1
    [pin] = [each.callback_data for row in page.buttons for each in row if each.text == "Pin"]
    await learn(memory, fact("Lives in Oslo"), Ended(1, 2, THE_ONE_BEFORE))
    assert (await press(commands, pin)).text.startswith("I don't have that memory any more")
    assert not any(each.is_pinned for each in (await memory.scopes.read(HERE.facts_scope)).facts)


@pytest.mark.parametrize("learn", ["facts", "off"])
async def test_if_facts_are_learned_the_newest_may_be_missing_and_there_are_ways_to_learn_them(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, learn: str
) -> None:
    monkeypatch.setattr("bot.features.memory_page.entries._FRESH_S", inf)
    await talk(memory, "Hello", conversation=HERE)
    services = services_of(memory, Settings(learn=learn))
    found = await MemoryEntries(services).content("en", HERE)
    assert {"in a few seconds" in found.footer[-1], "ask" in found.switches} == {learn == "facts"}
    assert found.above == [services.sentences.text("en", "memory.empty")]


async def test_a_word_is_searched_for_and_a_near_setting_named(
    commands: CommandSet, memory: Memory
) -> None:
    boat = f"sails the Boat. “=:.{'💛' * 12}”"
    await learn(memory, *map(fact, (*[boat] * 17, "is fond of quilts")))
    assert "• 1 is fond of quilts (20 March 2026, #18)" in await said(commands, "memory")
    page = await shown(commands, said=boat.removeprefix("sails the ").upper())
    for number, lines in enumerate((8, 8, 1), 1):
        assert page.text.startswith("Found (17).")
        assert (f"(page {number} of 3)" in page.text, page.text.count(boat)) == (True, lines)
        assert max(len(e.callback_data.encode()) for row in page.buttons for e in row) <= 64
        page = await press(commands, page.buttons[-1][-1].callback_data)
    page = await press(commands, page.buttons[0][0].callback_data)  # ✎ 9
    assert page.text.startswith("What shall I do with this?")
    page = await press(commands, page.buttons[-1][0].callback_data)
    assert "Found (16). ✎ changes or deletes an entry. (page 2 of 2)" in page.text
    assert "I know nothing with “submarine”" in await said(commands, "memory submarine")
    assert (await said(commands, "memory quilt")).startswith("Found (1).")  # it is near "quiet"
    assert (await said(commands, "memory of")).startswith("Did you mean /memory off?")
    assert "Memory is on." in await said(commands, "memory")


async def test_a_word_is_found_in_what_was_imported_which_has_no_buttons(
    commands: CommandSet, memory: Memory
) -> None:
    await learn(memory, fact("sails a boat"))
    talk_of_it = Section(f"{'We talked. ' * 40}The boat leaks.{' And so on.' * 40}", "Travel")
    lines = [Section("The boat is red", said_at=1_774_000_000), talk_of_it]
    for name, kind in (("A list", "list"), ("A file", "")):
        origin = Origin(name, imported_from=kind)
        await Library(memory.scopes).put(await memory.scopes.read(HERE), origin, lines)
    page = await shown(commands, said="Boat")
    own, _, imported = page.text.partition("Imported (2). To delete it as a whole: /documents")
    assert own.startswith("Found (3).")
    assert own.count("boat") == 1
    assert "The boat leaks." in imported
    assert "The boat is red (20 March 2026)" in imported
    assert [e.text for row in page.buttons for e in row] == ["✎ 1"]
    works = []
    for count in (10, 200):  # only what a page shows gets an excerpt
        origin, here = Origin(str(count), imported_from="list"), await memory.scopes.read(HERE)
        await Library(memory.scopes).put(here, origin, [talk_of_it] * count)
        await shown(commands, said="boat")
        works.append((await stretch(shown(commands, said="boat")))[1])
    assert works[1] < 2 * works[0]


async def test_its_buttons_change_the_settings_in_private_only(commands: CommandSet) -> None:
    async def buttons(here: Scope = HERE) -> dict[str, str]:
        rows = (await shown(commands, here=here)).buttons
        return {each.text: each.callback_data for row in rows for each in row}

    first = await buttons()
    assert [*first] == ["Pause memory", "Ask me first", "Only on request", "Hide ✍"]
    for button, other in (("Hide ✍", "Show ✍"), ("Show ✍", "Hide ✍")):
        data = (await buttons())[button]
        for _ in range(2):  # a button says what it does, so twice is once
            await press(commands, data)
        assert other in await buttons()
    assert (await press(commands, first["Pause memory"])).text.startswith("Memory is off here:")
    assert [*await buttons()] == ["Turn memory on"]
    assert (await said(commands, "memory ask")).endswith("/memory on turns it on.")
    assert "on here again" in (await press(commands, (await buttons())["Turn memory on"])).text
    assert (await press(commands, first["Ask me first"])).text.count("I ask you with") == 1
    assert [*await buttons()][1:3] == ["Learn by yourself", "Only on request"]
    assert await buttons(HERE.of_chat(-5)) == {}


async def test_the_button_turns_memory_on_behind_what_was_sent_while_it_was_off(
    commands: CommandSet, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.switch.turn_off(HERE)
    turn = await begin(memory, 3)
    with monkeypatch.context() as full:
        full.setattr("memory.queue.mailbox.MAX_UPDATES", 0)
        with pytest.raises(ShownOnTop, match="not_yet"):
            await press(commands, "mem:won.0.0")
    assert "on here again" not in (await press(commands, "mem:won.0.0")).text
    after = (await close(memory, turn)).then
    assert isinstance(after, OpenTurn)
    answer = await commands.answer(from_bytes(after.entries[0].body), HERE)
    assert "on here again" in answer.parts[0].text
    assert await texts(memory) == []


async def test_facts_are_grouped_by_their_fields(commands: CommandSet, memory: Memory) -> None:
    facts = [each for few in GROUPED.values() for each in few]
    await learn(memory, *facts, fact("Drives a bus", ended_at=1_775_000_000))
    newest_first = {title: [each.text for each in few[::-1]] for title, few in GROUPED.items()}
    assert grouped(await shown(commands)) == newest_first
    club = HERE.of_chat(-5)
    sails = Synopsis(0, "Sails", "", "", "", "", "", "", 1, 2, 1, 2, club.tag)
    await learn(memory, *facts[1:3], sails, here=club)
    titles = grouped(await shown(commands, here=club))  # a short list is one page
    assert titles.pop("Summaries and files") == ["1 January 1970 – Sails"]
    assert titles == {"This group": [facts[2].text, facts[1].text]}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_the_page_is_one_message_in_every_language_whatever_the_facts_are(
    commands: CommandSet, memory: Memory, text: str
) -> None:
    pinned = [fact(f"{text} {n}", is_pinned=True) for n in range(3)]
    await learn(memory, *pinned, *[fact(text, changes=n % 2 == 0) for n in range(200)])
    await put(memory, ASKED.update_id, HERE)
    for words in (f"instructions {'x' * 1_500}", "memory ask"):
        await said(commands, words)
    for language in Catalogue().languages:
        part = await shown(commands, language)
        pencils = [each for row in part.buttons for each in row if "✎" in each.text]
        assert (faults(part), part.text.count("📌") in (2, 3)) == ([], True)
        assert len(pencils) in range(8, 17)
        assert part.buttons[-3][0].text.endswith(f"({203 - len(pencils)})")


async def test_with_a_full_redis_a_press_asks_nothing(memory: Memory, store: RedisClient) -> None:
    """Telegram repeats a press that fails, and each repeat would send one more."""
    if store.is_cluster:
        pytest.skip("one node is enough")
    chat = QuietChat()
    edits = services_of(memory, chat=chat).edits
    pressed = ButtonPress(5, "c", 7, 0, False, 9, ANNA, "misheard")  # noqa: FBT003
    async with full_redis(store):
        with pytest.raises(StoreError):
            await edits.ask_for_words(pressed, HERE, "voice.ask", "heard:5.1774000000")
    assert chat.sent == []
    await edits.ask_for_words(pressed, HERE, "voice.ask", "heard:5.1774000000")
    assert await memory.questions.check(HERE, "edit:100", "edit", ANNA.id) == "heard:5.1774000000"
    chat.permit_waits_s = [5.0]  # other people's updates do not wait so long for a press
    with pytest.raises(FloodWait):
        await edits.ask_for_words(pressed, HERE, "voice.ask", "heard:5.1774000000")


def test_a_text_of_one_name_is_read_at_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    monkeypatch.setattr(about_people, "_has_relation", lambda *near: read.append(near))
    assert about_people.names_of([fact("Ab sails")], ["Ab " * 1_300], "en") == set()
    assert len(read) == 1 + 32  # the fact, and the text


@pytest.mark.parametrize("how", ["listed", "found", "exported"])
async def test_other_turns_go_on_while_thousands_of_facts_are_listed_or_exported(
    commands: CommandSet, memory: Memory, how: str
) -> None:
    await learn(memory, *(fact(f"likes dish {number}") for number in range(2_000)))
    works: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "listed": lambda: shown(commands),
        "found": lambda: shown(commands, said="dish"),
        "exported": lambda: memory.exporter.export(HERE),
    }
    assert await longest_stretch(works[how]()) < 0.3
