"""A reply that is rendered piece by piece looks as if it were rendered as a whole."""

import asyncio

from hypothesis import given

from bot.features.drafts.growing_reply import GrowingReply, settled
from bot.reply.parts import Part
from bot.reply.render import render
from tests.bot.features.drafts.test_stable_prefix import replies


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
