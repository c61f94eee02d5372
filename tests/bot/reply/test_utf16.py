"""Text is counted and cut in UTF-16 units."""

from hypothesis import given
from hypothesis import strategies as st

from bot.reply.parts import utf16_slice, well_formed
from tests.bot.telegram.raw import utf16


@given(st.text(st.characters() | st.characters(categories=["Cs"])))
def test_well_formed_text_can_be_encoded_and_keeps_its_length_in_units(text: str) -> None:
    clean = well_formed(text)
    assert clean.encode().decode() == clean
    assert utf16(clean) == utf16(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_without_lone_surrogates_is_not_changed(text: str) -> None:
    assert well_formed(text) == text


@given(*[st.text(st.characters(exclude_categories=["Cs"]))] * 3)
def test_a_slice_by_units_returns_the_text_there(before: str, middle: str, after: str) -> None:
    text = before + middle + after
    start, end = utf16(before), utf16(before + middle)
    assert utf16_slice(text, start, end) == middle
    assert utf16_slice(text, end) == after
