"""Parts are stored unchanged, and their entities and UTF-16 units are as Telegram takes them."""

from hypothesis import given
from hypothesis import strategies as st

from bot.reply.parts import (
    Button,
    Entity,
    Part,
    Quote,
    from_json,
    to_json,
    utf16_slice,
    well_formed,
)
from bot.reply.render import valid_entities
from bot.telegram.chat import Destination
from bot.turn.outbox import Outbox
from memory.behaviors.tool_output import OutgoingFile
from tests.bot.reply.telegram_rules import faults
from tests.bot.telegram.raw import utf16

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PARTS = st.lists(
    st.builds(
        Part,
        TEXT,
        st.lists(
            st.builds(Entity, TEXT, st.integers(0, 4096), st.integers(1, 4096), TEXT, TEXT),
            max_size=3,
        ).map(tuple),
        st.lists(st.lists(st.builds(Button, TEXT, TEXT), max_size=2).map(tuple), max_size=2).map(
            tuple
        ),
        TEXT,
        st.none()
        | st.builds(OutgoingFile, TEXT, TEXT.map(str.encode))
        | st.builds(
            OutgoingFile, TEXT, st.binary(), TEXT, st.sampled_from(["document", "photo", "voice"])
        ),
        quote=st.none() | st.builds(Quote, st.integers(1, 2**53), TEXT),
        instead=TEXT,
        is_silent=st.booleans(),
    ),
    max_size=3,
)


@given(PARTS)
def test_parts_are_read_as_they_were_stored(parts: list[Part]) -> None:
    outbox = Outbox(Destination(7), tuple(parts), said="hello")
    assert Outbox.from_bytes(outbox.to_bytes()) == outbox


def test_stored_parts_are_compact() -> None:
    part = Part("hello", (Entity("bold", 0, 5),), ((Button("Keep", "keep:1"),),))
    assert to_json([part]) == '[["hello",[["bold",0,5,"",""]],[[["Keep","keep:1"]]]]]'


def test_parts_of_an_older_version_are_read() -> None:
    stored = '[["hello",[],[]],["take it",[],[],"c:7:0"]]'
    assert from_json(stored) == (Part("hello"), Part("take it", export_of="c:7:0"))


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


def test_code_wins_over_styles_a_link_over_code_and_crossing_styles_are_cut_to_nest() -> None:
    bold, code = Entity("bold", 0, 10), Entity("code", 4, 2)
    assert valid_entities([code, bold]) == (Entity("bold", 0, 4), code, Entity("bold", 6, 4))
    assert valid_entities([Entity("bold", 4, 2), code]) == (code,)
    link = Entity("text_link", 4, 2, url="https://a.example")
    assert valid_entities([code, link]) == (link,)
    crossing = [Entity("spoiler", 0, 5), Entity("bold", 3, 5)]
    assert valid_entities(crossing) == (Entity("spoiler", 0, 5), Entity("bold", 3, 2))
    assert valid_entities([Entity("underline", 0, 3), Entity("custom_emoji", 0, 2)]) == ()


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
