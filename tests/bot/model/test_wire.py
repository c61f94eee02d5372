"""A body is cut into the same events, however the network has cut it into pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.wire import EventReader, is_blind

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


@pytest.mark.parametrize(
    "objection",
    [
        "Invalid content type. image_url is only supported by certain models.",
        "No endpoints found that support image input",
        "image input is not supported - hint: if this is unexpected, you may need the mmproj",
        "At most 0 image(s) may be provided in one prompt.",
        "gemma-2 is not a multimodal model",
        "this model is missing data required for image input",
        "messages[1]: unknown variant `image_url`, expected `text`",
        "This model does not support image inputs.",
        "This model doesn't support vision",
    ],
)
def test_a_model_without_eyes_is_known_by_what_its_server_says(objection: str) -> None:
    assert is_blind(objection)


@pytest.mark.parametrize(
    "objection",
    [
        "You uploaded an unsupported image. Please make sure your image has one of these formats",
        "Invalid image data.",
        "Image is too large: at most 20 MB are supported",
        "Failed to download the image",
        "Unsupported parameter: 'verbosity' is not supported with this model.",
        "Does this support group take images?",
    ],
)
def test_one_bad_picture_is_no_model_without_eyes(objection: str) -> None:
    assert not is_blind(objection)
