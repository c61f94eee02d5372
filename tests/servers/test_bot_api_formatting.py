"""Rules for every text and file, not only for examples."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.playground.bot_api.api_errors import BadRequestError
from bot.playground.bot_api.parameters import read_parameters
from bot.playground.bot_api.people import find_entities, utf16_length
from bot.playground.bot_api.values import FormattedText
from bot.playground.bot_api.values import MessageEntity as Entity
from bot.playground.bot_api.values import UploadedFile as Upload
from tests.servers.bot_api.formatting import entity_text, read_text
from tests.servers.bot_api.parameters import Parameters

TEXTS = st.text(st.sampled_from("ab \n🙂ü"), min_size=1, max_size=12)


def read(text: str, *entities: tuple[int, int]) -> FormattedText:
    bold = [{"type": "bold", "offset": offset, "length": length} for offset, length in entities]
    values = {"text": text, "entities": json.dumps(bold)}
    return read_text(Parameters(values), {}, may_be_empty=True)


@given(TEXTS, st.integers(0, 12), st.integers(1, 12))
def test_an_entity_is_accepted_exactly_when_it_covers_whole_characters(
    text: str, offset: int, length: int
) -> None:
    spans = {
        (utf16_length(text[:start]), utf16_length(text[start:end]))
        for start in range(len(text))
        for end in range(start + 1, len(text) + 1)
    }
    if (offset, length) in spans:
        read(text, (offset, length))
    else:
        with pytest.raises(BadRequestError):
            read(text, (offset, length))


@given(TEXTS, st.data())
def test_cutting_whitespace_off_leaves_entities_on_the_same_text(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    covered = text[start:end]

    result = read(text, (utf16_length(text[:start]), utf16_length(covered)))

    assert result.text == result.text.rstrip(" \n")
    assert text.rstrip(" \n").endswith(result.text)
    left = [entity_text(result.text, entity) for entity in result.entities]
    kept = covered if end <= len(text.rstrip(" \n")) else covered.rstrip(" \n")
    assert left == ([kept] if kept else [])


@given(st.text(st.sampled_from("a@_/ 🙂\ud83d"), max_size=20))
def test_every_found_entity_is_a_mention_or_a_command(text: str) -> None:
    for entity in find_entities(text):
        sign = "@" if entity.type == "mention" else "/"
        assert entity_text(text, entity).startswith(sign)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/start", [Entity("bot_command", 0, 6)]),
        ("(/start)", [Entity("bot_command", 1, 6)]),
        ("/a/b", []),
        ("1/2", []),
        ("@abc", []),
        ("@abcd!", [Entity("mention", 0, 5)]),
        ("me@home.example", []),
    ],
)
def test_only_mentions_and_commands_of_telegram_are_found(text: str, found: list[Entity]) -> None:
    assert list(find_entities(text)) == found


@given(st.binary(max_size=64), st.sampled_from([b"", b"\r", b"\n", b"\r\n", b"\x00\xff"]))
def test_an_uploaded_file_keeps_every_byte(head: bytes, ending: bytes) -> None:
    content = head + b"\r\n" * 5000 + ending  # longer than what the parser reads at once
    disposition = b'Content-Disposition: form-data; name="document"; filename="a.bin"'
    kind = b"Content-Type: application/octet-stream"
    part = b"\r\n".join([b"--cut", disposition, kind, b"", content])

    body = part + b"\r\n--cut--\r\n"

    parameters = read_parameters("", "multipart/form-data; boundary=cut", body)

    assert parameters.upload("document") == Upload(content, "a.bin", "application/octet-stream")
