"""An edit changes the message that it is about, and of a joined text only its own part."""

from dataclasses import replace

import pytest

from bot.telegram.edits import edited_entry, is_about, with_edit, with_edits
from bot.telegram.updates import AlbumPart, IncomingMessage, Replaced, from_bytes, to_bytes
from memory.message import Message, joined
from tests.bot.telegram import raw

EDIT = replace(
    raw.inbound(raw.message("new words")), kind="edit", message_id=11, update_id=5, edited_at=60
)
WAITING = replace(EDIT, kind="text", text="old words", update_id=1, edited_at=0)
STORED = Message(3, 2, "user", "one\nold words\nthree", 1.0, 7, "Anna", (10, 11, 12), 1)
STORED = replace(STORED, lengths=(3, 9, 5))


def edited(waiting: IncomingMessage) -> IncomingMessage | None:
    body = edited_entry(EDIT, to_bytes(waiting))
    return from_bytes(body) if body else None


def test_a_waiting_message_gets_the_new_words_of_the_newest_edit() -> None:
    assert edited(WAITING) == replace(WAITING, text="new words", update_id=5, edited_at=60)
    newer = replace(WAITING, edited_at=61)
    assert edited(newer) == newer
    in_the_same_second = replace(WAITING, update_id=6, edited_at=60)
    assert edited(in_the_same_second) == in_the_same_second


@pytest.mark.parametrize(
    "other",
    [
        replace(WAITING, message_id=12),
        replace(WAITING, sender=replace(WAITING.sender, id=8)),
        replace(WAITING, kind="command", command="help"),
    ],
)
def test_other_messages_are_left_alone(other: IncomingMessage) -> None:
    assert edited(other) is None


def test_an_unreadable_entry_is_left_alone() -> None:
    assert edited_entry(EDIT, b"nonsense") is None
    assert not is_about(11, b"nonsense")


def test_the_edit_of_a_caption_that_does_not_address_us_may_be_about_an_album_that_does() -> None:
    photo = {"chat": raw.GROUP, "photo": raw.PHOTO, "caption": "new words", "edit_date": 60}
    sent = raw.message("", media_group_id="11", **photo)
    edit = raw.read({"update_id": 5, "edited_message": sent["message"]})
    assert isinstance(edit, AlbumPart)
    assert (edit.message.kind, edit.message.text, edit.message.album) == ("edit", "new words", "11")
    for group_id in ("", "a" * 5, "1" * 21):
        sent = raw.message("", media_group_id=group_id, **photo)
        assert raw.ignored(sent) == "unaddressed"


def test_a_question_that_is_answered_again_gets_new_words_too() -> None:
    asked = replace(WAITING, text="", message_id=12, replaced=Replaced((STORED,), (20,), (3, 4)))
    after = edited(asked)
    assert after
    assert after.replaced
    assert after.replaced.question[0].text == "one\nnew words\nthree"
    assert after.replaced.answer_ids == (20,)
    assert [is_about(id_, to_bytes(asked)) for id_ in (9, 10, 12)] == [False, True, True]


def test_a_waiting_task_is_about_the_message_that_asked_for_it() -> None:
    task = replace(WAITING, update_id=-3, message_id=-3, replied_to=10)
    assert [is_about(id_, to_bytes(task)) for id_ in (9, 10)] == [False, True]


def test_only_the_edited_part_of_a_joined_text_changes() -> None:
    after = with_edit(STORED, EDIT)
    assert (after.text, after.lengths) == ("one\nnew words\nthree", (3, 9, 5))
    assert after.edited_at == (0, 60, 0, 0, 5, 0)
    older = replace(EDIT, text="older", edited_at=59)
    assert with_edit(after, older) == after
    assert with_edit(after, replace(older, message_id=12)).text == "one\nnew words\nolder"
    silent = replace(STORED, text="one\nthree", lengths=(3, -1, 5))
    assert with_edit(silent, EDIT).text == "one\nnew words\nthree"
    assert with_edit(replace(STORED, lengths=()), EDIT).text == STORED.text
    assert with_edit(replace(STORED, message_ids=(11,), lengths=()), EDIT).text == "new words"


def test_joined_texts_know_their_lengths() -> None:
    assert joined(["a", None, "", "bc"]) == ("a\n\nbc", (1, -1, 0, 2))


def test_a_new_caption_does_not_replace_what_the_photo_shows() -> None:
    described = replace(STORED, text="[photo] A dog", is_first_party=False, photo="file id")
    shown = replace(described, message_ids=(11,))
    assert with_edit(shown, EDIT).text == "[photo] A dog\nnew words"
    assert with_edit(shown, replace(EDIT, text="")).text == shown.text
    caption = replace(shown, text="This is Rex", is_first_party=True, photo="")
    assert with_edit(caption, EDIT).text == "new words"
    asked = [replace(each, edited_at=()) for each in (shown, caption)]
    for question in (asked, asked[:1]):
        after = with_edits(question, EDIT)
        assert [(each.text, each.is_first_party) for each in after] == [
            ("[photo] A dog", False),
            ("new words", True),
        ]
    removed = replace(EDIT, text="")
    assert with_edits(asked, removed) == asked[:1]
    assert with_edits(asked[1:], removed) == asked[1:]
    heard = [asked[1], replace(asked[1], text="Hello", is_first_party=False)]
    assert [each.text for each in with_edits(heard, EDIT)] == ["This is Rex", "new words"]
    waiting = replace(WAITING, kind="photo")
    assert edited(waiting) == replace(waiting, text="new words", update_id=5, edited_at=60)


def test_of_two_edits_in_one_second_the_later_one_counts_in_whatever_order_they_come() -> None:
    earlier = replace(EDIT, update_id=4, text="earlier words")
    after = with_edit(with_edit(STORED, EDIT), earlier)
    assert after.text == "one\nnew words\nthree"
    assert with_edit(with_edit(STORED, earlier), EDIT) == after
    stored_before = replace(after, edited_at=after.edited_at[:3])  # by an older release
    assert with_edit(stored_before, EDIT) == after


def test_edits_of_two_messages_of_a_question_both_count_in_whatever_order_they_come() -> None:
    asked = replace(WAITING, message_id=12, replaced=Replaced((STORED,), (20,), (3, 4)))
    once = edited(replace(asked, edited_at=61, update_id=6))
    assert once
    assert (once.edited_at, once.update_id) == (61, 6)
    assert once.replaced
    assert once.replaced.question[0].text == "one\nnew words\nthree"


def test_a_caption_that_was_removed_is_an_edit_too() -> None:
    photo = {"photo": raw.PHOTO, "edit_date": 1_700_000_060}
    edit = raw.inbound({"update_id": 5, "edited_message": raw.message(**photo)["message"]})
    assert (edit.kind, edit.text) == ("edit", "")
    body = edited_entry(edit, to_bytes(replace(WAITING, kind="photo")))
    assert body
    assert from_bytes(body).text == ""
