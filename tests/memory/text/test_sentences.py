"""A cut never falls inside what a reader sees as one character."""

import pytest

from memory.text.sentences import character_start

FAMILY = "👨\u200d👩\u200d👧\u200d👦"


@pytest.mark.parametrize(
    "character", [FAMILY, "🇩🇪", "👍🏽", "e\u0301", "क\u094d\u0937", "❤\ufe0f", "x", "я", "סּ"]
)
def test_every_position_in_a_character_leads_to_its_start(character: str) -> None:
    text = f"a{character}{character}b"
    for first in (1, 1 + len(character)):
        inside = range(first, first + len(character))
        assert {character_start(text, at) for at in inside} == {first}


def test_a_character_begins_at_the_start_and_at_the_end() -> None:
    assert character_start("e\u0301", 2) == 2
    assert character_start("🇩🇪🇫🇷", 2, start=1) == 1


def test_a_character_of_too_many_marks_is_cut() -> None:
    assert character_start("e" + "\u0301" * 100, 90) == 90
