"""Entities that overlap are cut until Telegram accepts them."""

from hypothesis import given
from hypothesis import strategies as st

from bot.reply.parts import Entity, Part
from bot.reply.render import valid_entities
from tests.bot.reply.telegram_rules import faults

ENTITIES = st.lists(
    st.builds(
        lambda type_, offset, length: Entity(
            type_, offset, length, url="https://a.example" if type_ == "text_link" else ""
        ),
        st.sampled_from(
            ["bold", "italic", "strikethrough", "spoiler", "code", "pre", "text_link", "blockquote"]
        ),
        st.integers(0, 30),
        st.integers(1, 20),
    ),
    max_size=8,
)


@given(ENTITIES.filter(lambda found: all(one.type != "blockquote" for one in found)))
def test_overlapping_entities_become_valid(found: list[Entity]) -> None:
    assert faults(Part("x" * 50, valid_entities(found))) == []


@given(ENTITIES)
def test_valid_entities_stay_as_they_are(found: list[Entity]) -> None:
    once = valid_entities(found)

    assert {*valid_entities(once)} == {*once}


def test_bold_around_code_is_split_into_two() -> None:
    bold, code = Entity("bold", 0, 10), Entity("code", 4, 2)

    assert valid_entities([code, bold]) == (Entity("bold", 0, 4), code, Entity("bold", 6, 4))


def test_bold_code_is_code() -> None:
    assert valid_entities([Entity("bold", 0, 3), Entity("code", 0, 3)]) == (Entity("code", 0, 3),)


def test_code_in_a_link_is_only_a_link() -> None:
    link = Entity("text_link", 0, 3, url="https://a.example")

    assert valid_entities([Entity("code", 0, 3), link]) == (link,)


def test_crossing_styles_are_cut_to_nest() -> None:
    crossing = [Entity("spoiler", 0, 5), Entity("bold", 3, 5)]

    assert valid_entities(crossing) == (Entity("spoiler", 0, 5), Entity("bold", 3, 2))


def test_types_without_a_markdown_sign_are_left_out() -> None:
    assert valid_entities([Entity("underline", 0, 3), Entity("custom_emoji", 0, 2)]) == ()
