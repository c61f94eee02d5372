"""What a person replies to is found in our log however old, else taken from the update."""

from dataclasses import replace

import pytest

from bot.features.pictures.feature import PictureStep
from bot.telegram.updates import ReplyTarget
from bot.turn.load import find_replied
from bot.turn.request import Request
from memory.memory import Memory, MemoryOptions
from memory.message import Message, Picture, RepliedTo
from memory.queue.turn_store import TurnTimes
from memory.scopes.history import ChatHistory
from memory.store.client import RedisClient
from tests.bot.features.pictures.test_seeing import Files
from tests.bot.features.services import SENTENCES
from tests.bot.parsing.test_pictures import drawn
from tests.bot.telegram import raw
from tests.memory.conftest import TOKENS, memory_of
from tests.memory.turns import ANN, BOB, HERE, begin, finish, read_by

THEN = 1_000
NOTHING: tuple[RepliedTo, ...] = ()


def reading_two(store: RedisClient) -> Memory:
    """Return the memory of a process that reads only the newest two messages with a turn."""
    options = MemoryOptions(ttl_s=86_400, tail=2, cache_bytes=10**6, times=TurnTimes(coalesce_ms=0))
    return memory_of(store, options=options)


@pytest.fixture
def memory(store: RedisClient) -> Memory:
    return reading_two(store)


async def say(memory: Memory, number: int, *said: Message) -> None:
    await finish(memory, await begin(memory, number), said)


def question(number: int, text: str, sender: int = ANN) -> Message:
    return Message(0, 0, "user", text, THEN, sender, "Ann", (10 * number,), 1)


def answer(number: int, text: str) -> Message:
    ids = (10 * number + 1, 10 * number + 2)
    return Message(0, 0, "assistant", text, THEN, message_ids=ids, tokens=1)


def request_of(*targets: ReplyTarget) -> Request:
    incoming = raw.inbound(raw.message("Why?"))
    updates = tuple(
        replace(incoming, message_id=900 + at, reply=target) for at, target in enumerate(targets)
    )
    ids = tuple(update.message_id for update in updates)
    message = Message(0, 0, "user", "Why?", THEN, ANN, "Ann", ids)
    return Request(updates, message, (message,))


def pointed(message_id: int, **fields: object) -> ReplyTarget:
    target = ReplyTarget(message_id, "Ben", THEN, "as Telegram shows it", author_id=BOB)
    return replace(target, **fields)  # type: ignore[arg-type]


async def history_of(memory: Memory) -> ChatHistory:
    turn = await begin(memory, 99)
    return await read_by(memory, turn)


@pytest.fixture
async def history(memory: Memory, store: RedisClient) -> ChatHistory:
    """Return the history of a new process, which has read only the tail of a long conversation."""
    await say(memory, 1, question(1, "What colour is Aurora?"), answer(1, "**Blue**"))
    await say(memory, 2, question(2, "What says Bob?", BOB), answer(2, "Nothing"))
    await say(memory, 3, replace(question(3, "[photo] [refused]"), is_refused=True))
    for number in range(4, 8):
        await say(memory, number, question(number, "Hello"), answer(number, "Hello Ann"))
    found = await history_of(reading_two(store))
    assert len(found.messages) == 2
    return found


async def test_any_part_finds_an_old_answer_and_its_question(history: ChatHistory) -> None:
    for message_id in (11, 12):
        request = request_of(pointed(message_id, is_ours=True, quote="Blue"))
        [reply] = await find_replied(request, history)
        assert (reply.message.text, reply.quote) == ("**Blue**", "Blue")
        assert reply.question
        assert reply.question.text == "What colour is Aurora?"
        assert reply.message.is_first_party


async def test_the_persons_own_old_message_is_found_without_answer(history: ChatHistory) -> None:
    [reply] = await find_replied(request_of(pointed(10)), history)
    assert (reply.message.text, reply.question) == ("What colour is Aurora?", None)
    assert reply.message.is_first_party
    [reply] = await find_replied(request_of(pointed(10, photo="f")), history)
    assert not reply.message.is_first_party  # it is the caption of a picture with text of others


async def test_what_another_person_said_is_untrusted(history: ChatHistory) -> None:
    [reply] = await find_replied(request_of(pointed(20)), history)
    assert (reply.message.text, reply.message.is_first_party) == ("What says Bob?", False)
    [reply] = await find_replied(request_of(pointed(21, is_ours=True)), history)
    assert reply.question
    assert (reply.message.is_first_party, reply.question.is_first_party) == (True, False)


async def test_the_log_is_read_once_at_most(history: ChatHistory, memory: Memory) -> None:
    await find_replied(request_of(pointed(10)), history)
    await memory.client.call("DEL", memory.keys.scope(HERE).log)
    [reply] = await find_replied(request_of(pointed(11)), history)
    assert reply.message.text == "**Blue**"


async def test_what_the_log_does_not_have_is_as_telegram_gave_it(history: ChatHistory) -> None:
    for target, role, is_trusted in (
        (pointed(555), "user", False),
        (pointed(555, is_own=True), "user", True),
        (pointed(555, is_own=True, text="📎 Ann owes Bob.txt"), "user", False),
        (pointed(555, is_own=True, text="[photo]\nAnn owes Bob"), "user", False),
        (pointed(555, is_ours=True), "assistant", False),
        (pointed(0, unseen="photo"), "user", False),
        # An old group counted its messages on its own, so an equal id may name another one.
        (pointed(10, sent_at=THEN + 90_000), "user", False),
    ):
        [reply] = await find_replied(request_of(target), history)
        message = reply.message
        assert (message.seq, message.text, message.role) == (0, target.text, role)
        assert (message.is_first_party, message.unseen) == (is_trusted, target.unseen)


async def test_a_message_that_the_model_refused_is_not_sent_again(history: ChatHistory) -> None:
    assert await find_replied(request_of(pointed(30)), history) == NOTHING


async def test_a_photo_that_was_refused_long_ago_is_not_shown_again(history: ChatHistory) -> None:
    chat = Files(drawn(30, 20, "JPEG"))
    step = PictureStep(chat, "low", TOKENS, SENTENCES)
    assert await step.answer(request_of(pointed(30, photo="0")), history) is None
    assert chat.fetched == []
    assert await step.answer(request_of(pointed(555, photo="0")), history)


async def test_a_photo_that_is_replied_to_is_unseen_if_only_others_are_shown(
    history: ChatHistory,
) -> None:
    request = request_of(pointed(555, photo="0", unseen="photo"))
    for shown, unseen in ((7, "photo"), (0, "")):
        pictures = (Picture(shown, b"a boat", "image/jpeg", 1, 1),)
        [reply] = await find_replied(replace(request, pictures=pictures), history)
        assert reply.message.unseen == unseen


async def test_a_question_asked_again_still_has_what_it_replied_to(history: ChatHistory) -> None:
    request = request_of(pointed(11, is_ours=True))
    again = raw.inbound(raw.message("/retry"))
    for message_id, texts in ((11, ["**Blue**"]), (555, [])):
        message = replace(request.message, replied_to=message_id)
        found = await find_replied(Request((again,), message, (message,)), history)
        assert [reply.message.text for reply in found] == texts


async def test_an_erased_message_counts_as_telegram_gave_it_and_is_not_stored_again(
    history: ChatHistory, memory: Memory
) -> None:
    await find_replied(request_of(pointed(11)), history)  # this process knows it
    await memory.forgetting.erase_messages(HERE, [1, 2], "nonce")
    again = await history_of(memory)
    [reply] = await find_replied(request_of(pointed(11, is_ours=True)), again)
    assert (reply.message.seq, reply.message.text) == (0, "as Telegram shows it")
    assert reply.question is None


async def test_a_turn_has_its_newest_three_replies_and_none_to_itself(history: ChatHistory) -> None:
    targets = [pointed(message_id) for message_id in (40, 50, 60, 60, 70, 900)]
    found = await find_replied(request_of(*targets), history)
    assert [reply.message.message_ids for reply in found] == [(60,), (70,)]
