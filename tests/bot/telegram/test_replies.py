"""What a message replies to, and where a forwarded message comes from."""

from dataclasses import replace
from typing import Any

import pytest

from bot.telegram.updates import ReplyTarget, SentFile, from_bytes, to_bytes
from tests.bot.telegram.raw import ANNA, GROUP, OTHER_BOT, PHOTO, US, inbound, message, said

BEN = {"id": 8, "is_bot": False, "first_name": "Ben"}
THEN = 1_600_000_000
CHANNEL = {"id": -1009, "type": "channel", "title": "News"}
OURS = {
    "text": "@Ricordo_bot and this?",
    "entities": [{"type": "mention", "offset": 0, "length": 12}],
}

ORIGINS: dict[str, dict[str, Any]] = {
    "Ben": {"type": "user", "sender_user": BEN},
    "Hidden": {"type": "hidden_user", "sender_user_name": "Hid\u200bden"},
    "Family (boss)": {"type": "chat", "sender_chat": GROUP, "author_signature": "boss"},
    "News": {"type": "channel", "chat": CHANNEL, "message_id": 3},
    "somebody": {"type": "hidden_user", "sender_user_name": "\u200b"},
}


@pytest.mark.parametrize(("name", "origin"), ORIGINS.items(), ids=list(ORIGINS))
def test_a_forwarded_message_keeps_origin_and_date(name: str, origin: dict[str, Any]) -> None:
    update = inbound(message("I live in Oslo", forward_origin=origin | {"date": THEN}))
    assert (update.forwarded_from, update.forwarded_at) == (name, THEN)
    assert not update.is_first_party
    assert from_bytes(to_bytes(update)) == update


@pytest.mark.parametrize(
    ("author", "ours", "own", "name"),
    [(US, True, False, "Ricordo"), (ANNA, False, True, "Anna K."), (BEN, False, False, "Ben")],
)
def test_a_reply_names_author_date_and_text(
    author: dict[str, Any], *, ours: bool, own: bool, name: str
) -> None:
    update = inbound(message(**OURS, chat=GROUP, reply_to_message=said("It is blue", author)))
    assert update.reply == ReplyTarget(
        10, name, 1_699_999_999, "It is blue", author_id=author["id"], is_ours=ours, is_own=own
    )
    assert from_bytes(to_bytes(update)) == update


def test_only_a_quote_that_the_person_marked_counts() -> None:
    quote = {"text": "blue", "position": 6}
    for is_manual in (True, False):
        update = inbound(
            message(
                "Why?",
                reply_to_message=said("It is blue", US),
                quote=quote | {"is_manual": is_manual},
            )
        )
        assert update.reply
        assert update.reply.quote == ("blue" if is_manual else "")


def test_of_a_message_in_another_chat_only_the_quote_is_known() -> None:
    origin = {"type": "user", "sender_user": BEN, "date": THEN}
    quote = {"text": "It is blue", "position": 0, "is_manual": True}
    elsewhere = {"origin": origin, "photo": PHOTO}
    update = inbound(message("Why?", external_reply=elsewhere, quote=quote))
    assert update.reply == ReplyTarget(0, "Ben", THEN, "It is blue", "It is blue", "photo")
    update = inbound(message("Why?", external_reply={"origin": origin}))
    assert update.reply == ReplyTarget(0, "Ben", THEN, "")


def test_what_others_wrote_is_never_read_as_the_persons_own_words() -> None:
    forwarded = {"type": "user", "sender_user": BEN, "date": THEN}
    for author in (ANNA, US):
        reply = said("I live in Oslo", author, forward_origin=forwarded)
        target = inbound(message("And?", reply_to_message=reply)).reply
        assert target == ReplyTarget(10, "Ben", THEN, "I live in Oslo")
    via_bot = said("I live in Oslo", ANNA, via_bot=OTHER_BOT)
    target = inbound(message("And?", reply_to_message=via_bot)).reply
    assert target
    assert not target.is_own


def test_a_photo_that_is_replied_to_is_named_and_its_caption_read() -> None:
    photo = {"photo": PHOTO, "caption": "Our boat"}
    update = inbound(message("Nice?", reply_to_message=said("", BEN) | photo | {"text": None}))
    assert update.reply
    assert (update.reply.text, update.reply.unseen) == ("[photo]\nOur boat", "photo")
    photo_above = [("photo", 10, SentFile("f", "", "", 0))]
    assert [(m.kind, m.message_id, m.file) for m in update.media] == photo_above
    sound = replace(update, kind="voice", file=SentFile("v", "", "audio/ogg", 9))
    assert [m.kind for m in sound.media] == ["voice", "photo"]


def test_the_notice_that_opened_a_topic_is_not_replied_to() -> None:
    topic = said("", BEN, forum_topic_created={"name": "Boats", "icon_color": 1})
    update = inbound(message(**OURS, chat=GROUP, reply_to_message=topic))
    assert (update.reply, update.replied_to) == (None, 0)


def test_commands_leave_no_text_of_others_behind() -> None:
    reply = said("It is blue", BEN)
    assert inbound(message("/forget", reply_to_message=reply)).reply is None
    assert inbound(message("/forget", reply_to_message=reply)).replied_to == 10


def test_a_very_long_message_is_cut() -> None:
    target = inbound(message("Why?", reply_to_message=said("x" * 9_000, BEN))).reply
    assert target
    assert len(target.text) == 4_096
