"""Content without text is read as words: stickers, places, polls, dice, rich messages."""

from typing import Any

import pytest

from bot.telegram.message_content import plain_text
from tests.bot.telegram.raw import GROUP, STICKER, US, VIDEO, ignored, inbound, message, said

PLACE = {"longitude": 13.4, "latitude": 52.52}
VENUE = {"location": PLACE, "title": "Café Sol", "address": "Hauptstr. 1"}
DAYS = ("Friday", "Sunday")
POLL = {
    "id": "p",
    "question": "When do we sail?",
    "options": [{"persistent_id": day, "text": day, "voter_count": 0} for day in DAYS],
    "type": "regular",
    **dict.fromkeys(("total_voter_count", "is_closed", "is_anonymous"), 0),
    **dict.fromkeys(("allows_multiple_answers", "allows_revoting", "members_only"), 0),
}
SPELLED: dict[str, dict[str, Any]] = {
    "🙂": {"sticker": STICKER | {"emoji": "🙂"}},
    "📍 52.5200, 13.4000": {"location": PLACE},
    "📍 52.5200, 13.4000 (±30 m)": {"location": PLACE | {"horizontal_accuracy": 30.4}},
    "📍 Café Sol, Hauptstr. 1 (52.5200, 13.4000)": {"venue": VENUE, "location": PLACE},
    "📊 When do we sail?\n- Friday\n- Sunday": {"poll": POLL},
    "🎲 4": {"dice": {"emoji": "🎲", "value": 4}},
}


@pytest.mark.parametrize(("words", "fields"), SPELLED.items(), ids=list(SPELLED))
def test_content_without_text_is_read_as_words(words: str, fields: dict[str, Any]) -> None:
    update = inbound(message(**fields))
    assert (update.kind, update.text, update.unseen) == ("text", words, "")
    assert ignored(message(chat=GROUP, **fields)) == "unaddressed"
    assert inbound(message(chat=GROUP, reply_to_message=said("?", US), **fields)).text == words


@pytest.mark.parametrize("kind", ["video", "animation"])
def test_a_caption_says_what_came_with_it(kind: str) -> None:
    update = inbound(message(**{kind: VIDEO, "caption": "Our boat", "caption_entities": []}))
    assert (update.kind, update.text, update.unseen) == ("text", "Our boat", kind)


def rich(*blocks: object) -> dict[str, Any]:
    return {"rich_message": {"blocks": list(blocks)}}


def test_a_rich_message_is_read_as_plain_words() -> None:
    bold = ["The ", {"type": "bold", "text": {"type": "italic", "text": "Aurora"}}, " sails"]
    first, second = ([{"type": "paragraph", "text": text}] for text in ("Pack", "Go"))
    content = rich(
        {"type": "heading", "text": "Plan", "size": 1},
        {"type": "paragraph", "text": bold},
        {"type": "list", "items": [{"label": "1.", "blocks": first}, {"blocks": second}]},
        {"type": "table", "cells": [[{"text": "a"}, {"text": "b"}], [{"text": "c"}]]},
        {"type": "details", "summary": "More", "blocks": [{"type": "pre", "text": "x=1"}]},
        {"type": "mathematical_expression", "expression": "e=mc^2"},
        {"type": "photo", "photo": [], "caption": {"text": "Our boat", "credit": "Ben"}},
        {"type": "divider"},
    )
    update = inbound(message(**content))
    assert update.kind == "text"
    assert update.text == (
        "Plan\nThe Aurora sails\n1. Pack\n- Go\na | b\nc\nMore\nx=1\ne=mc^2\nOur boat"
    )


def test_a_rich_message_in_a_group_is_for_us_if_it_names_us() -> None:
    assert ignored(message(chat=GROUP, **rich({"text": "Look"}))) == "unaddressed"
    assert inbound(message(chat=GROUP, **rich({"text": "Look, @Ricordo_bot"}))).text


def nested(depth: int) -> object:
    node: object = {"text": "deep"}
    for _ in range(depth):
        node = {"blocks": [node]}
    return node


@pytest.mark.parametrize(
    ("blocks", "most"),
    [
        ([{"text": "x" * 50_000}], 32_768),
        ([{"text": ["x" * 1_000] * 100}], 32_768),
        ([{"text": "x"}] * 5_000, 2 * 500),
        ([{"cells": [[{"text": "x"}]] * 5_000}], 2 * 500),
        ([{"items": [{"text": "x"}] * 5_000}], 4 * 500),
        ([nested(15)], 4),
        ([nested(16)], 0),
        ([nested(800)], 0),
    ],
)
def test_no_more_of_a_rich_message_is_read_than_allowed(blocks: list[object], most: int) -> None:
    assert most // 2 <= len(plain_text({"blocks": blocks})) <= most


@pytest.mark.parametrize("odd", [None, "x", 1, [], {}, {"blocks": {}}, {"blocks": [None, 1, [2]]}])
def test_a_rich_message_that_is_not_as_described_has_no_words(odd: object) -> None:
    assert plain_text(odd) == ""


def test_deeply_nested_format_does_not_break_the_reading() -> None:
    text: object = "x"
    for _ in range(900):
        text = [text]
    assert plain_text({"blocks": [{"text": text}, {"text": "y"}]}) == "y"
