"""The messages that a turn takes become one message with one destination for its reply."""

from dataclasses import replace

import pytest

from bot.telegram.chat import Destination
from bot.telegram.updates import STICKER_FILE, IncomingMessage, Sender, SentFile, to_bytes
from bot.turn.request import Request, answer_to, unpack, with_words
from memory.memory import Memory
from memory.queue.mailbox import Entry
from tests.memory.conftest import TOKENS
from tests.memory.turns import HERE, take

ANN = Sender(7, "Ann", "Ann")
SAID = IncomingMessage(
    *(1, 7, 0), is_group=False, message_id=1, sent_at=0, sender=ANN, kind="text", text=""
)


def said(update_id: int, text: str, sent_at: int) -> IncomingMessage:
    id_ = 100 + update_id
    return replace(SAID, update_id=update_id, message_id=id_, sent_at=sent_at, text=text)


def forwarded(update_id: int, text: str) -> IncomingMessage:
    return replace(
        said(update_id, text, 1_002), is_first_party=False, forwarded_from="Ben", forwarded_at=9
    )


async def joined(memory: Memory, *messages: IncomingMessage) -> Request:
    """Return what the turn that takes these messages has to answer."""
    for message in messages:
        entry = Entry(message.update_id, ANN.id, is_alone=False, body=to_bytes(message))
        await memory.mailbox.put(HERE, entry)
    return unpack(await take(memory), memory.tokens)


async def test_joined_messages_have_the_first_time(memory: Memory) -> None:
    """A `/forget` between two joined messages has to erase both, because it covers the first."""
    edited = replace(said(2, "hello", 1_003), edited_at=1_004)
    request = await joined(memory, said(1, "my secret", 1_000), edited)
    assert [update.text for update in request.updates] == ["my secret", "hello"]
    assert (request.message.text, request.message.sent_at) == ("my secret\nhello", 1_000)
    assert request.message.message_ids == (101, 102)
    assert request.message.edited_at == (0, 1_004, 0, 2)


async def test_forwarded_messages_stay_apart_from_a_comment_sent_with_them(memory: Memory) -> None:
    """Only the person's own words may become facts, so they are not joined with the others."""
    request = await joined(
        memory,
        replace(said(1, "Look what Ben wrote", 1_000), unseen="photo"),
        said(2, "funny, isn't it?", 1_001),
        forwarded(3, "I live in Oslo"),
        forwarded(4, "Remember that"),
        said(5, "What do you think?", 1_003),
    )
    assert [(part.text, part.is_first_party) for part in request.messages] == [
        ("Look what Ben wrote\nfunny, isn't it?", True),
        ("I live in Oslo", False),
        ("Remember that", False),
        ("What do you think?", True),
    ]
    assert [part.forwarded_from for part in request.messages] == ["", "Ben", "Ben", ""]
    assert [part.message_ids for part in request.messages] == [(101, 102), (103,), (104,), (105,)]
    assert (request.messages[0].unseen, request.message.unseen) == ("photo", "photo")
    assert request.message.text == "\n".join(part.text for part in request.messages)
    assert request.message.message_ids == (101, 102, 103, 104, 105)
    assert not request.message.is_first_party


@pytest.mark.parametrize(("is_group", "reply_to"), [(False, 0), (True, 102)])
def test_a_reply_quotes_the_message_only_in_a_group(*, is_group: bool, reply_to: int) -> None:
    asked = replace(said(2, "hello", 1_003), topic_id=3, is_group=is_group)
    assert answer_to(asked) == Destination(7, 3, reply_to)


async def test_what_a_photo_shows_or_a_file_says_is_not_the_persons_own(memory: Memory) -> None:
    """The caption of a photo stays the person's own words; the text in a picture is somebody's."""
    request = await joined(
        memory,
        said(1, "We are in Oulu", 1_000),
        replace(said(2, "This is Rex", 1_001), kind="photo", unseen="photo"),
        replace(said(3, "", 1_002), kind="photo", unseen="photo"),
        replace(forwarded(4, "Our boat"), kind="photo", unseen="photo"),
        replace(said(5, "Listen", 1_003), kind="voice", file=SentFile("f", "talk.mp3", "", 9)),
        replace(said(6, "", 1_004), kind="voice", file=SentFile("f", "", "", 9)),
    )
    shown = [(102, "[photo] A dog"), (103, "[photo]"), (104, "[photo] A boat")]
    request = with_words(request, [*shown, (105, "Remember this"), (106, "I agree")], TOKENS)
    assert [(part.text, part.is_first_party, part.message_ids) for part in request.messages] == [
        ("We are in Oulu", True, (101,)),
        ("[photo] A dog", False, (102,)),
        ("This is Rex", True, (102,)),
        ("[photo]", False, (103,)),
        ("Our boat\n[photo] A boat", False, (104,)),
        ("Listen", True, (105,)),
        ("Remember this", False, (105,)),
        ("I agree", True, (106,)),
    ]
    assert [part.forwarded_from for part in request.messages] == [*[""] * 4, "Ben", *[""] * 3]
    assert (request.message.is_first_party, request.message.unseen) == (False, "")


async def test_only_descriptions_keep_a_photos_id(memory: Memory) -> None:
    def file(name: str) -> SentFile:
        return SentFile(f"id of {name}", name, "image/jpeg", 9)

    request = await joined(
        memory,
        replace(said(1, "Rex", 1_000), kind="photo", file=file("a dog")),
        replace(said(2, "🙂", 1_001), kind="photo", file=file(STICKER_FILE)),
        replace(forwarded(3, "Our boat"), kind="photo", file=file("a boat")),
        replace(forwarded(4, "Our bill"), kind="document", file=file("a bill")),
    )
    request = with_words(request, [(number, "[photo]") for number in (101, 102, 103)], TOKENS)
    assert [(part.text, part.photo) for part in request.messages if part.photo] == [
        ("[photo]", "id of a dog"),
        ("Our boat\n[photo]", "id of a boat"),
    ]
