"""A list shows its entries page by page, and its buttons act on the entry that they name."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bot.commands.paged_list import ASK, CONFIRMED, ListChange, ListContent, ListEntry, PagedList
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender
from memory.erasure.questions import NotConfirmed
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES
from tests.memory.turns import HERE

ANNA = Sender(7, "Anna")


class Letters:
    """A list of letters that Anna may delete and nobody else."""

    verb = "abc"
    actions: Mapping[str, str]

    def __init__(self, letters: str, *actions: str) -> None:
        self.letters = letters
        labels = {ASK: "buttons.delete_entry", "r": "buttons.pin", "d": "buttons.delete"}
        self.actions = {action: labels[action] for action in actions or (ASK,)}

    async def content(self, language: str, conversation: Scope, by: int) -> ListContent:
        del language, conversation, by
        entries = [
            ListEntry(letter, "memory.document", {"name": letter, "date": "today"})
            for letter in self.letters
        ]
        return ListContent("memory.learned", entries, above=("Above.",), below=("Below.",))

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        del conversation, code
        if pressed.sender != ANNA:
            raise NotConfirmed("not_yours")

    async def act(self, pressed: ButtonPress, here: Scope, action: str, code: str) -> ListChange:
        del pressed, here
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        self.letters = self.letters.replace(code, "")
        return ListChange("lists.deleted", {"buttons.recall_again": "k1"})


def paged(source: Letters) -> PagedList:
    return PagedList(source, SENTENCES)


async def show(source: Letters) -> Part:
    asked = IncomingMessage(
        1, 7, 0, is_group=False, message_id=2, sent_at=3, sender=ANNA, kind="command", text=""
    )
    (part,) = (await paged(source).show(asked, HERE)).parts
    return part


async def press(source: Letters, data: str, sender: Sender = ANNA) -> Part:
    """Press a button with this callback data after the verb; return what is shown then."""
    pressed = ButtonPress(
        1, "c", 7, 0, is_group=False, message_id=2, sender=sender, callback_data=data
    )
    (part,) = await paged(source).press(pressed, HERE, data)
    return part


def buttons(part: Part) -> list[list[tuple[str, str]]]:
    return [[(button.text, button.callback_data) for button in row] for row in part.buttons]


async def test_a_short_list_is_one_page_with_four_buttons_a_row() -> None:
    part = await show(Letters("abcde"))
    assert part.text.startswith("Above.\n\nWhat I know.")
    assert "• 1 a (today)\n• 2 b (today)\n" in part.text
    assert part.text.endswith("Below.")
    assert buttons(part) == [
        [(f"✕ {number}", f"abc:a{letter}.0.0") for number, letter in enumerate("abcd", start=1)],
        [("✕ 5", "abc:ae.0.0")],
    ]


async def test_entries_with_two_actions_have_a_row_each() -> None:
    assert buttons(await show(Letters("ab", "r", "d"))) == [
        [(f"Pin {number}", f"abc:r{code}.0.0"), (f"Delete {number}", f"abc:d{code}.0.0")]
        for number, code in ((1, "a"), (2, "b"))
    ]


async def test_a_long_list_has_pages_and_numbers_go_on() -> None:
    source = Letters("abcdefghijklmnopq")
    second, last = await press(source, "p.1.0"), await press(source, "p.9.0")
    assert "Above." not in second.text
    assert "• 9 i (today)" in second.text
    assert buttons(second)[-1] == [("‹ 1", "abc:p.0.0"), ("› 3", "abc:p.2.0")]
    assert "page 3 of 3" in last.text
    assert buttons(last)[-1] == [("‹ 2", "abc:p.1.0")]


async def test_an_empty_list_shows_only_what_stands_above_it() -> None:
    part = await show(Letters(""))
    assert (part.text, part.buttons) == ("Above.", ())


async def test_deleting_asks_first_and_then_shows_the_list_as_it_is() -> None:
    source = Letters("ab")
    question = await press(source, "ab.0.0")
    assert question.text == "Delete this?\n\n• 2 b (today)"
    assert buttons(question) == [[("Delete", "abc:xb.0.0"), ("Keep it", "abc:p.0.0")]]
    assert source.letters == "ab"
    shown = await press(source, "xb.0.0")
    assert shown.text.startswith("Deleted.\n\nAbove.")
    assert source.letters == "a"
    assert buttons(shown)[0] == [("Keep recalling that message", "abc:xk1.0.0")]


async def test_an_entry_that_is_gone_shows_the_list_instead_of_a_question() -> None:
    assert (await press(Letters("ab"), "az.0.0")).text.startswith("Above.")


@pytest.mark.parametrize("data", ["ab.0.0", "xb.0.0"])
async def test_only_a_person_who_may_act_gets_past_the_check(data: str) -> None:
    source = Letters("ab")
    with pytest.raises(NotConfirmed, match="not_yours"):
        await press(source, data, Sender(8, "Ben"))
    assert source.letters == "ab"


@pytest.mark.parametrize("data", ["", "p", "p.0", "p.x.0", "p.0.x", "q.0.0", "p.0.0.0", "p.0.5"])
async def test_callback_data_of_another_topic_or_not_of_the_bot_is_refused(data: str) -> None:
    with pytest.raises(NotConfirmed, match="unknown"):
        await press(Letters("ab"), data)


async def test_an_entry_has_no_button_for_an_action_that_it_lacks() -> None:
    class Partly(Letters):
        async def content(self, language: str, conversation: Scope, by: int) -> ListContent:
            content = await super().content(language, conversation, by)
            first, *others = content.entries
            return replace(content, entries=[replace(first, without="r"), *others])

    part = await show(Partly("ab", "r", "d"))
    assert [[button.text for button in row] for row in part.buttons] == [
        ["Delete 1"],
        ["Pin 2", "Delete 2"],
    ]


async def test_entries_of_one_group_stand_together_below_its_title() -> None:
    class Grouped(Letters):
        async def content(self, language: str, conversation: Scope, by: int) -> ListContent:
            content = await super().content(language, conversation, by)
            groups = ["memory.new"] * 9 + ["memory.other"] * 3
            grouped = zip(content.entries, groups, strict=True)
            entries = [replace(each, group=group) for each, group in grouped]
            return replace(content, entries=entries, on_first=10)

    first = await show(source := Grouped("abcdefghijkl"))
    second = (await press(source, "p.1.0")).text.splitlines()
    title = "What I know. ✎ changes or deletes an entry. (page 1 of 2)"
    new, other = "New since the last look (9)", "Summaries and files"
    lines = [f"• {number} {letter} (today)" for number, letter in enumerate("abcdefghijkl", 1)]
    text = "\n".join(("Above.", "", title, "", new, *lines[:9], "", other, lines[9], "", "Below."))
    assert (first.text, buttons(first)[-1]) == (text, [("More (2)", "abc:p.1.0")])
    assert second[2:] == [other, *lines[10:], "", "Below."]
