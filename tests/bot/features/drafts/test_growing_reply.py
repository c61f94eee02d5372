"""What a draft shows is a beginning of the finished reply, and looks as if rendered as a whole."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.features.drafts.growing_reply import GrowingReply, settled
from bot.reply.parts import Part
from bot.reply.render import render
from memory.text.sentences import character_start

_INLINE = (
    *("Hello", "wait!", "2 * 3 = 6", "snake_case", "costs $5 or $6", "[not a link]", "a * b"),
    *("👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽 yes", "नमस्ते", "e\u0301te\u0301", "سلام دنیا", "你好世界。" * 9),
    *("**bold words**", "*soft words*", "~~gone now~~", "||secret words||", "`x = 1`"),
    *("[the docs](https://example.com/a_(b))", "https://example.com/x?y=1", "$x^2 + y$"),
    *("**bold with `code` in it**", r"\(a^2 + b^2\)", "``a ` b``"),
)
_BLOCKS = (
    "# A heading with **bold**",
    "- first **item**\n- second item\n  - nested item",
    "1. one\n2. two",
    "> quoted *words*\n> and more",
    "```python\nprint('**no**')\n\nx = [1](2)\n```",
    "~~~\ncode\n~~~",
    "| a | b |\n|---|---|\n| 1 | 2222 |",
    "---",
)
paragraphs = st.lists(st.sampled_from(_INLINE), min_size=1, max_size=6).map(" ".join)
replies = st.lists(paragraphs | st.sampled_from(_BLOCKS), min_size=1, max_size=5).map("\n\n".join)


def shown(markdown: str) -> str:
    parts = render(settled(markdown))
    return parts[0].text if parts else ""


@given(replies)
def test_each_frame_of_a_growing_reply_is_a_whole_and_longer_beginning_of_it(reply: str) -> None:
    finished, before = "".join(part.text for part in render(reply)), ""
    for end in range(len(reply) + 1):
        frame = shown(reply[:end])
        assert finished.startswith(frame)
        assert frame.startswith(before)
        assert character_start(finished, len(frame)) == len(frame)
        before = frame


@pytest.mark.parametrize(
    ("unfinished", "expected"),
    [
        ("Look at th", "Look at"),
        ("See [the docs](https://exa", "See"),
        ('See [the docs](https://example.com "a', "See"),
        ("It is **very imp", "It is"),
        ("Run `git com", "Run"),
        ("So:\n\n```python\nx = 1\ny =", "So:\n\n```python\nx = 1"),
        ("So:\n\n```pyth", "So:"),
        ("So:\n\n| a | b |\n|---|---|\n| 1 ", "So:"),
        ("Family: 👩‍👩‍", "Family:"),
        ("It costs $5 and 2 * 3 is six, ", "It costs $5 and 2 * 3 is six,"),
    ],
)
def test_nothing_is_cut_in_two(unfinished: str, expected: str) -> None:
    assert settled(unfinished) == expected


def test_a_mark_that_stays_open_does_not_hold_the_draft_up_for_long() -> None:
    assert settled("A **lonely mark " + "and words " * 40).endswith("and words")


def whole(source: str) -> Part:
    return next(iter(render(source)), Part(""))


@given(replies)
def test_each_frame_is_as_if_it_were_rendered_as_a_whole(reply: str) -> None:
    async def grow() -> None:
        growing, longest = GrowingReply(), ""
        for end in range(0, len(reply) + 1, 13):
            longest = max(longest, settled(reply[:end]), key=len)
            assert await growing.frame(reply[:end]) == whole(longest)

    asyncio.run(grow())


async def test_another_text_is_shown_once_it_is_longer() -> None:
    growing = GrowingReply()
    first = await growing.frame("One **word**.\n\nTwo words, and a third.\n\nFour ")
    assert await growing.frame("Another beginning ") == first
    other = "Another beginning.\n\nThen *more* of it, and still more, and more still, "
    assert await growing.frame(other) == whole(settled(other))


async def test_a_long_reply_without_paragraphs_is_rendered_as_well() -> None:
    text = "**Words** and words. " * 160
    assert await GrowingReply().frame(text) == whole(settled(text))
