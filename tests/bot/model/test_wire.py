"""A body is cut into the same events, however the network has cut it into pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.wire import EventReader

BODY = (
    b': hello\n\ndata: {"a":\ndata: 1}\r\n\r\nevent: ping\n\nid: 7\ndata:two\r\r'
    b"data: [DONE]\n\ndata: no\n\n"
)
EVENTS = [b'{"a":\n1}', b"two"]


def read(*pieces: bytes) -> tuple[list[bytes], bool]:
    reader = EventReader(10_000)
    return [event for piece in pieces for event in reader.feed(piece)], reader.is_done


@given(st.lists(st.integers(0, len(BODY))))
def test_the_events_do_not_depend_on_how_a_body_is_cut_into_pieces(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(BODY)]
    pieces = [BODY[start:end] for start, end in pairwise(bounds)]
    assert read(*pieces) == (EVENTS, True)


@pytest.mark.parametrize("body", [b"", b"data: x", b"data: x\n", b"\n\n", b"retry: 3\n\n"])
def test_an_incomplete_event_is_not_yielded(body: bytes) -> None:
    assert read(body) == ([], False)


def test_text_beyond_ascii_stays_in_one_event() -> None:
    """Unicode has more line ends than a stream of events."""
    said = 'data: {"x": "\u2028\u0085"}\n\n'.encode()
    assert read(said) == ([said[6:-2]], False)
