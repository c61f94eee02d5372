"""Parts are stored and read back unchanged."""

from hypothesis import given
from hypothesis import strategies as st

from bot.reply.parts import Button, Entity, OutgoingFile, Part, Quote, from_json, to_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PARTS = st.lists(
    st.builds(
        Part,
        TEXT,
        st.lists(
            st.builds(Entity, TEXT, st.integers(0, 4096), st.integers(1, 4096), TEXT, TEXT)
        ).map(tuple),
        st.lists(st.lists(st.builds(Button, TEXT, TEXT)).map(tuple)).map(tuple),
        TEXT,
        st.none() | st.builds(OutgoingFile, TEXT, TEXT.map(str.encode)),
        quote=st.none() | st.builds(Quote, st.integers(1, 2**53), TEXT),
    )
)


@given(PARTS)
def test_parts_are_read_as_they_were_stored(parts: list[Part]) -> None:
    stored = to_json(parts)

    assert from_json(stored) == tuple(parts)
    assert from_json(stored.encode()) == tuple(parts)


def test_stored_parts_are_compact() -> None:
    part = Part("hello", (Entity("bold", 0, 5),), ((Button("Keep", "keep:1"),),))

    assert to_json([part]) == '[["hello",[["bold",0,5,"",""]],[[["Keep","keep:1"]]]]]'


def test_parts_of_an_older_version_are_read() -> None:
    stored = '[["hello",[],[]],["take it",[],[],"c:7:0"]]'

    assert from_json(stored) == (Part("hello"), Part("take it", export_of="c:7:0"))
