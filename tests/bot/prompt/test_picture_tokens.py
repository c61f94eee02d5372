"""Pictures take their share of the prompt's tokens, and never all of it."""

import pytest

from bot.prompt.assemble import PromptAssembler, PromptBudget
from memory.message import ImageDetail, Picture
from tests.bot.prompt.test_assemble import context_of, last_user, message_of
from tests.memory.conftest import TOKENS


def picture(width: int, height: int, detail: ImageDetail = "low") -> Picture:
    return Picture(1, b"", "image/jpeg", width, height, detail)


@pytest.mark.parametrize(
    ("width", "height", "detail", "tokens"),
    [
        (10, 10, "low", 512),
        (1280, 853, "low", 512),
        (10, 10, "high", 512),
        (1280, 853, "high", 1750),
        (2000, 1000, "auto", 2489),
        (1, 2_000_000, "high", 2489),
    ],
)
def test_a_picture_is_estimated_by_its_size_and_detail(
    width: int, height: int, detail: ImageDetail, tokens: int
) -> None:
    assert picture(width, height, detail).tokens == tokens


def test_pictures_count_in_the_prompt_and_those_too_many_are_left_out() -> None:
    assembler = PromptAssembler(TOKENS, "You are a bot.", [], PromptBudget(4_000, 500))
    message = message_of("Look " * 5_000)
    album = (picture(10, 10),) * 10
    prompt = assembler.assemble(context_of(message, pictures=album))
    assert 1 <= len(prompt.messages[-1].pictures) < len(album)
    assert "[you can see 1 of 10 pictures]" in last_user(prompt)
    assert sum(prompt.sizes.values()) <= 3_500
    assert prompt.sizes["message"] > 512 * len(prompt.messages[-1].pictures)
    several = assembler.assemble(context_of(message_of("Look"), pictures=album))
    assert len(several.messages[-1].pictures) == 3  # a short text leaves more
    assert last_user(several) == "Look\n\n[you can see 3 of 10 pictures]"
    seen = assembler.assemble(context_of(message_of("Look"), pictures=album[:1]))
    assert (last_user(seen), len(seen.messages[-1].pictures)) == ("Look", 1)
    small = PromptAssembler(TOKENS, "You are a bot.", [], PromptBudget(900, 100))
    unseen = small.assemble(context_of(message_of("Look"), pictures=album[:1]))
    assert last_user(unseen) == "Look\n\n[you cannot see the picture]"
