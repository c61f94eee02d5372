"""A reply of any length becomes a bounded number of parts in bounded time."""

import pytest
from structlog.testing import capture_logs

from bot.reply.parts import Part
from bot.reply.render import MAX_CHARS, MAX_PARTS, plain, render, reply_parts
from tests.bot.reply.telegram_rules import faults

PARAGRAPH = "A **bold** word and some more of them. " * 40


async def test_a_reply_of_usual_length_is_shown_whole() -> None:
    for markdown in ("*Hi*", f"{PARAGRAPH}\n\n" * 8):
        assert await reply_parts(markdown) == (render(markdown), True)


async def test_a_long_reply_leaves_room_for_a_part_that_says_it_is_cut() -> None:
    parts, is_whole = await reply_parts(f"{PARAGRAPH}\n\n" * 200)

    assert not is_whole
    assert len(parts) == MAX_PARTS - 1
    assert [fault for part in parts for fault in faults(part)] == []


async def test_many_entities_do_not_exceed_the_number_of_parts() -> None:
    parts, is_whole = await reply_parts("*a* " * 2000)

    assert (len(parts), is_whole) == (MAX_PARTS - 1, False)


async def test_text_beyond_the_bound_is_not_read() -> None:
    parts, is_whole = await reply_parts("x" * MAX_CHARS + "*y*" * 1_000_000)

    assert (parts, is_whole) == ((*plain("x" * MAX_CHARS),)[: MAX_PARTS - 1], False)
    assert isinstance(parts[0], Part)


async def test_a_reply_that_takes_too_long_to_render_is_shown_as_plain_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.reply.render._MAX_RENDER_S", 0)
    markdown = f"{PARAGRAPH}\n\n" * 8
    with capture_logs() as log:
        parts, is_whole = await reply_parts(markdown)

    assert (parts, is_whole) == (plain(markdown), True)
    (warning,) = log
    assert (warning["log_level"], warning["chars"]) == ("warning", len(markdown))
    assert "bold" not in str(warning)
